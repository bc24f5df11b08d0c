// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/webhook"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// quick are times short enough for a test; their meaning is the default's.
var quick = m{
	"interval": "1s", "initial_interval": "1s", "warmup": "2s", "staleness": "4s",
}

// never is after how many scrapes a fleet that stands still on purpose is frozen:
// then its values would be in no average.
const never = 1_000_000

// frozenFleet is the demo's fleet without its script, standing still, so that
// what is scraped at any time equals the truth at any other.
func frozenFleet(t *testing.T) (*gpusim.Fleet, *exporters.Server, []string) {
	t.Helper()
	cfg := gpusim.Demo(gpusim.DemoTimes())
	cfg.Faults = nil
	for _, n := range cfg.Nodes {
		cfg.Faults = append(cfg.Faults, gpusim.Fault{Node: n.Name, Kind: gpusim.ExporterFrozen})
	}
	return fleet(t, cfg)
}

// A pod ends, and pages no one. An exporter dies and returns: the service goes partial and becomes whole, two
// receivers get events of both, and every delivery has its audit line.
func TestPartialStateComesAndGoes(t *testing.T) {
	t.Parallel()
	cfg := gpusim.Demo(gpusim.DemoTimes())
	cfg.Faults = nil
	f, server, endpoints := fleet(t, cfg)
	sink := webhook.NewSink(time.Now)
	sinkURL := serve(t, sink)
	summary := maps.Clone(quick)
	summary["staleness"] = "10s" // on a busy machine no other pod is silent for so long
	summary["idle_for"] = "1h"   // the notebooks of the demo are idle
	c := start(t, m{
		"receivers":  m{"dcgm": m{"endpoints": endpoints, "collection_interval": "1s", "exporter_interval": "1s"}},
		"processors": m{"gpu_summary": summary},
		"exporters": m{"webhook": m{"receivers": m{
			"sink":   m{"url": sinkURL + "/ops?token=very-secret"},
			"convox": m{"url": sinkURL + "/convox"},
		}}},
	}, nil, config("standalone.yaml"), config("demo.yaml"))

	pods := func(f map[string]*dto.MetricFamily, state string) float64 {
		found := find(f["gpu_service_pods"], "service_name", "llama", "gpu_pod_state", state)
		if len(found) != 1 {
			return math.NaN()
		}
		return collector.Value(found[0])
	}
	partial := func(f map[string]*dto.MetricFamily) float64 {
		found := find(f["gpu_service_partial"], "service_name", "llama")
		if len(found) != 1 {
			return math.NaN()
		}
		return collector.Value(found[0])
	}
	eventually(t, c, "three pods of llama report", func(f map[string]*dto.MetricFamily) bool {
		return pods(f, "reporting") == 3 && partial(f) == 0
	})
	assert.Empty(t, sink.Received(), "nothing has happened yet")
	require.NoError(t, f.SetPods("gpu-node-d", nil), "a pod ends, which is no event")

	down, err := f.StartFault(gpusim.Fault{Node: "gpu-node-a", Kind: gpusim.ExporterDown})
	require.NoError(t, err)
	server.Reconcile()
	eventually(t, c, "one of three pods is missing, the averages go on, three exporters are up, and the pod that ended is neither there nor missing", func(f map[string]*dto.MetricFamily) bool {
		up := find(f["gpu_exporter_up"])
		var alive float64
		for _, metric := range up {
			alive += collector.Value(metric)
		}
		for _, state := range []string{"missing", "reporting"} {
			ended := find(f["gpu_service_pods"], "service_name", "old-notebook-0", "gpu_pod_state", state)
			if len(ended) != 1 || collector.Value(ended[0]) != 0 {
				return false
			}
		}
		return pods(f, "missing") == 1 && partial(f) == 1 && len(find(f["gpu_service_utilization_ratio"], "service_name", "llama")) == 1 &&
			len(up) == 4 && alive == 3
	})

	_, err = f.EndFault(down.ID)
	require.NoError(t, err)
	server.Reconcile()
	eventually(t, c, "whole again", func(f map[string]*dto.MetricFamily) bool {
		return pods(f, "reporting") == 3 && partial(f) == 0
	})

	const dispatched = "audit_type=webhook_dispatch_succeeded url_host=127.0.0.1 status=200"
	require.Eventually(t, func() bool {
		return len(sink.Received()) == 4 && len(lines(log(t, c), dispatched)) >= 4
	}, patience, 100*time.Millisecond, "four deliveries and their audit lines")
	var ops []string
	for _, r := range sink.Received() {
		if r.Path == "/ops" {
			ops = append(ops, r.Body)
			assert.NotEmpty(t, r.Headers.Get("Webhook-Id"))
			assert.NotEmpty(t, r.Headers.Get("Webhook-Timestamp"))
		}
	}
	require.Len(t, ops, 2)
	assert.Contains(t, ops[0], "gpu.service.partial")
	assert.Contains(t, ops[0], "llama-6b8d5c9f7d-k2x9p", "the missing pod is named")
	assert.Contains(t, ops[0], "raised")
	assert.Contains(t, ops[1], "cleared")

	text := log(t, c)
	assert.Len(t, lines(text, dispatched), 4)
	assert.NotContains(t, text, "very-secret")
	// A scrape that was under way when the exporter died has a cause of its own.
	logged := 0
	for _, line := range lines(text, "exporter gives no GPU metrics") {
		if strings.Contains(line, `"outcome": "connect"`) {
			logged++
		}
	}
	assert.Equal(t, 1, logged, "logged once")
	assert.LessOrEqual(t, len(lines(text, "exporter gives no GPU metrics")), 2, "nothing else is told")
	assert.Len(t, lines(text, "exporter is back"), 1)
}

// What Prometheus shows is what the simulator knows.
func TestAveragesAreTheTruth(t *testing.T) {
	t.Parallel()
	f, _, endpoints := frozenFleet(t)
	c := start(t, m{
		"receivers":  m{"dcgm": m{"endpoints": endpoints, "collection_interval": "1s", "frozen_after": never}},
		"processors": m{"gpu_summary": quick},
	}, nil, config("standalone.yaml"))
	truth := f.TruthAt(f.Start())
	require.Len(t, truth.Services, 4)
	families := eventually(t, c, "every pod of every service reports", func(f map[string]*dto.MetricFamily) bool {
		for _, s := range truth.Services {
			pods := find(f["gpu_service_pods"], "k8s_namespace_name", s.Namespace, "service_name", s.Name, "gpu_pod_state", "reporting")
			if len(pods) != 1 || collector.Value(pods[0]) != float64(len(s.Pods)) {
				return false
			}
		}
		for _, n := range truth.Nodes {
			for _, d := range n.Devices {
				if len(find(f["hw_gpu_memory_usage_bytes"], "hw_id", d.ID)) == 0 {
					return false
				}
			}
		}
		return true
	})
	for _, s := range truth.Services {
		labels := []string{"k8s_namespace_name", s.Namespace, "service_name", s.Name}
		got := find(families["gpu_service_utilization_ratio"], labels...)
		if assert.Len(t, got, 1, "%s/%s", s.Namespace, s.Name) {
			// GPU_UTIL is printed in whole percent.
			assert.InDelta(t, s.Utilization, collector.Value(got[0]), 0.005, "%s/%s", s.Namespace, s.Name)
		}
	}
	devices := 0
	for _, n := range truth.Nodes {
		for _, d := range n.Devices {
			got := find(families["hw_gpu_memory_usage_bytes"], "hw_id", d.ID)
			if assert.Len(t, got, 1, "%s: one series a device", d.ID) {
				assert.Equal(t, float64(d.MemoryUsedMiB<<20), collector.Value(got[0]), d.ID)
				devices++
			}
		}
	}
	assert.GreaterOrEqual(t, devices, 18)
}

// Broken neighbours: each target has its own trouble, and one is well.
func TestOneWellAmongBrokenTargets(t *testing.T) {
	t.Parallel()
	cfg := gpusim.Demo(gpusim.DemoTimes())
	cfg.Faults = []gpusim.Fault{
		{Node: "gpu-node-a", Kind: gpusim.ExporterDown},
		{Node: "gpu-node-b", Kind: gpusim.PageCut},
		{Node: "gpu-node-d", Kind: gpusim.Sentinel, Device: "0"},
	}
	_, _, endpoints := fleet(t, cfg)
	c := start(t, m{"receivers": m{"dcgm": m{"endpoints": endpoints, "collection_interval": "1s"}}}, nil, config("standalone.yaml"))
	families := eventually(t, c, "nodes c and d", func(f map[string]*dto.MetricFamily) bool {
		return len(find(f["gpu_exporter_up"])) == 4 && len(find(f["hw_gpu_memory_usage_bytes"], "host_name", "gpu-node-c")) > 0
	})
	var alive float64
	for _, metric := range find(families["gpu_exporter_up"]) {
		alive += collector.Value(metric)
	}
	assert.Equal(t, 2.0, alive)
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			v := collector.Value(metric)
			assert.False(t, math.IsNaN(v) || v >= 1e18, "%s is %v", f.GetName(), v)
		}
	}
	require.Eventually(t, func() bool {
		own, err := c.OwnMetrics(t.Context())
		if err != nil {
			return false
		}
		for _, name := range []string{"otelcol_dcgm_receiver_scrapes", "otelcol_dcgm_receiver_scrapes_total"} {
			if len(find(own[name], "outcome", "connect")) == 1 && len(find(own[name], "outcome", "cut_off")) == 1 {
				return true
			}
		}
		return false
	}, patience, 200*time.Millisecond, "both kinds of trouble are counted")
	require.Eventually(t, func() bool { return len(lines(log(t, c), "exporter gives no GPU metrics")) >= 2 }, patience, 100*time.Millisecond)
	assert.Len(t, lines(log(t, c), "exporter gives no GPU metrics"), 2, "each target's trouble is told once")
	assert.True(t, strings.Contains(log(t, c), "remedy"))
}
