// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

// A line that the kernel writes is an event about the GPU at its address, without any
// change on the exporter's page. What was in the file before the start is not read.
func TestKernelLog(t *testing.T) {
	t.Parallel()
	f, _, endpoints := fleet(t, gpusim.Config{Nodes: []gpusim.Node{{Name: "n1", Version: "4.6", Model: "H100", Devices: 2}}})
	devices, err := f.Devices("n1")
	require.NoError(t, err)
	address := strings.TrimSuffix(devices[1].PCIBusID, ".0")
	file := filepath.Join(t.TempDir(), "kern.log")
	write := func(line string) {
		log, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = log.WriteString(line + "\n")
		require.NoError(t, err)
		require.NoError(t, log.Close())
	}
	write("[    1.000000] NVRM: Xid (PCI:" + address + "): 48, pid=7, name=python3, DBE")
	c := start(t, m{"receivers": m{"dcgm": m{"endpoints": endpoints, "collection_interval": "1s"}}},
		[]string{"KERNEL_LOG=" + file}, config("standalone.yaml"), config("kernel-log.yaml"))
	eventually(t, c, "the devices", func(f map[string]*dto.MetricFamily) bool { return len(find(f["hw_gpu_memory_usage_bytes"])) == 2 })
	require.Eventually(t, func() bool {
		write("[  100.000200] NVRM: Xid (PCI:" + address + "): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")
		return strings.Contains(log(t, c), "reported XID 79")
	}, patience, time.Second)
	text := log(t, c)
	assert.Contains(t, text, devices[1].UUID+") reported XID 79")
	assert.NotContains(t, text, "reported XID 48")
	assert.Eventually(t, func() bool { return strings.Contains(log(t, c), devices[1].UUID+") is failed (xid_restart)") }, patience, 100*time.Millisecond)
}
