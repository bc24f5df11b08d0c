// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// A collector that is stopped for longer than its points are fresh reports nothing about that when it
// goes on: no service is partial or without data, and no device, exporter or node is lost.
func TestAPausedCollectorReportsNothing(t *testing.T) {
	t.Parallel()
	pod := func(name, device string) gpusim.Pod {
		return gpusim.Pod{Namespace: "inference", Name: name, Container: "main", Devices: []string{device}, Load: gpusim.Inference}
	}
	const pods = 4 // each is a service of its own where no API has its labels
	_, _, endpoints := fleet(t, gpusim.Config{Seed: 1, Nodes: []gpusim.Node{
		{Name: "n1", Version: "4.6", Model: "H100", Devices: 2, PodLabels: true, Pods: []gpusim.Pod{pod("llama-6b8d5c9f7d-k2x9p", "0"), pod("llama-6b8d5c9f7d-x7c4m", "1")}},
		{Name: "n2", Version: "4.6", Model: "H100", Devices: 2, PodLabels: true, Pods: []gpusim.Pod{pod("llama-6b8d5c9f7d-z8w2q", "0"), pod("qwen-7f9c6d5b48-t5hvn", "1")}},
	}})
	const staleness = 6 * time.Second
	c := start(t, m{
		"receivers": m{"dcgm": m{"endpoints": endpoints, "collection_interval": "1s"}},
		"processors": m{"gpu_summary": m{
			"interval": "1s", "initial_interval": "1s", "warmup": "2s", "staleness": staleness.String(), "service_ttl": "10s", "reconnect_grace": "0s",
		}},
		"connectors": m{"gpu_events": m{"staleness": staleness.String()}},
	}, []string{"STATE_DIRECTORY=" + t.TempDir()}, config("standalone.yaml"))
	// whole are the services of which it is known that they are whole.
	whole := func(f map[string]*dto.MetricFamily) (names []string) {
		for _, p := range find(f["gpu_service_partial"]) {
			if collector.Value(p) == 0 {
				names = append(names, collector.Label(p, "service_name"))
			}
		}
		slices.Sort(names)
		return names
	}
	emitted := func() (n map[string]float64) {
		ownEventually(t, c, "the collector's own metrics", func(f map[string]*dto.MetricFamily) bool {
			n = map[string]float64{}
			for _, p := range f["otelcol_gpu_events_emitted"].GetMetric() {
				n[collector.Label(p, "event")+" "+collector.Label(p, "state")] += collector.Value(p)
			}
			return true
		})
		return n
	}
	var services []string
	eventually(t, c, "every service is known to be whole", func(f map[string]*dto.MetricFamily) bool {
		services = whole(f)
		return len(services) == pods && len(services) == len(find(f["gpu_service_partial"])) && len(services) == len(find(f["gpu_service_utilization_ratio"]))
	})
	require.Empty(t, emitted())

	require.NoError(t, syscall.Kill(c.PID(), syscall.SIGSTOP))
	stopped := time.Now()
	require.Eventually(t, func() bool { return time.Since(stopped) > 2*staleness }, patience, 100*time.Millisecond, "all points are stale")
	require.NoError(t, syscall.Kill(c.PID(), syscall.SIGCONT))

	ownEventually(t, c, "the pause is logged", func(map[string]*dto.MetricFamily) bool {
		return len(lines(log(t, c), "This process did not run for a while")) == 1
	})
	eventually(t, c, "every service is known to be whole again", func(f map[string]*dto.MetricFamily) bool {
		for _, p := range find(f["gpu_service_partial"]) {
			assert.Zero(t, collector.Value(p), "of %s", collector.Label(p, "service_name"))
		}
		return slices.Equal(services, whole(f))
	})
	assert.Empty(t, emitted())
}
