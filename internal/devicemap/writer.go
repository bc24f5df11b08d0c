// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"maps"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
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

// Metrics are those of the device so far, for what writes metrics of its own.
func (w *Writer) Metrics() pmetric.MetricSlice { return w.metrics }

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
		if v = math.Round(v); v >= beyondInt { // a sum; check refuses what the page has
			p.SetIntValue(math.MaxInt64)
			return
		}
		p.SetIntValue(int64(v))
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

var healthStates = [...]string{"pass", "warn", "fail"}

// Health appends one point for each state of a health watch: 1 for the state that it is in
// (0 pass, 1 warn, 2 fail), 0 for the other two.
func (w *Writer) Health(watch string, in int) {
	for i, state := range healthStates {
		p := w.State(&names.GPUHealthStatus, i == in, names.GPUHealthState, state)
		p.Attributes().PutStr(names.GPUHealthWatch, watch)
	}
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

// writeTable writes the series that are one field's value each, or one of each row.
func (w *Writer) writeTable() {
	d := w.device
	table := w.target.vendor.Table
	for i := range table.Series {
		s := &table.Series[i]
		switch {
		case d.anyOf(s.Unless):
		case s.RowKey != "":
			w.writeRows(i, s)
		case s.Row != "":
			for _, id := range s.From {
				if x := d.labelled[id][s.Row]; x.Known() {
					w.writeSeries(s, &table.Fields[id], x.V, &d.starts[i])
					break
				}
			}
		default:
			for _, id := range s.From {
				if x := &d.values[id]; x.Known() {
					w.writeSeries(s, &table.Fields[id], x.V, &d.starts[i])
					break
				}
			}
		}
	}
}

// writeSeries writes the point of a series, and reports it, or nothing for a reading that
// may be a glitch.
func (w *Writer) writeSeries(s *devicetable.Series, f *devicetable.Field, v float64, c *Cumulative) (p pmetric.NumberDataPoint, ok bool) {
	var start pcommon.Timestamp
	if s.Metric.Kind == names.Counter {
		if !f.Glitches {
			v = c.hold(v, f.Step())
			start = c.Observe(v, w.time)
		} else {
			var glitch bool
			if start, ok, glitch = c.ObserveSteady(v, w.time); !ok {
				return p, false
			}
			if glitch {
				w.target.page.refused[Implausible]++
			}
		}
	}
	p = w.Value(s.Metric, v)
	if start != 0 {
		p.SetStartTimestamp(start)
	}
	if s.Key != "" {
		p.Attributes().PutStr(s.Key, s.Value)
	}
	if s.Key2 != "" {
		p.Attributes().PutStr(s.Key2, s.Value2)
	}
	return p, true
}

// rowStarts are the start times of a series of rows, by the texts of the rows.
type rowStarts map[string]*Cumulative

// writeRows writes a point for each row of the first field that has any.
func (w *Writer) writeRows(i int, s *devicetable.Series) {
	d := w.device
	for _, id := range s.From {
		texts := slices.Sorted(maps.Keys(d.labelled[id]))
		if len(texts) > 0 && texts[0] == "" { // a row without its label
			texts = texts[1:]
		}
		if len(texts) == 0 {
			continue
		}
		if d.rowStarts == nil {
			d.rowStarts = map[int]rowStarts{}
		}
		starts := d.rowStarts[i]
		if starts == nil {
			starts = rowStarts{}
			d.rowStarts[i] = starts
		}
		for _, text := range texts {
			c := starts[text]
			if c == nil {
				c = &Cumulative{}
				starts[text] = c
			}
			p, ok := w.writeSeries(s, &w.target.vendor.Table.Fields[id], d.labelled[id][text].V, c)
			if ok {
				putRow(p.Attributes(), s.RowKey, text)
			}
		}
		// What has left the page for good is not kept; a gap is no restart.
		if len(starts) > 2*len(texts)+16 {
			maps.DeleteFunc(starts, func(text string, _ *Cumulative) bool {
				_, there := d.labelled[id][text]
				return !there
			})
		}
		return
	}
}

// putRow writes the text of a row, or the texts of its labels, with as many keys.
func putRow(attrs pcommon.Map, keys, text string) {
	for keys != "" {
		var key, value string
		key, keys, _ = strings.Cut(keys, ",")
		if value = text; keys != "" {
			value, text, _ = strings.Cut(text, ",")
		}
		if value != "" {
			attrs.PutStr(key, value)
		}
	}
}

// writeMemory writes usage, limit and their ratio.
func (w *Writer) writeMemory() {
	fields := &w.target.vendor.Memory
	usage := w.device.values.first(fields.Used)
	limit, limited := w.device.values.memoryLimit(fields)
	if fields.Bounded && usage.Known() && limited && usage.V > 1.05*limit {
		w.target.page.refused[Implausible]++
		usage = Reading{}
	}
	if usage.rank != rankNone {
		w.Value(&names.GPUMemoryUsage, usage.V)
	}
	if limited {
		w.Value(&names.GPUMemoryLimit, limit)
	}
	if usage.rank != rankNone && limited && limit > 0 {
		ratio := usage.V / limit
		if fields.Bounded {
			ratio = min(ratio, 1)
		}
		w.Value(&names.GPUMemoryUtilization, ratio)
	}
}
