// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/fields"
)

// report is what Prometheus says about a scrape, beside the page.
type report struct {
	known             bool
	up                bool
	duration, samples float64
	gone              bool // the target was removed: its up is a stale marker
}

// rawPoint is a point that keeps its family: in OpenTelemetry names one that the
// table does not know, in DCGM names any.
type rawPoint struct {
	family pmetric.Metric
	point  pmetric.NumberDataPoint
	dcgm   bool // to be written under its DCGM name, with all its labels
}

// read sorts all rows of one scrape to their devices.
func (t *Target) read(md pmetric.Metrics) {
	t.page.number++
	t.page.time = 0
	t.page.order = t.page.order[:0]
	t.page.loose = t.page.loose[:0]
	t.page.refused = Refused{}
	t.page.report = report{}
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, family := range sm.Metrics().All() {
				t.readFamily(family)
			}
		}
	}
}

func (t *Target) readFamily(family pmetric.Metric) {
	points, ok := numberPoints(family)
	if !ok {
		t.page.refused[WrongType] += otherPoints(family)
		return
	}
	name := family.Name()
	if !strings.HasPrefix(name, "DCGM_") && !strings.HasPrefix(name, "dcgm_") {
		if !t.page.report.read(name, points) {
			t.page.refused[NotDCGM] += points.Len()
		}
		return
	}
	id, known := fields.ByName(name)
	if t.page.sharing = known && sharedOut(id) != notShared; t.page.sharing {
		t.families++
	}
	for _, point := range points.All() {
		t.readRow(family, point, id, known)
	}
	if t.page.sharing {
		t.settleShares(id)
	}
}

func (t *Target) readRow(family pmetric.Metric, point pmetric.NumberDataPoint, id fields.ID, known bool) {
	refused := &t.page.refused
	if point.Flags().NoRecordedValue() {
		// A silent exporter's series age, they do not end: gpu_pod and gpu_summary
		// alone know when one has ended.
		refused[StaleMarker]++
		return
	}
	v := point.DoubleValue()
	if reason, ok := check(v, id, known); !ok {
		refused[reason]++
		return
	}
	if t.page.time == 0 {
		t.page.time = point.Timestamp()
	}
	r := &t.row
	r.read(point.Attributes())
	if r.uuid == "" {
		t.readLoose(family, point, known)
		return
	}
	d := t.device(r)
	if d == nil {
		refused[Limit]++
		return
	}
	place, ok := d.heldBy(&r.holder)
	if !ok {
		refused[Limit]++ // the row's value still counts
	}
	if t.opts.DCGM {
		d.raw = append(d.raw, rawPoint{family, point, true})
	}
	switch {
	case known:
		d.take(id, v, point, &r.holder)
		if t.page.sharing {
			t.noteShare(d, place, v, &r.holder)
		}
	case !t.opts.OTel:
	case t.opts.DropUnmapped:
		refused[Unmapped]++
	default:
		d.raw = append(d.raw, rawPoint{family, point, false})
	}
}

// take keeps the value of a known field, on the board where it belongs there.
func (d *device) take(id fields.ID, v float64, point pmetric.NumberDataPoint, h *holder) {
	field := &fields.All[id]
	rank := rankOwn
	if !h.empty() {
		rank = rankHolder
	}
	if field.Scope == fields.Board && d.parent != nil {
		d, rank = d.parent, rankInstance
	}
	if field.Label == "" {
		d.values[id].offer(field.Convert(v), point.Timestamp(), rank, id == fields.XIDLast)
		return
	}
	text := "" // the row of an exporter that has seen no event
	if label, ok := point.Attributes().Get(field.Label); ok {
		text = label.Str()
	}
	d.labelled.offer(id, text, v, point.Timestamp(), rank)
}

// readLoose keeps rows of NVSwitches, CPUs and whatever else is no GPU, under
// the exporter. A known field without a device has no meaning.
func (t *Target) readLoose(family pmetric.Metric, point pmetric.NumberDataPoint, known bool) {
	switch {
	case known:
		t.page.refused[NoDevice]++
	case t.opts.OTel && t.opts.DropUnmapped && !t.opts.DCGM:
		t.page.refused[Unmapped]++
	default:
		if t.opts.DCGM {
			t.page.loose = append(t.page.loose, rawPoint{family, point, true})
		}
		if t.opts.OTel && !t.opts.DropUnmapped {
			t.page.loose = append(t.page.loose, rawPoint{family, point, false})
		}
	}
}

// check says whether v is a value at all.
func check(v float64, id fields.ID, known bool) (Reason, bool) {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return NotANumber, false
	case !known:
		return Sentinel, !fields.UnknownSentinel(v)
	}
	field := &fields.All[id]
	switch {
	case field.Sentinel(v):
		return Sentinel, false
	case v < 0 && !field.Signed:
		return Negative, false
	case v == 0 && field.ZeroIsAbsent:
		return NoSensor, false
	}
	return 0, true
}

// numberPoints returns the points of a gauge or a sum, whatever the TYPE line
// called the family.
func numberPoints(m pmetric.Metric) (pmetric.NumberDataPointSlice, bool) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints(), true
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints(), true
	default:
		return pmetric.NumberDataPointSlice{}, false
	}
}

func otherPoints(m pmetric.Metric) int {
	switch m.Type() {
	case pmetric.MetricTypeHistogram:
		return m.Histogram().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		return m.Summary().DataPoints().Len()
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().DataPoints().Len()
	default:
		return 0
	}
}

// read takes the series that Prometheus adds to a scrape, and reports whether
// name is one of them.
func (r *report) read(name string, points pmetric.NumberDataPointSlice) bool {
	if points.Len() == 0 {
		return true
	}
	last := points.At(points.Len() - 1)
	switch name {
	case "up":
		r.known = true
		r.gone = last.Flags().NoRecordedValue()
		r.up = last.DoubleValue() == 1
	case "scrape_duration_seconds":
		r.duration = last.DoubleValue()
	case "scrape_samples_scraped":
		r.samples = last.DoubleValue()
	case "scrape_samples_post_metric_relabeling", "scrape_series_added", "scrape_timeout_seconds",
		"scrape_sample_limit", "scrape_body_size_bytes":
	default:
		return false
	}
	return true
}
