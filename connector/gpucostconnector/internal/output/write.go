// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// key is what series are of.
type key[K any] interface {
	comparable
	compare(K) int
	of() identity            // the resource
	attributes() []attribute // on the points, beside the identity
	series() []series
}

// group is the series of all keys of one kind.
type group[K key[K]] struct {
	all   map[K]*values
	shown map[K]uint32 // the series that the next component has
}

func (g *group[K]) begin() { g.all = make(map[K]*values, len(g.shown)) }

func (g *group[K]) at(k K) *values {
	v := g.all[k]
	if v == nil {
		v = &values{}
		g.all[k] = v
	}
	return v
}

func (g *group[K]) accepted() {
	g.shown = make(map[K]uint32, len(g.all))
	for k, v := range g.all {
		g.shown[k] = v.has
	}
}

// writer writes one batch.
type writer struct {
	md                       pmetric.Metrics
	scope, version, currency string
	now                      pcommon.Timestamp
	start                    int64 // of the ledger
	last                     bool
}

// write writes the points of a group, a resource for each identity, and then each end of a
// series in a metric of its own: the stock prometheus exporter stops reading a metric at the
// first end in it.
func write[K key[K]](g *group[K], w *writer) {
	keys := slices.SortedFunc(maps.Keys(g.all), K.compare)
	for len(keys) > 0 {
		of := keys[0].of()
		n := 1
		for n < len(keys) && keys[n].of() == of {
			n++
		}
		writeResource(g, w, keys[:n], w.resource(of))
		keys = keys[n:]
	}
	for k, shown := range g.shown {
		if v := g.all[k]; v != nil {
			shown &^= v.has
		}
		if shown == 0 {
			continue
		}
		ms := w.resource(k.of())
		for ; shown != 0; shown &= shown - 1 {
			s := k.series()[bits.TrailingZeros32(shown)]
			p := w.point(s.metric.Init(ms.AppendEmpty()), k.of(), k.attributes(), &s, 0)
			p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		}
	}
}

func writeResource[K key[K]](g *group[K], w *writer, keys []K, ms pmetric.MetricSlice) {
	var metric *names.Metric
	var points pmetric.NumberDataPointSlice
	for i, s := range keys[0].series() {
		for _, k := range keys {
			v := g.all[k]
			if v.has&(1<<i) == 0 {
				continue
			}
			if s.metric != metric {
				metric, points = s.metric, s.metric.Init(ms.AppendEmpty())
			}
			p := w.point(points, k.of(), k.attributes(), &s, v.start)
			switch {
			case metric.Kind == names.Gauge:
				p.SetDoubleValue(v.gauge)
			case w.last || g.shown[k]&(1<<i) != 0:
				p.SetDoubleValue(v.value(i))
			default:
				p.SetDoubleValue(0)
			}
		}
	}
}

func (w *writer) resource(of identity) pmetric.MetricSlice {
	rm := w.md.ResourceMetrics().AppendEmpty()
	attrs := of.attributes()
	put(rm.Resource().Attributes(), attrs[:])
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(w.scope)
	sm.Scope().SetVersion(w.version)
	return sm.Metrics()
}

func (w *writer) point(points pmetric.NumberDataPointSlice, of identity, more []attribute, s *series, start int64) pmetric.NumberDataPoint {
	p := points.AppendEmpty()
	p.SetTimestamp(w.now)
	if s.metric.Kind != names.Gauge {
		p.SetStartTimestamp(pcommon.Timestamp(cmp.Or(start, w.start) * int64(time.Millisecond)))
	}
	attrs := p.Attributes()
	attrs.EnsureCapacity(9)
	identity := of.attributes()
	put(attrs, identity[:])
	put(attrs, more)
	if s.attr != "" {
		attrs.PutStr(s.attr, s.value)
	}
	if hasMoney(s.metric) {
		attrs.PutStr(names.GPUCostCurrency, w.currency)
	}
	return p
}
