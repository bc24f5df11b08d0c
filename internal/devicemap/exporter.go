// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Exporter says where a target is: the identity of what is told about it.
type Exporter struct {
	Address string // server.address
	Port    int64  // server.port
	Node    string // k8s.node.name, where discovery knows it
	Pod     string // the exporter's own pod, where discovery knows it
}

// Result is what one scrape gave.
type Result struct {
	Metrics pmetric.Metrics
	Devices int
	Refused Refused
	Over    Over   // the limit of a target that the page is over
	Lack    Lack   // where there is no device
	Why     string // the evidence of Lack
}

// Map turns one scrape into metrics.
func (t *Target) Map(p *Page, e Exporter) Result {
	t.read(p)
	out := pmetric.NewMetrics()
	node := t.node(e)
	// Exporters print devices and families in any order.
	slices.SortFunc(t.page.order, func(a, b *device) int { return strings.Compare(a.id, b.id) })
	t.writeExporter(out, p, e, node)
	t.writeDevices(out, node, e.Pod)
	t.forget()
	result := Result{Metrics: out, Devices: len(t.page.order), Refused: t.page.refused, Over: t.page.over}
	if p.Up && result.Devices == 0 {
		result.Lack, result.Why = p.lack()
	}
	return result
}

// writeExporter writes what is known about the exporter itself.
func (t *Target) writeExporter(md pmetric.Metrics, scrape *Page, e Exporter, node string) {
	now := scrape.Time
	metrics := t.scope(t.exporterResource(md, e, node)).Metrics()
	write := func(m *names.Metric, v float64) {
		p := m.Init(metrics.AppendEmpty()).AppendEmpty()
		p.SetTimestamp(now)
		setValue(p, m, v)
		e.put(p.Attributes(), node)
	}
	write(&names.ExporterUp, flag(scrape.Up))
	write(&names.ExporterScrapeDuration, scrape.Duration)
	write(&names.ExporterScrapeSamples, float64(scrape.Samples))
	if frozen, known := t.stoodStill(scrape.Up, now.AsTime()); known {
		write(&names.ExporterFrozen, flag(frozen))
		t.judged = true
	}
	w := writer{target: t, time: now, metrics: metrics}
	w.writeRaw(t.page.loose, "")
}

// End ends the series about an exporter that is no target any more; false where
// there are none. Those of its devices may go on: gpu_pod knows.
func (t *Target) End(e Exporter, now pcommon.Timestamp) (pmetric.Metrics, bool) {
	md := pmetric.NewMetrics()
	if t.page.number == 0 {
		return md, false
	}
	node := t.node(e)
	metrics := t.scope(t.exporterResource(md, e, node)).Metrics()
	for _, m := range []*names.Metric{&names.ExporterUp, &names.ExporterScrapeDuration, &names.ExporterScrapeSamples, &names.ExporterFrozen} {
		if m == &names.ExporterFrozen && !t.judged {
			continue
		}
		p := m.Init(metrics.AppendEmpty()).AppendEmpty()
		p.SetTimestamp(now)
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		e.put(p.Attributes(), node)
	}
	return md, true
}

func (t *Target) node(e Exporter) string {
	if e.Node != "" {
		return e.Node
	}
	return t.opts.NodeName
}

func (t *Target) exporterResource(md pmetric.Metrics, e Exporter, node string) pmetric.ResourceMetrics {
	rm := md.ResourceMetrics().AppendEmpty()
	e.put(rm.Resource().Attributes(), node)
	if t.opts.ClusterName != "" {
		rm.Resource().Attributes().PutStr(names.K8sClusterName, t.opts.ClusterName)
	}
	return rm
}

func (e Exporter) put(attrs pcommon.Map, node string) {
	attrs.PutStr(names.ServerAddress, e.Address)
	attrs.PutInt(names.ServerPort, e.Port)
	if node != "" {
		attrs.PutStr(names.K8sNodeName, node)
	}
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

// still is for how long an exporter's values have stood still.
type still struct {
	sum   uint64 // of energy and clocks of all devices
	pages int
	since time.Time
	moved bool // a page differed from the one before it, at since
}

// stoodStill reports whether the host engine behind the exporter hangs: energy
// and all clocks of every device have the same value on FrozenAfter pages and
// for FrozenFor. Energy always rises on a board that measures it; a page without any
// says nothing. Nothing is known either until a page differed from the one before it,
// or both limits have passed. A scrape that failed has no page: the count goes on.
func (t *Target) stoodStill(up bool, now time.Time) (frozen, known bool) {
	sum, measured := t.movement()
	if !up || !measured {
		return false, false
	}
	s := &t.still
	switch {
	case s.pages == 0 || now.Before(s.since): // the first page, or the clock was set back
		*s = still{sum: sum, since: now}
	case sum != s.sum:
		*s = still{sum: sum, since: now, moved: true}
	}
	s.pages++
	if now.Sub(s.since) < t.opts.FrozenFor {
		return false, s.moved
	}
	frozen = s.pages >= t.opts.FrozenAfter
	return frozen, frozen
}

// movement is a hash of what always moves on the page, and whether there is any.
func (t *Target) movement() (sum uint64, measured bool) {
	h := fnv.New64a()
	var buf [8]byte
	for _, d := range t.page.order {
		if d.parent != nil {
			continue
		}
		h.Write([]byte(d.id))
		for _, id := range []devicetable.ID{devicetable.EnergyJoules, devicetable.Energy, devicetable.SMClock, devicetable.MemClock,
			devicetable.VideoClock, devicetable.SMClockHertz, devicetable.MemClockHertz, devicetable.VideoClockHertz} {
			x := d.values[id]
			measured = measured || x.rank != rankNone && (id == devicetable.Energy || id == devicetable.EnergyJoules)
			bits := math.Float64bits(x.v)
			for i := range buf {
				buf[i] = byte(bits >> (8 * i))
			}
			h.Write(buf[:])
		}
	}
	return h.Sum64(), measured
}

// forget drops what has not been on a page for long. Now and then is enough, and
// never while there are no pages: what a silent exporter has comes back with it.
func (t *Target) forget() {
	if t.page.number%64 != 0 || t.page.time == 0 {
		return
	}
	old := func(d *device) bool {
		return t.page.time.AsTime().Sub(d.lastSeen.AsTime()) > forgetAfter
	}
	for id, gpu := range t.gpus {
		for key, instance := range gpu.instances {
			if old(instance) {
				delete(gpu.instances, key)
				instance.of = nil
				t.devices--
			}
		}
		if old(gpu) && len(gpu.instances) == 0 {
			delete(t.gpus, id)
			gpu.of = nil
			t.devices--
		}
	}
	for key, s := range t.unmapped {
		if t.page.number-s.page > 128 {
			delete(t.unmapped, key)
		}
	}
}
