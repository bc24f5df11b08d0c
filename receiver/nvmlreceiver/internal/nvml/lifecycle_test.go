// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// TestResting: a board that sleeps keeps what does not change.
func TestResting(t *testing.T) {
	h := newHost(t)
	managed := map[string]bool{pci0: true}
	got := h.do(&Scrape{Up: true, Resting: []Resting{{pci0, true}}})
	assert.Empty(t, got.IDs(t), "nothing is known of it")
	got = h.do(&Scrape{Up: true, Managed: managed, Boards: []nvmlproto.Board{board(value("memory.total", 1<<30), value("power.usage", 5000)), second(value("power.usage", 1000))}})
	assert.Equal(t, []string{"gpu.device.suspended{} 0", "hw.gpu.memory.limit{} 1073741824", "hw.power{} 5"}, got.Points(gpu0))
	assert.Equal(t, []string{"hw.power{} 1"}, got.Points(gpu1), "has no power management")
	awake := got.Resource(gpu0)
	for _, suspended := range []bool{false, true} {
		got = h.do(&Scrape{Up: true, Managed: managed, Resting: []Resting{{pci0, suspended}}, Boards: []nvmlproto.Board{second(value("power.usage", 1000))}})
		flag := map[bool]string{false: "0", true: "1"}[suspended]
		assert.Equal(t, []string{"gpu.device.suspended{} " + flag, "hw.gpu.memory.limit{} 1073741824"}, got.Points(gpu0))
		assert.Equal(t, awake, got.Resource(gpu0))
	}
}

// TestRelease: there is nothing about the source or a device, but the node's point, and once
// more afterwards.
func TestRelease(t *testing.T) {
	h := newHost(t)
	released := func(r scraped) []string { return r.Only("", "gpu.driver.released") }
	first := h.scrape(board(value("energy", 1000)))
	assert.Empty(t, released(first))
	for range 2 {
		got := h.do(&Scrape{Released: true})
		assert.Equal(t, []string{"gpu.driver.released{k8s.node.name=node-a} 1"}, got.Points(""))
		assert.Equal(t, 1, got.Metrics.ResourceMetrics().Len())
		assert.Equal(t, map[string]any{names.ServerAddress: "nvml", names.K8sNodeName: "node-a", names.K8sClusterName: "c1"}, got.Metrics.ResourceMetrics().At(0).Resource().Attributes().AsRaw())
	}
	got := h.scrape(board(value("energy", 2000)))
	assert.Equal(t, []string{"gpu.driver.released{k8s.node.name=node-a} 0"}, released(got))
	assert.Equal(t, startOf(t, first, gpu0, "hw.energy"), startOf(t, got, gpu0, "hw.energy"), "no reset")
	assert.Empty(t, released(h.scrape(board())))
}

// startOf is the start time of the first point of a metric.
func startOf(t *testing.T, r scraped, device, metric string) (start time.Time) {
	t.Helper()
	for _, rm := range r.Metrics.ResourceMetrics().All() {
		if id, _ := rm.Resource().Attributes().Get(names.HwID); id.Str() != device {
			continue
		}
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			if m.Name() == metric {
				return m.Sum().DataPoints().At(0).StartTimestamp().AsTime()
			}
		}
	}
	assert.Fail(t, "there is no "+metric)
	return start
}

func TestCounterThatFell(t *testing.T) {
	h := newHost(t)
	first := h.scrape(board(value("energy", 5000)))
	start := startOf(t, first, gpu0, "hw.energy")
	assert.Equal(t, h.now, start)
	assert.Equal(t, start, startOf(t, h.scrape(board(value("energy", 6000))), gpu0, "hw.energy"))
	assert.Equal(t, h.now.Add(15*time.Second), startOf(t, h.scrape(board(value("energy", 10))), gpu0, "hw.energy"))
}

// TestSource: of the source there is an address and no port.
func TestSource(t *testing.T) {
	h := newHost(t)
	got := h.do(&Scrape{})
	assert.Equal(t, []string{"gpu.exporter.up{k8s.node.name=node-a} 0"}, got.Only("", "gpu.exporter.up"))
	assert.Equal(t, map[string]any{names.ServerAddress: "nvml", names.K8sNodeName: "node-a", names.K8sClusterName: "c1"}, got.Metrics.ResourceMetrics().At(0).Resource().Attributes().AsRaw())
	for range 6 {
		got = h.scrape(board(value("energy", 1000)))
	}
	assert.Equal(t, []string{"gpu.exporter.frozen{k8s.node.name=node-a} 1"}, got.Only("", "gpu.exporter.frozen"))
	assert.Equal(t, []string{"gpu.exporter.frozen{k8s.node.name=node-a} 0"}, h.scrape(board(value("energy", 2000))).Only("", "gpu.exporter.frozen"))
}

// TestXIDs: counts as they are given, of boards and instances, and of a board that fell off
// its bus.
func TestXIDs(t *testing.T) {
	h := newHost(t)
	began := h.now.Add(-time.Hour)
	b := board()
	b.Instances = []nvmlproto.Instance{instance(7, mig0, value("memory.total", 1))}
	xids := map[string]XIDs{gpu0: {}}
	got := h.do(&Scrape{Up: true, Boards: []nvmlproto.Board{b, second(value("power.usage", 1))}, XIDs: xids})
	assert.Equal(t, []string{"gpu.xid.last{} 0"}, got.points(gpu0, "gpu.xid.last"))
	assert.Empty(t, got.points(gpu1, "gpu.xid.last"), "is not watched")

	xids[gpu0] = XIDs{Last: 79, Rose: true, Counts: []XIDCount{{31, 10_000, began}, {79, 1, began}}}
	xids[gpu0+"/7"] = XIDs{Last: 43, Rose: true, Counts: []XIDCount{{43, 2, began}}}
	for name, s := range map[string]*Scrape{
		"answers":           {Up: true, Boards: []nvmlproto.Board{b}},
		"fell off its bus":  {Up: true},
		"sleeps":            {Up: true, Resting: []Resting{{pci0, true}}},
		"is late":           {Up: true, Boards: []nvmlproto.Board{second()}},
		"no helper is left": {},
	} {
		s.XIDs = xids
		got = h.do(s)
		assert.Equal(t, []string{"gpu.xid.errors{gpu.xid.code=31} 10000", "gpu.xid.errors{gpu.xid.code=79} 1", "gpu.xid.last{} 79"},
			got.points(gpu0, "gpu.xid.errors", "gpu.xid.last"), name)
		assert.Equal(t, []string{"gpu.xid.errors{gpu.xid.code=43} 2", "gpu.xid.last{} 43"}, got.points(gpu0+"/7", "gpu.xid.errors", "gpu.xid.last"), name)
		assert.Equal(t, began, startOf(t, got, gpu0, "gpu.xid.errors"), name)
		assert.Equal(t, "NVIDIA H100 80GB HBM3", got.Resource(gpu0)[names.HwModel])
	}
	moved := b
	moved.Thread, moved.PCI = pci1, "00000000:86:00.0"
	for range 20 { // in whatever order they are kept
		got = h.do(&Scrape{Up: true, Boards: []nvmlproto.Board{moved}, XIDs: xids})
		assert.Equal(t, []string{"gpu.xid.last{} 79"}, got.points(gpu0, "gpu.xid.last"), "at another address")
		assert.Equal(t, []string{"gpu.xid.last{} 43"}, got.points(gpu0+"/7", "gpu.xid.last"), "at another address")
	}
	xids[gpu0], xids[gpu0+"/7"] = XIDs{Last: 79, Counts: []XIDCount{{79, 1, began}}}, XIDs{}
	assert.Empty(t, h.do(&Scrape{Up: true, XIDs: xids}).IDs(t), "a board that is gone is silent")
}

// TestProcesses: they need no other series, and holders are written as dcgm's.
func TestProcesses(t *testing.T) {
	h := newHost(t, nvmlproto.GroupProcesses)
	got := h.do(&Scrape{
		Up: true, Boards: []nvmlproto.Board{board(), second()},
		Processes: func(device string, at time.Time, to pmetric.MetricSlice) {
			if device == gpu0 {
				p := names.GPUProcessMemoryUsage.Init(to.AppendEmpty()).AppendEmpty()
				p.SetTimestamp(pcommon.NewTimestampFromTime(at))
				p.SetIntValue(5)
				p.Attributes().PutStr(names.HwID, device)
			}
		},
		Holders: map[string][]Holder{gpu0: {{Namespace: "ml", Pod: "a-0", PodUID: "u", Memory: 5, Utilization: -1}, {Namespace: "ml", Pod: "b-0", Container: "c", Memory: -1, Utilization: 0.5}}},
	})
	assert.Equal(t, []string{gpu0}, got.IDs(t))
	assert.Equal(t, []string{"gpu.process.memory.usage{} 5"}, got.Points(gpu0))
	assert.Equal(t, []any{
		map[string]any{"namespace": "ml", "pod": "a-0", "pod_uid": "u", "hw.gpu.memory.usage": int64(5)},
		map[string]any{"namespace": "ml", "pod": "b-0", "container": "c", "hw.gpu.utilization": 0.5},
	}, got.Resource(gpu0)[names.ExporterHolders])
}

// TestBesideDCGM: what dcgm emits for a device is left to it.
func TestBesideDCGM(t *testing.T) {
	h := newHost(t)
	registry := h.mapping.opts.Registry
	dcgm := newHost(t).scrape(board(value("power.usage", 1000), value("utilization.gpu", 5)))
	registry.Emitted(dcgm.Metrics, h.now, 45*time.Second)
	b := board(value("power.usage", 1000), value("utilization.gpu", 5), value("utilization.encoder", 6))
	watched := map[string]XIDs{gpu0: {}}
	got := h.do(&Scrape{Up: true, Boards: []nvmlproto.Board{b, second(value("power.usage", 1000))}, XIDs: watched})
	assert.Equal(t, []string{"gpu.xid.last{} 0", "hw.gpu.utilization{hw.gpu.task=encoder} 0.06"}, got.Points(gpu0))
	assert.Equal(t, []string{"hw.power{} 1"}, got.Points(gpu1), "dcgm does not see this one")
	assert.Equal(t, 2, got.of.LeftToDCGM)
	assert.NotEmpty(t, got.Only("", "gpu.exporter.up"))
	assert.True(t, registry.XIDsCounted(gpu0, h.now))
	assert.False(t, registry.XIDsCounted(gpu1, h.now))
	for range 3 {
		got = h.scrape(b)
	}
	assert.Len(t, got.Points(gpu0), 3, "dcgm has been silent for three intervals")
	assert.Zero(t, got.of.LeftToDCGM)
}
