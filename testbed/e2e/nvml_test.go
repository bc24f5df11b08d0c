// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// An agent with nvml on a machine without NVIDIA's hardware, as a DaemonSet has them: it is
// silent, and what dcgm reads goes on.
func TestNVMLWithoutHardware(t *testing.T) {
	t.Parallel()
	_, _, endpoints := fleet(t, gpusim.Demo(gpusim.DemoTimes()))
	api := kubeapi.New("gpu-node-a")
	gateway := start(t, m{"processors": m{"gpu_summary": quick}}, nil, config("standalone.yaml"), fromAgents)
	agent := start(t, m{"receivers": m{
		"dcgm": m{"endpoints": endpoints[:1], "kubernetes": nil, "collection_interval": "1s"},
		"nvml": m{"collection_interval": "5s"},
	}}, append(agentEnv(t, api, fmt.Sprintf("%s:%d", collector.Loopback, gateway.Ports.OTLPGRPC)), "NVML_ROOT="+t.TempDir()), config("agent.yaml"), config("nvml.yaml"))
	eventually(t, gateway, "devices of dcgm", func(f map[string]*dto.MetricFamily) bool { return len(find(f["hw_gpu_utilization_ratio"])) > 0 })
	f, err := gateway.Metrics(t.Context())
	require.NoError(t, err)
	assert.Len(t, find(f["gpu_exporter_up"]), 1, "hardware that is not there is not down")
	for _, level := range []string{"\terror\t", "\twarn\t"} {
		for _, line := range lines(log(t, agent), level) {
			assert.NotContains(t, line, `"otelcol.component.id": "nvml"`)
		}
	}
}
