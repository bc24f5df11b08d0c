// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package pagetexttest reads and maps pages of a vendor's exporter as a receiver does, and
// renders what becomes of them, for tests.
package pagetexttest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext"
)

// Interval is the time between two scrapes.
const Interval = 15 * time.Second

// Exporter is an exporter that is scraped page after page.
type Exporter struct {
	t      testing.TB
	vendor *devicemap.Vendor
	reader *pagetext.Reader
	target *devicemap.Target
	now    time.Time
}

// New returns an exporter that was never scraped. Options without a choice of names stand
// for OpenTelemetry names.
func New(t testing.TB, v *devicemap.Vendor, opts devicemap.Options) *Exporter {
	if !opts.AsIs {
		opts.OTel = true
	}
	if opts.FrozenAfter == 0 {
		opts.FrozenAfter, opts.FrozenFor = 5, time.Minute
	}
	return &Exporter{
		t: t, vendor: v, reader: pagetext.NewReader(v, pagetext.Options{Job: v.Name, Instance: "node-a:1"}),
		target: devicemap.NewTarget(v, opts), now: time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC),
	}
}

// Scrape maps a page that consists of lines, one interval after the one before. What
// is no page gives what a failed scrape gives.
func (e *Exporter) Scrape(lines ...string) Result {
	return e.ScrapePage([]byte(strings.Join(lines, "\n") + "\n"))
}

// ScrapePage is Scrape of a whole page.
func (e *Exporter) ScrapePage(body []byte) Result {
	e.t.Helper()
	e.now = e.now.Add(Interval)
	rows, read, err := e.reader.Read(body, nil)
	page := &devicemap.Page{Time: pcommon.NewTimestampFromTime(e.now), Up: err == nil, Duration: 0.25, Samples: read.Samples, Rows: rows, Refused: read.Refused, Over: read.Over}
	return Result{e.target.Map(page, devicemap.Exporter{Address: "node-a", Port: 1}), e.vendor}
}

// Result is what became of a page.
type Result struct {
	devicemap.Result
	vendor *devicemap.Vendor
}

// Refusals are the counts of rows that became no data, by reason, without zeros.
func (r Result) Refusals() map[string]int {
	refused := map[string]int{}
	for reason, n := range r.Refused {
		if n > 0 {
			refused[r.vendor.Reason(devicemap.Reason(reason))] = n
		}
	}
	return refused
}

// IDs are the hw.id of all resources, sorted. It fails the test where two have the same.
func (r Result) IDs(t testing.TB) []string {
	t.Helper()
	ids := map[string]bool{}
	for _, rm := range r.Metrics.ResourceMetrics().All() {
		if id, ok := rm.Resource().Attributes().Get(names.HwID); ok {
			require.False(t, ids[id.Str()], "two resources of %s", id.Str())
			ids[id.Str()] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// Resource is that of a device, nil for an unknown one.
func (r Result) Resource(device string) map[string]any {
	for _, rm := range r.Metrics.ResourceMetrics().All() {
		if id, ok := rm.Resource().Attributes().Get(names.HwID); ok && id.Str() == device {
			return rm.Resource().Attributes().AsRaw()
		}
	}
	return nil
}

// Points are those of a device, or with "" those about the exporter, as
// "metric{attributes} value", without hw.id, hw.type and the exporter's address, sorted.
func (r Result) Points(device string) []string {
	lines := []string{}
	for _, rm := range r.Metrics.ResourceMetrics().All() {
		id, ok := rm.Resource().Attributes().Get(names.HwID)
		if ok != (device != "") || ok && id.Str() != device {
			continue
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for _, p := range NumberPoints(m).All() {
					lines = append(lines, Render(m, p))
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// Only are the points of one metric of a device.
func (r Result) Only(device, metric string) []string {
	return slices.DeleteFunc(r.Points(device), func(line string) bool { return !strings.HasPrefix(line, metric+"{") })
}

// NumberPoints are the points of a metric, which is a gauge or a sum.
func NumberPoints(m pmetric.Metric) pmetric.NumberDataPointSlice {
	if m.Type() == pmetric.MetricTypeSum {
		return m.Sum().DataPoints()
	}
	return m.Gauge().DataPoints()
}

// Value is that of a point, whatever its type.
func Value(p pmetric.NumberDataPoint) float64 {
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(p.IntValue())
	}
	return p.DoubleValue()
}

// Render writes a point as Points does.
func Render(m pmetric.Metric, p pmetric.NumberDataPoint) string {
	var attrs []string
	for k, v := range p.Attributes().All() {
		switch k {
		case names.HwID, names.HwType, names.ServerAddress, names.ServerPort:
		default:
			attrs = append(attrs, k+"="+v.AsString())
		}
	}
	slices.Sort(attrs)
	return fmt.Sprintf("%s{%s} %.10g", m.Name(), strings.Join(attrs, ","), Value(p))
}
