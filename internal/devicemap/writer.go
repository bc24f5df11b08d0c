// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Writer writes the series of one device. Points of one metric must be written
// one after the other; they land in one Metric.
type Writer struct {
	target  *Target
	device  *Device // nil for what is about no device
	time    pcommon.Timestamp
	metrics pmetric.MetricSlice
	metric  *names.Metric
	points  pmetric.NumberDataPointSlice
}

// Time is the time of the page.
func (w *Writer) Time() pcommon.Timestamp { return w.time }

// Beyond counts a row that is over a limit of the target. The first limit of a page is
// reported.
func (w *Writer) Beyond(limit Over) { w.target.page.beyond(limit) }

// Point appends a point of m with the device's identity.
func (w *Writer) Point(m *names.Metric) pmetric.NumberDataPoint {
	if w.metric != m {
		w.metric = m
		w.points = m.Init(w.metrics.AppendEmpty())
	}
	p := w.points.AppendEmpty()
	p.SetTimestamp(w.time)
	attrs := p.Attributes()
	attrs.EnsureCapacity(3)
	attrs.PutStr(names.HwID, w.device.id)
	if m.Generic() {
		attrs.PutStr(names.HwType, names.HwTypeGPU)
	}
	return p
}

// Value appends a point of m with a value in the metric's unit.
func (w *Writer) Value(m *names.Metric, v float64) pmetric.NumberDataPoint {
	p := w.Point(m)
	setValue(p, m, v)
	return p
}

func setValue(p pmetric.NumberDataPoint, m *names.Metric, v float64) {
	if m.Int() {
		p.SetIntValue(int64(math.Round(v)))
		return
	}
	p.SetDoubleValue(v)
}

// State appends a point of m that is 1 or 0, with an attribute.
func (w *Writer) State(m *names.Metric, on bool, key, text string) pmetric.NumberDataPoint {
	p := w.Point(m)
	p.SetIntValue(int64(flag(on)))
	p.Attributes().PutStr(key, text)
	return p
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

// writeDevice writes all series of the device.
func (w *Writer) writeDevice() {
	if w.target.opts.OTel {
		w.metrics.EnsureCapacity(32)
		w.writeMemory()
		w.writeTable()
		if w.device.derivation != nil {
			w.device.derivation.Write(w.device, w)
		}
	}
	w.writeRaw(w.device.raw, w.device.id)
}

// writeTable writes the series that are one field's value each.
func (w *Writer) writeTable() {
	d := w.device
	table := w.target.vendor.Table
	for i := range table.Series {
		s := &table.Series[i]
		x := d.values.first(s.From)
		if x.rank == rankNone || d.values.first(s.Unless).rank != rankNone {
			continue
		}
		p := w.Value(s.Metric, x.V)
		if s.Metric.Kind == names.Counter {
			p.SetStartTimestamp(d.starts[i].Observe(x.V, w.time))
		}
		if s.Key != "" {
			p.Attributes().PutStr(s.Key, s.Value)
		}
		if s.Key2 != "" {
			p.Attributes().PutStr(s.Key2, s.Value2)
		}
	}
}

// writeMemory writes usage, limit and their ratio.
func (w *Writer) writeMemory() {
	fields := &w.target.vendor.Memory
	usage := w.device.values.first(fields.Used)
	limit, limited := w.device.values.memoryLimit(fields)
	if usage.rank != rankNone {
		w.Value(&names.GPUMemoryUsage, usage.V)
	}
	if limited {
		w.Value(&names.GPUMemoryLimit, limit)
	}
	if usage.rank != rankNone && limited && limit > 0 {
		w.Value(&names.GPUMemoryUtilization, usage.V/limit)
	}
}
