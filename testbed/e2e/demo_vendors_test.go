// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What `make run VENDOR=` starts shows a service over several models of a vendor, the
// fault of a board and an exporter that goes and returns.
func TestDemoOfVendors(t *testing.T) {
	t.Parallel()
	for vendor, fault := range map[string]string{
		"amd":   "ERROR raised: gpu.ras: ",
		"gaudi": "WARN raised: gpu.memory.repair: ",
		"intel": "ERROR raised: gpu.ecc.uncorrected: ",
	} {
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			out := &output{}
			cmd := exec.Command(binary(t, "demo"), "--vendor", vendor, "--free-ports", "--xid-at", "12s", "--down-at", "30s", "--down-for", "40s")
			cmd.Stdout, cmd.Stderr = out, out
			require.NoError(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			for _, text := range []string{
				"webhook at /slack: " + fault,
				"inference/llama is PARTIAL",
				"webhook at /ops: gpu.service.partial cleared",
				"inference/llama is whole again",
			} {
				require.Eventually(t, func() bool { return strings.Contains(out.String(), text) }, patience, 200*time.Millisecond,
					"%q is not among:\n%s", text, out)
			}
			require.Regexp(t, regexp.MustCompile(`inference/llama +\d+\.\d %`), out.String())
			interrupt(t, cmd, out)
		})
	}
}
