// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporterpage

import (
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvidia"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/dcgm"
)

// Unjudged is a reason against the health of a board that cannot be judged by the page.
type Unjudged struct {
	Reason string
	// Lacks are the fields that it needs. Where an exporter may not know one, its line is a
	// comment: an exporter does not start with a field that it does not know.
	Lacks []Lack
	// Optional: it needs nothing but optional fields.
	Optional bool
}

// optional are fields that not every exporter knows, or prints for the right GPU.
var optional = []devicetable.ID{nvidia.RecoveryAction, nvidia.FabricHealth, nvidia.P2PStatus}

// younger are fields that the shipped list of fields has, and that exporters before 4.4.1
// do not know.
var younger = []devicetable.ID{nvidia.SRAMExceeded}

// decides are the fields of metrics of which not each series decides about health.
var decides = map[string][]devicetable.ID{
	names.HwErrors.Name:        {nvidia.ECCDBEVolatile},
	names.GPURemappedRows.Name: {nvidia.RemappedUncorr},
}

// fieldsOf are the fields of which one gives a metric.
func fieldsOf(metric string) (fields []devicetable.ID) {
	if fields = decides[metric]; fields != nil {
		return fields
	}
	for _, s := range dcgm.Table.Series {
		if s.Metric.Name == metric {
			fields = append(fields, s.From...)
		}
	}
	for _, d := range dcgm.Table.Derived {
		if d.Metric.Name == metric {
			fields = append(fields, d.From...)
		}
	}
	return fields
}

// Unjudged returns the reasons against the health of a board that fit a model on the page,
// and that cannot be judged by it. all is how many fit. tag is that of the exporter's
// image, where it is known.
func (p *Page) Unjudged(tag string) (unjudged []Unjudged, all int) {
	there := func(metric string) bool {
		if metric == names.GPUXIDLast.Name && p.QuietXID() {
			return true
		}
		return slices.ContainsFunc(fieldsOf(metric), func(id devicetable.ID) bool { return p.seen[id] })
	}
	for _, r := range names.HealthReasons() {
		judged := r.Judged(there)
		if !p.fits(r, judged) {
			continue
		}
		all++
		if judged {
			continue
		}
		// The set of which the least is missing; of those alike the last one, which boards
		// of today have.
		var least Unjudged
		for _, set := range r.Needs {
			if slices.ContainsFunc(set, func(metric string) bool { return len(fieldsOf(metric)) == 0 }) {
				continue // no exporter of DCGM has it
			}
			if one := p.without(r.Name, set, there, tag); least.Reason == "" || len(one.Lacks) <= len(least.Lacks) {
				least = one
			}
		}
		unjudged = append(unjudged, least)
	}
	return unjudged, all
}

// fits reports whether a reason is a check of a model on the page. A page without models
// may be of any of NVIDIA's.
func (p *Page) fits(r names.HealthReason, judged bool) bool {
	if len(p.Models) == 0 {
		return r.Check() && r.Only&^health.NVIDIA == 0
	}
	return slices.ContainsFunc(p.Models, func(model string) bool { return r.Fits(health.KindOf("", model), judged) })
}

func (p *Page) without(reason string, metrics []string, there func(string) bool, tag string) Unjudged {
	out := Unjudged{Reason: reason, Optional: true}
	for _, metric := range metrics {
		fields := fieldsOf(metric)
		if there(metric) || len(fields) == 0 {
			continue
		}
		id := fields[0]
		_, blank := p.seen[id]
		out.Lacks = p.lacking(out.Lacks, reason, id, blank, tag)
		out.Optional = out.Optional && slices.Contains(optional, id)
		if last := &out.Lacks[len(out.Lacks)-1]; last.Line != "" && !p.newName && (slices.Contains(optional, id) || slices.Contains(younger, id)) {
			last.Line = "# where the exporter knows it, else it does not start: " + last.Line
		}
	}
	return out
}
