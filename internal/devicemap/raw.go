// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// rawPoint is a row that keeps its family: in OpenTelemetry names one that the
// table does not know, in the exporter's names any.
type rawPoint struct {
	series *Series
	v      float64
	asIs   bool // to be written under the exporter's name, with all its labels
}

// unmapped are the series of families that the table does not know.
type unmapped struct {
	series map[string]*unmappedSeries
	key    []byte // buffer for keys
}

type unmappedSeries struct {
	Cumulative
	page uint64
}

// writeRaw writes the points that keep their family. device is "" for rows that
// are about none.
func (w *Writer) writeRaw(points []rawPoint, device string) {
	slices.SortStableFunc(points, func(a, b rawPoint) int {
		if c := strings.Compare(a.series.family.name, b.series.family.name); c != 0 {
			return c
		}
		switch {
		case a.asIs == b.asIs:
			return 0
		case a.asIs:
			return -1
		default:
			return 1
		}
	})
	for len(points) > 0 {
		n := 1
		for n < len(points) && points[n].asIs == points[0].asIs && points[n].series.family == points[0].series.family {
			n++
		}
		if points[0].asIs {
			w.writeAsIs(points[:n], device)
		} else {
			w.writeUnmapped(points[:n], device)
		}
		points = points[n:]
	}
}

// writeAsIs writes a family under the exporter's name with its values and labels. A
// gauge without unit is what Prometheus exporters leave alone, so that existing
// boards, alerts and autoscalers survive a migration.
func (w *Writer) writeAsIs(points []rawPoint, device string) {
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
// types it, with those labels as attributes that are neither identity nor owner.
func (w *Writer) writeUnmapped(points []rawPoint, device string) {
	family := points[0].series.family
	vendor := w.target.vendor
	if family.metric == "" {
		family.metric = vendor.Unmapped(family.name)
	}
	name := family.metric
	m := w.metrics.AppendEmpty()
	m.SetName(name)
	m.SetDescription(family.Help)
	var out pmetric.NumberDataPointSlice
	monotonic := vendor.monotonic(family)
	if monotonic {
		sum := m.SetEmptySum()
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		sum.SetIsMonotonic(true)
		out = sum.DataPoints()
	} else {
		out = m.SetEmptyGauge().DataPoints()
	}
	for _, raw := range points {
		series, fresh := w.findUnmapped(raw, name, device)
		if !fresh {
			continue // a further owner's row of a shared device, or over the limit
		}
		p := out.AppendEmpty()
		p.SetTimestamp(w.time)
		p.SetDoubleValue(raw.v)
		putUnmapped(p.Attributes(), raw.series.labels.ofPoints(vendor, device), device)
		if monotonic {
			p.SetStartTimestamp(series.Observe(raw.v, w.time))
		}
	}
	if out.Len() == 0 {
		w.metrics.RemoveIf(func(other pmetric.Metric) bool { return other == m })
	}
}

// pointLabels are the labels of a row that stay on its point if its family is not in the
// table: those that are neither identity nor owner.
type pointLabels struct {
	all []label
	key []byte // of all, for the series
}

// ofPoints returns what stays on points of the device, or on those about none.
func (l *Labels) ofPoints(v *Vendor, device string) *pointLabels {
	if device != "" && l.points != nil {
		return l.points
	}
	points := &pointLabels{}
	for _, x := range l.all {
		if v.unmappedLabel(x.key, device) {
			points.all = append(points.all, x)
			points.key = append(append(points.key, 0), x.key...)
			points.key = append(append(points.key, 1), x.value...)
		}
	}
	if device != "" {
		l.points = points
	}
	return points
}

func putUnmapped(dst pcommon.Map, src *pointLabels, device string) {
	dst.EnsureCapacity(1 + len(src.all))
	if device != "" {
		dst.PutStr(names.HwID, device)
	}
	for _, l := range src.all {
		dst.PutStr(l.key, l.value)
	}
}

// findUnmapped finds the series of a point, and reports whether the point is
// the first one for it on this page.
func (w *Writer) findUnmapped(raw rawPoint, name, device string) (s *unmappedSeries, fresh bool) {
	u, page := &w.target.unmapped, &w.target.page
	u.key = append(u.key[:0], device...)
	u.key = append(append(u.key, 0), name...)
	u.key = append(u.key, raw.series.labels.ofPoints(w.target.vendor, device).key...)
	s = u.series[string(u.key)]
	if s == nil {
		if len(u.series) >= MaxUnmapped {
			page.beyond(OverUnmapped)
			return nil, false
		}
		s = &unmappedSeries{}
		u.series[string(u.key)] = s
	}
	fresh = s.page != page.number
	s.page = page.number
	return s, fresh
}

// forget drops the series that were not on a page for long.
func (u *unmapped) forget(page uint64) {
	for key, s := range u.series {
		if page-s.page > 128 {
			delete(u.series, key)
		}
	}
}

// maxUnknown is how many fields of a page that are not in the table are looked at.
const maxUnknown = 256

// Unknown is a field of a page that is not in the table.
type Unknown struct {
	Field string
	// Quantity is a quantity that the page lacks and that the field may have, and Like the
	// known name that is like the field's; both are empty where no name is.
	Quantity, Like string
	// Core: the quantity is the utilization, memory or power of a device.
	Core bool
}

// String is the field with what it may be.
func (u Unknown) String() string {
	if u.Quantity == "" {
		return u.Field
	}
	return u.Field + " (" + u.Quantity + "? It is like " + u.Like + ")"
}

// weight orders fields by what is known of them.
func (u *Unknown) weight() int {
	switch {
	case u.Core:
		return 2
	case u.Like != "":
		return 1
	}
	return 0
}

// fieldNames are the names on the pages of a target: an exporter that renames its fields
// prints names that no table has, and lacks quantities.
type fieldNames struct {
	known   []bool    // by ID: the page has the field, with a value or without
	unknown []*Family // of devices, each once
	devices bool      // there are some
	// Of the page before, for which the result stands:
	knownBefore   []bool
	unknownBefore []*Family

	recognized   bool // a page had a core quantity
	unrecognized bool
	written      bool // gpu.exporter.unrecognized was
	found        []Unknown
}

func (n *fieldNames) startPage(fields int) {
	n.known, n.knownBefore = n.knownBefore, n.known
	n.unknown, n.unknownBefore = n.unknownBefore[:0], n.unknown
	if n.known == nil {
		n.known = make([]bool, fields)
	}
	clear(n.known)
}

// noted is the page of a target on which a family was noted last.
type noted struct {
	by   *fieldNames
	page uint64
}

// note notes the family of a row.
func (n *fieldNames) note(s *Series, page uint64) {
	f, here := s.family, noted{n, page}
	if f.field != nil {
		n.known[f.id] = true
		return
	}
	if board := s.labels.row.board; f.dropped || f.passed || f.noted == here || board == "" || board == DropRows || len(n.unknown) >= maxUnknown {
		return
	}
	f.noted = here
	n.unknown = append(n.unknown, f)
}

// judge finds the unknown fields that may have a quantity which the page lacks. A page has
// its families in any order.
func (n *fieldNames) judge(t *devicetable.Table, devices bool) {
	slices.SortFunc(n.unknown, func(a, b *Family) int { return strings.Compare(a.name, b.name) })
	if devices == n.devices && slices.Equal(n.known, n.knownBefore) && slices.Equal(n.unknown, n.unknownBefore) {
		return
	}
	n.devices = devices
	missing := t.Missing(func(id devicetable.ID) bool { return n.known[id] })
	core := slices.ContainsFunc(t.Quantities(), func(q devicetable.Quantity) bool {
		return q.Core && !slices.ContainsFunc(missing, func(m devicetable.Quantity) bool { return m.Name == q.Name })
	})
	n.recognized = n.recognized || core
	// A device that fails may leave nothing but its last error: then no name is unknown.
	n.unrecognized = devices && !core && (len(n.unknown) > 0 || !n.recognized)
	n.found = nil
	for _, f := range n.unknown {
		q, like := t.MaybeOf(f.name, missing)
		if like != "" || n.unrecognized {
			n.found = append(n.found, Unknown{f.name, q.Name, like, q.Core})
		}
	}
	slices.SortStableFunc(n.found, func(a, b Unknown) int { return b.weight() - a.weight() })
}
