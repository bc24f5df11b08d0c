// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// unmappedSeries is a series of a family that the table does not know.
type unmappedSeries struct {
	counter
	page uint64
}

// unmappedName is the name of a family or label-type field that the table does
// not know: dcgm.<field>, lower case, without DCGM_FI_ or DCGM_.
func unmappedName(family string) string {
	name := strings.ToLower(family)
	name = strings.TrimPrefix(name, "dcgm_")
	return "dcgm." + strings.TrimPrefix(name, "fi_")
}

// writeRaw writes the points that keep their family. device is "" for rows that
// are about none.
func (w *writer) writeRaw(points []rawPoint, device string) {
	slices.SortStableFunc(points, func(a, b rawPoint) int {
		if c := strings.Compare(a.series.family.name, b.series.family.name); c != 0 {
			return c
		}
		switch {
		case a.dcgm == b.dcgm:
			return 0
		case a.dcgm:
			return -1
		default:
			return 1
		}
	})
	for len(points) > 0 {
		n := 1
		for n < len(points) && points[n].dcgm == points[0].dcgm && points[n].series.family == points[0].series.family {
			n++
		}
		if points[0].dcgm {
			w.writeDCGM(points[:n], device)
		} else {
			w.writeUnmapped(points[:n], device)
		}
		points = points[n:]
	}
}

// writeDCGM writes a family under its own name with its values and labels. A
// gauge without unit is what Prometheus exporters leave alone, so that existing
// boards, alerts and autoscalers survive a migration.
func (w *writer) writeDCGM(points []rawPoint, device string) {
	m := w.metrics.AppendEmpty()
	m.SetName(points[0].series.family.name)
	m.SetDescription(points[0].series.family.Help)
	out := m.SetEmptyGauge().DataPoints()
	out.EnsureCapacity(len(points))
	for _, raw := range points {
		p := out.AppendEmpty()
		p.SetTimestamp(w.time)
		p.SetDoubleValue(raw.v)
		attrs := p.Attributes()
		attrs.EnsureCapacity(len(raw.series.labels.all) + 1)
		for _, l := range raw.series.labels.all {
			attrs.PutStr(l.key, l.value)
		}
		if device != "" {
			p.Attributes().PutStr(names.HwID, device)
		}
	}
}

// writeUnmapped passes a family on that the table does not know, as the page
// types it, with those labels as attributes that are neither identity nor holder.
func (w *writer) writeUnmapped(points []rawPoint, device string) {
	family := points[0].series.family
	name := unmappedName(family.name)
	m := w.metrics.AppendEmpty()
	m.SetName(name)
	m.SetDescription(family.Help)
	var out pmetric.NumberDataPointSlice
	monotonic := family.Type == Counter && !devicetable.MistypedCounter(family.name)
	if monotonic {
		sum := m.SetEmptySum()
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		sum.SetIsMonotonic(true)
		out = sum.DataPoints()
	} else {
		out = m.SetEmptyGauge().DataPoints()
	}
	for _, raw := range points {
		series, fresh := w.target.unmappedSeries(raw, name, device)
		if !fresh {
			continue // a further holder's row of a shared device, or over the limit
		}
		p := out.AppendEmpty()
		p.SetTimestamp(w.time)
		p.SetDoubleValue(raw.v)
		putUnmapped(p.Attributes(), raw.series.labels.all, device)
		if monotonic {
			p.SetStartTimestamp(series.observe(raw.v, w.time))
		}
	}
	if out.Len() == 0 {
		w.metrics.RemoveIf(func(other pmetric.Metric) bool { return other == m })
	}
}

// unmappedLabel says whether a label stays on the points of an unmapped family.
// Without a device the GPU's index is all that tells rows apart.
func unmappedLabel(key, device string) bool {
	switch exporterlabels.Classify(key) {
	case exporterlabels.Other:
		return key != names.HwID && (device == "" || !unprefixedPodLabel(key))
	case exporterlabels.Index, exporterlabels.Device:
		return device == ""
	default:
		return false
	}
}

func putUnmapped(dst pcommon.Map, src []label, device string) {
	dst.EnsureCapacity(4)
	if device != "" {
		dst.PutStr(names.HwID, device)
	}
	for _, l := range src {
		if unmappedLabel(l.key, device) {
			dst.PutStr(l.key, l.value)
		}
	}
}

// unmappedSeries finds the series of a point, and reports whether the point is
// the first one for it on this page.
func (t *Target) unmappedSeries(raw rawPoint, name, device string) (s *unmappedSeries, fresh bool) {
	t.key = append(t.key[:0], device...)
	t.key = append(append(t.key, 0), name...)
	for _, l := range raw.series.labels.all {
		if unmappedLabel(l.key, device) {
			t.key = append(append(t.key, 0), l.key...)
			t.key = append(append(t.key, 1), l.value...)
		}
	}
	s = t.unmapped[string(t.key)]
	if s == nil {
		if len(t.unmapped) >= maxUnmapped {
			t.beyond(OverUnmapped)
			return nil, false
		}
		s = &unmappedSeries{}
		t.unmapped[string(t.key)] = s
	}
	fresh = s.page != t.page.number
	s.page = t.page.number
	return s, fresh
}
