// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicetable

import (
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/likename"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Quantity is something that people watch: a metric, or one series of it. It is missing
// where a page has none of its fields, whatever their values.
type Quantity struct {
	// Name is the metric's, with the series' attribute.
	Name string
	// Core quantities are the utilization, memory and power of a device.
	Core bool
	// Fields can give the value; none of them is computed.
	Fields []ID
}

// watched are the metrics of quantities that are missed when a page lacks them: those of the
// cards, the events and the health of a device. Rates of links and pipes are not among them:
// pages have fields like them that no table has.
var watched = []*names.Metric{
	&names.GPUUtilization, &names.GPUEngineActive, &names.GPUSMActive, &names.GPUMemoryUsage, &names.GPUMemoryLimit, &names.HwPower,
	&names.HwEnergy, &names.HwTemperature, &names.GPUClockFrequency, &names.HwErrors, &names.GPUXIDLast, &names.GPUXIDErrors,
	&names.GPURemappedRows, &names.GPURowRemapFailure, &names.GPURowRemapPending, &names.GPURetiredPages, &names.GPURetiredPending,
	&names.GPUThrottleActive, &names.GPUThrottleDuration,
}

// core reports whether a series is of a quantity without which nothing is known of a device.
func (s *Series) core() bool {
	switch s.Metric {
	case &names.GPUUtilization:
		return s.Value == "general"
	case &names.GPUEngineActive, &names.GPUSMActive, &names.GPUMemoryUsage, &names.GPUMemoryLimit, &names.HwPower:
		return true
	}
	return false
}

func (t *Table) findQuantities() (all []Quantity) {
	add := func(s *Series) {
		if !slices.Contains(watched, s.Metric) {
			return
		}
		q := Quantity{Name: s.Metric.Name, Core: s.core()}
		if s.Value != "" {
			q.Name += " (" + s.Value + ")"
		}
		i := slices.IndexFunc(all, func(known Quantity) bool { return known.Name == q.Name })
		if i < 0 {
			i, all = len(all), append(all, q)
		}
		for _, id := range s.From {
			for _, id := range t.printed(id) {
				if !slices.Contains(all[i].Fields, id) {
					all[i].Fields = append(all[i].Fields, id)
				}
			}
		}
	}
	for i := range t.Series {
		add(&t.Series[i])
	}
	for _, d := range t.Derived {
		add(&Series{Metric: d.Metric, From: d.From})
	}
	return slices.DeleteFunc(all, func(q Quantity) bool { return len(q.Fields) == 0 })
}

// printed are the fields on pages that a field is made of.
func (t *Table) printed(id ID) []ID {
	switch f := &t.Fields[id]; {
	case f.Lacking:
		return nil
	case f.Computed:
		return f.Needs
	default:
		return []ID{id}
	}
}

// Quantities are the quantities that people watch, in the order of the table.
func (t *Table) Quantities() []Quantity { return t.quantities }

// Missing are those quantities of which a page has no field.
func (t *Table) Missing(onPage func(ID) bool) (missing []Quantity) {
	for _, q := range t.quantities {
		if !slices.ContainsFunc(q.Fields, onPage) {
			missing = append(missing, q)
		}
	}
	return missing
}

// MaybeOf returns the quantity, of some, that a family which is not in the table may be of,
// with the known name that is most like its own; no name where none is likely. Of names that are
// equally like it, one with the same first word counts.
func (t *Table) MaybeOf(family string, some []Quantity) (quantity Quantity, like string) {
	most := 0.
	for _, q := range some {
		for _, id := range q.Fields {
			f := &t.Fields[id]
			for _, name := range append([]string{f.Name}, f.Aliases...) {
				l := likename.Likeness(family, name)
				if l >= likename.Likely && (l > most || l == most && sameBeginning(family, name) && !sameBeginning(family, like)) {
					quantity, like, most = q, name, l
				}
			}
		}
	}
	return quantity, like
}

// sameBeginning reports whether two names have the same first word.
func sameBeginning(a, b string) bool {
	a, _, _ = strings.Cut(a, "_")
	b, _, _ = strings.Cut(b, "_")
	return a == b
}
