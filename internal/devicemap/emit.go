// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// writer writes the series of one device. Points of one metric must be written
// one after the other; they land in one Metric.
type writer struct {
	target  *Target
	device  *device
	time    pcommon.Timestamp
	metrics pmetric.MetricSlice
	metric  *names.Metric
	points  pmetric.NumberDataPointSlice
}

// writeDevices appends one resource a device.
func (t *Target) writeDevices(md pmetric.Metrics, node, exporterPod string) {
	order := t.page.order
	if t.opts.OTel {
		for _, d := range order {
			d.sumInstances(t.page.number)
		}
	}
	md.ResourceMetrics().EnsureCapacity(len(order) + 1)
	for _, d := range order {
		rm := md.ResourceMetrics().AppendEmpty()
		d.putResource(rm.Resource().Attributes(), &t.opts, node, exporterPod)
		w := writer{target: t, device: d, time: d.lastSeen, metrics: t.scope(rm).Metrics()}
		if t.opts.OTel {
			w.metrics.EnsureCapacity(32)
			w.writeMemory()
			w.writeTable()
			w.writeThrottle()
			w.writeHealth()
			w.writeXID()
		}
		w.writeRaw(d.raw, d.id)
	}
	md.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
		return rm.ScopeMetrics().At(0).Metrics().Len() == 0
	})
}

func (t *Target) scope(rm pmetric.ResourceMetrics) pmetric.ScopeMetrics {
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(t.opts.ScopeName)
	sm.Scope().SetVersion(t.opts.ScopeVersion)
	return sm
}

// point appends a point of m with the device's identity.
func (w *writer) point(m *names.Metric) pmetric.NumberDataPoint {
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

func (w *writer) value(m *names.Metric, v float64) pmetric.NumberDataPoint {
	p := w.point(m)
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

func (w *writer) state(m *names.Metric, on bool, key, text string) pmetric.NumberDataPoint {
	p := w.point(m)
	if on {
		p.SetIntValue(1)
	} else {
		p.SetIntValue(0)
	}
	p.Attributes().PutStr(key, text)
	return p
}

// writeTable writes the series that are one field's value each.
func (w *writer) writeTable() {
	d := w.device
	for i := range devicetable.Table {
		s := &devicetable.Table[i]
		x := d.first(s.From)
		if x.rank == rankNone || d.first(s.Unless).rank != rankNone {
			continue
		}
		p := w.value(s.Metric, x.v)
		if s.Metric.Kind == names.Counter {
			p.SetStartTimestamp(d.starts[i].observe(x.v, w.time))
		}
		if s.Key != "" {
			p.Attributes().PutStr(s.Key, s.Value)
		}
		if s.Key2 != "" {
			p.Attributes().PutStr(s.Key2, s.Value2)
		}
	}
}

func (d *device) first(ids []devicetable.ID) value {
	for _, id := range ids {
		if d.values[id].rank != rankNone {
			return d.values[id]
		}
	}
	return value{}
}

// writeMemory writes usage, limit and their ratio.
func (w *writer) writeMemory() {
	usage := w.device.values[devicetable.FBUsed]
	limit, limited := w.device.memoryLimit()
	if usage.rank != rankNone {
		w.value(&names.GPUMemoryUsage, usage.v)
	}
	if limited {
		w.value(&names.GPUMemoryLimit, limit)
	}
	if usage.rank != rankNone && limited && limit > 0 {
		w.value(&names.GPUMemoryUtilization, usage.v/limit)
	}
}

// memoryLimit is the size of the memory in bytes. Drivers from 510 on do not
// count the reserved part as used; older ones do not report it.
func (d *device) memoryLimit() (float64, bool) {
	if total := d.values[devicetable.FBTotal]; total.rank != rankNone {
		return total.v, true
	}
	used, free := d.values[devicetable.FBUsed], d.values[devicetable.FBFree]
	if used.rank == rankNone || free.rank == rankNone {
		return 0, false
	}
	return used.v + free.v + d.values[devicetable.FBReserved].v, true
}

// sumInstances gives a GPU in MIG mode the memory of its instances where the
// page has no row of its own for it, so that sums over physical devices hold.
// An instance that does not say would make the sum too small: then there is none.
func (d *device) sumInstances(page uint64) {
	if len(d.instances) == 0 || d.values[devicetable.FBUsed].rank != rankNone {
		return
	}
	var usage, limit, reserved float64
	onPage := 0
	hasUsage, hasLimit, hasReserved := true, true, true
	for _, i := range d.instances {
		if i.seen != page {
			continue
		}
		onPage++
		u, r := i.values[devicetable.FBUsed], i.values[devicetable.FBReserved]
		l, limited := i.memoryLimit()
		usage, limit, reserved = usage+u.v, limit+l, reserved+r.v
		hasUsage = hasUsage && u.rank != rankNone
		hasReserved = hasReserved && r.rank != rankNone
		hasLimit = hasLimit && limited
	}
	set := func(id devicetable.ID, v float64, ok bool) {
		if ok && onPage > 0 {
			d.values[id].offer(v, rankInstance, false)
		}
	}
	set(devicetable.FBUsed, usage, hasUsage)
	set(devicetable.FBTotal, limit, hasLimit)
	set(devicetable.FBReserved, reserved, hasReserved)
}
