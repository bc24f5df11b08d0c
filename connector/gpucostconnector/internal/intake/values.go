// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// values reads what is measured on the devices of a resource.
func (x *Intake) values(r *resource) {
	for _, sm := range r.rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			switch m.Name() {
			case names.GPUUtilization.Name, names.HwEnergy.Name, names.HwPower.Name:
				x.valuesOf(r, m)
			}
		}
	}
}

func (x *Intake) valuesOf(r *resource, m pmetric.Metric) {
	dps, ok := points.Numbers(m)
	if !ok || points.IsDelta(m) {
		x.counts.Invalid++
		return
	}
	name := m.Name()
	for _, p := range dps.All() {
		if p.Flags().NoRecordedValue() {
			continue
		}
		at := int64(p.Timestamp() / 1e6)
		if at > x.now+maxAhead || at < x.now-maxAge {
			continue // it was counted when the device was described
		}
		id, isGPU := deviceOf(r, p)
		if !isGPU || id == "" {
			continue
		}
		is := placeOf(id, r.parent)
		b, v := x.boards[is.board], points.Value(p)
		switch {
		case b == nil:
			continue // there are too many
		case is.device != "":
			// The values of a replica are those of the device, or of its own
			// processes: neither is the utilization of the device's part.
			continue
		case name == names.GPUUtilization.Name:
			if task := points.Str(p.Attributes(), names.HwGPUTask); task != "" && task != taskGeneral {
				continue
			}
			if !(v >= 0 && v <= 1) {
				x.counts.Invalid++
				continue
			}
		case is.part != is.board || r.parent != "":
			// Energy and power exist of the board alone; drivers and exporters
			// repeat them on each instance.
			continue
		case !(v >= 0):
			x.counts.Invalid++
			continue
		}
		x.value(b, value{name, is.part, at, v})
	}
}

// taskGeneral is the hw.gpu.task that stands for the whole device.
const taskGeneral = "general"

// gauges reads the gauges of a resource that prices and intensities are taken from.
func (x *Intake) gauges(r *resource) {
	for _, sm := range r.rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			g, is := x.cfg.Gauges[m.Name()]
			if !is {
				continue
			}
			dps, ok := points.Numbers(m)
			if !ok || points.IsDelta(m) {
				x.counts.Invalid++
				continue
			}
			for _, p := range dps.All() {
				at, ok := x.timeOf(p.Timestamp())
				if !ok || p.Flags().NoRecordedValue() {
					continue
				}
				key := ""
				for _, name := range g.Keys {
					key = cmp.Or(key, points.Str(p.Attributes(), name), points.Str(r.attrs, name))
				}
				if tooLong(r.cluster, key) || !g.Observe(r.cluster, strings.Clone(key), time.UnixMilli(at), points.Value(p)) {
					x.counts.Invalid++
				}
			}
		}
	}
}
