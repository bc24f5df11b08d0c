// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Exporter is the identity of the series about an exporter.
type Exporter struct {
	Address string // server.address
	Port    int64  // server.port, 0 where there is none
	Node    string // k8s.node.name, where discovery knows it
	Pod     string // the exporter's own pod, where discovery knows it
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
	up := scrape.Up && (len(t.page.order) > 0 || !t.vendor.EmptyIsDown)
	if scrape.Limited && !t.limited {
		up = t.wasUp
	}
	t.wasUp, t.limited = up, scrape.Limited
	write(&names.ExporterUp, flag(up))
	write(&names.ExporterScrapeDuration, scrape.Duration)
	write(&names.ExporterScrapeSamples, float64(scrape.Samples))
	// A scrape that failed has no page: the count goes on.
	if sum, measured := t.page.movement(&t.vendor.Moving); scrape.Up && measured {
		if frozen, known := t.still.observe(sum, now.AsTime(), &t.opts, t.vendor.Moving.MustMove); known {
			write(&names.ExporterFrozen, flag(frozen))
			t.judged = true
		}
	}
	if scrape.Up && !t.opts.OwnPage && len(t.page.order) > 0 {
		write(&names.ExporterUnrecognized, flag(t.fields.unrecognized))
		t.fields.written = true
	}
	w := Writer{target: t, time: now, metrics: metrics}
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
	for _, m := range []*names.Metric{&names.ExporterUp, &names.ExporterScrapeDuration, &names.ExporterScrapeSamples, &names.ExporterFrozen, &names.ExporterUnrecognized} {
		if m == &names.ExporterFrozen && !t.judged || m == &names.ExporterUnrecognized && !t.fields.written {
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
	if e.Port != 0 {
		attrs.PutInt(names.ServerPort, e.Port)
	}
	if node != "" {
		attrs.PutStr(names.K8sNodeName, node)
	}
}

func (t *Target) scope(rm pmetric.ResourceMetrics) pmetric.ScopeMetrics {
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(t.opts.ScopeName)
	sm.Scope().SetVersion(t.opts.ScopeVersion)
	return sm
}

// still is for how long an exporter's values have stood still.
type still struct {
	sum   uint64 // of energy and clocks of all devices
	pages int
	since time.Time
	moved bool // a page differed from the one before it, at since
}

// observe reports whether the host engine behind the exporter hangs: energy and all
// clocks of every device, of which sum is a hash, have the same value on FrozenAfter
// pages and for FrozenFor. Nothing is known until a page differed from the one before
// it, or both limits have passed; the latter is no proof where mustMove is set.
func (s *still) observe(sum uint64, now time.Time, opts *Options, mustMove bool) (frozen, known bool) {
	switch {
	case s.pages == 0 || now.Before(s.since): // the first page, or the clock was set back
		*s = still{sum: sum, since: now}
	case sum != s.sum:
		*s = still{sum: sum, since: now, moved: true}
	}
	s.pages++
	if now.Sub(s.since) < opts.FrozenFor {
		return false, s.moved
	}
	frozen = s.pages >= opts.FrozenAfter
	frozen = frozen && (s.moved || !mustMove)
	return frozen, frozen
}

// movement is a hash of what always moves on a page, and whether there is any: energy
// always rises on a board that measures it, and a page without energy proves nothing.
func (p *pageState) movement(m *Moving) (sum uint64, measured bool) {
	h := fnv.New64a()
	var buf [8]byte
	for _, d := range p.order {
		if d.parent != nil {
			continue
		}
		h.Write([]byte(d.id))
		for i, ids := range [...][]devicetable.ID{m.Energy, m.Clocks} {
			for _, id := range ids {
				x := d.values[id]
				measured = measured || i == 0 && x.rank != rankNone
				binary.LittleEndian.PutUint64(buf[:], math.Float64bits(x.V))
				h.Write(buf[:])
			}
		}
	}
	return h.Sum64(), measured
}
