// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendorpages

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/vendors"
)

// key is a series of a device.
type key struct{ id, metric, of string }

// observed are the points of one batch.
type observed struct {
	values  map[key]float64
	parents map[string]string    // hw.parent by hw.id
	parts   map[string][2]string // gpu.partition.id and .profile by hw.id
	pci     map[string]string    // gpu.pci.address by hw.id
	twice   []string
}

// read collects the points that are about devices.
func read(md pmetric.Metrics) *observed {
	o := &observed{values: map[key]float64{}, parents: map[string]string{}, parts: map[string][2]string{}, pci: map[string]string{}}
	for _, rm := range md.ResourceMetrics().All() {
		resource := rm.Resource().Attributes()
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for _, p := range numbers(m).All() {
					o.add(m.Name(), p, resource)
				}
			}
		}
	}
	return o
}

func numbers(m pmetric.Metric) pmetric.NumberDataPointSlice {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints()
	}
	return pmetric.NewNumberDataPointSlice()
}

func (o *observed) add(metric string, p pmetric.NumberDataPoint, resource pcommon.Map) {
	text := func(name string) string {
		if v, ok := p.Attributes().Get(name); ok {
			return v.AsString()
		}
		if v, ok := resource.Get(name); ok {
			return v.AsString()
		}
		return ""
	}
	id := text("hw.id")
	if id == "" {
		return
	}
	var of []string
	for _, name := range vendors.Attributes {
		if v, ok := p.Attributes().Get(name); ok {
			of = append(of, v.AsString())
		}
	}
	k := key{id, metric, strings.Join(of, ",")}
	v := p.DoubleValue()
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		v = float64(p.IntValue())
	}
	if _, there := o.values[k]; there && !states[metric] {
		o.twice = append(o.twice, fmt.Sprintf("%s %s{%s} is there twice", id, metric, k.of))
	}
	o.values[k] = v
	o.pci[id] = text("gpu.pci.address")
	o.parents[id], o.parts[id] = text("hw.parent"), [2]string{text("gpu.partition.id"), text("gpu.partition.profile")}
}

// states are metrics whose points differ by attributes that no reading has.
var states = map[string]bool{"gpu.health.status": true, "gpu.ecc.errors": true, "hw.temperature.limit": true, "gpu.pcie.errors": true, "gpu.memory.io": true}

// compare lists what differs from the truth of a node. Readings that are open are not
// compared, but their series may be there once only.
func compare(got *observed, want []vendors.Device) (differences []string) {
	differences = append(differences, got.twice...)
	differ := func(format string, args ...any) { differences = append(differences, fmt.Sprintf(format, args...)) }
	known := map[string]bool{}
	for i := range want {
		d := &want[i]
		known[d.ID] = true
		if parent, there := got.parents[d.ID]; there {
			if parent != d.Parent {
				differ("%s: hw.parent %q, want %q", d.ID, parent, d.Parent)
			}
			if has := got.parts[d.ID]; d.Parent != "" && (has[0] != d.Partition || has[1] != d.Profile) {
				differ("%s: partition %q, want %q of %q", d.ID, has, d.Partition, d.Profile)
			}
		}
		if pci := got.pci[d.ID]; pci != "" && pci != d.PCI {
			differ("%s: gpu.pci.address %q, want %q", d.ID, pci, d.PCI)
		}
		for _, r := range d.Readings {
			v, there := got.values[key{d.ID, r.Metric, r.Of}]
			switch {
			case r.State == vendors.Open:
			case r.State == vendors.Absent && there:
				differ("%s: %s{%s} is %v, want none", d.ID, r.Metric, r.Of, v)
			case r.State == vendors.Known && !there:
				differ("%s: %s{%s} is absent, want %v", d.ID, r.Metric, r.Of, r.Value)
			case r.State == vendors.Known && math.Abs(v-r.Value) > r.Tolerance*math.Abs(r.Value)+1e-12:
				differ("%s: %s{%s} is %v, want %v", d.ID, r.Metric, r.Of, v, r.Value)
			}
		}
	}
	unknown := map[string]bool{}
	for k := range got.values {
		if !known[k.id] && !unknown[k.id] {
			unknown[k.id] = true
			differ("%s is no device of the node", k.id)
		}
	}
	slices.Sort(differences)
	return differences
}
