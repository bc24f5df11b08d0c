// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/age"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
)

// measured is a device and the values of it that count.
type measured struct {
	device *inventory.Device
	values consoleapi.Values
}

// figures are devices with gauges that are shown, and the values that count.
func figures(j *age.Judge, devices []*inventory.Device, shown map[*inventory.Device]consoleapi.Device) []measured {
	all := make([]measured, 0, len(devices))
	for _, d := range devices {
		v := consoleapi.Values{}
		if d.Current(j, d.Measured) || d.Measured.IsZero() && d.Current(j, d.Seen) {
			v = shown[d].Values
		}
		v.MemoryTotal = d.Amounts.Capacity
		all = append(all, measured{d, v})
	}
	return all
}

// fields are the nine fields, and which devices should have them: activity is that
// of instances where a device is split, replicas have their device's memory, and
// power is the board's. Not every vendor measures each.
var fields = []struct {
	name     string
	of       func(*consoleapi.Values) **float64
	coverage func(*consoleapi.Coverages) **consoleapi.Coverage
	mean     bool
	due      func(*inventory.Device) bool
	measured func(*inventory.Device) bool
}{
	{"utilization", func(v *consoleapi.Values) **float64 { return &v.Utilization }, func(c *consoleapi.Coverages) **consoleapi.Coverage { return &c.Utilization }, true, undivided, always},
	{"tensor", func(v *consoleapi.Values) **float64 { return &v.Tensor }, func(c *consoleapi.Coverages) **consoleapi.Coverage { return &c.Tensor }, true, undivided, (*inventory.Device).MeasuresPipes},
	{"sm", func(v *consoleapi.Values) **float64 { return &v.SM }, func(c *consoleapi.Coverages) **consoleapi.Coverage { return &c.SM }, true, undivided, (*inventory.Device).MeasuresPipes},
	{"dram", func(v *consoleapi.Values) **float64 { return &v.DRAM }, func(c *consoleapi.Coverages) **consoleapi.Coverage { return &c.DRAM }, true, undivided, (*inventory.Device).MeasuresPipes},
	{"fp16", func(v *consoleapi.Values) **float64 { return &v.FP16 }, func(c *consoleapi.Coverages) **consoleapi.Coverage { return &c.FP16 }, true, undivided, (*inventory.Device).MeasuresPipes},
	{"fp32", func(v *consoleapi.Values) **float64 { return &v.FP32 }, func(c *consoleapi.Coverages) **consoleapi.Coverage { return &c.FP32 }, true, undivided, (*inventory.Device).MeasuresPipes},
	{"memory_used", func(v *consoleapi.Values) **float64 { return &v.MemoryUsed }, func(c *consoleapi.Coverages) **consoleapi.Coverage { return &c.MemoryUsed }, false, notReplica, always},
	{"memory_total", func(v *consoleapi.Values) **float64 { return &v.MemoryTotal }, func(c *consoleapi.Coverages) **consoleapi.Coverage { return &c.MemoryTotal }, false, notReplica, always},
	{"power", func(v *consoleapi.Values) **float64 { return &v.Power }, func(c *consoleapi.Coverages) **consoleapi.Coverage { return &c.Power }, false, physical, always},
}

func always(*inventory.Device) bool      { return true }
func undivided(d *inventory.Device) bool { return !d.Split() }
func physical(d *inventory.Device) bool  { return d.Parent == "" }
func notReplica(d *inventory.Device) bool {
	_, replica := deviceid.CutReplica(d.ID.Name)
	return replica == ""
}

// notMeasured are the fields without a value that no vendor of the devices measures.
func notMeasured(v *consoleapi.Values, devices []*inventory.Device) []string {
	not := []string{}
	for _, f := range fields {
		if len(devices) > 0 && *f.of(v) == nil && !slices.ContainsFunc(devices, f.measured) {
			not = append(not, f.name)
		}
	}
	return not
}

// over folds the values of devices, the mean of ratios and the sum of amounts over
// those that have them, and reports over how many of those that should.
func over(all []measured) (values consoleapi.Values, coverage consoleapi.Coverages) {
	for _, f := range fields {
		sum, c := 0.0, consoleapi.Coverage{}
		for i := range all {
			v := *f.of(&all[i].values)
			if v != nil {
				sum += *v
				c.Devices++
			}
			if v != nil || f.due(all[i].device) && f.measured(all[i].device) {
				c.Of++
			}
		}
		if c.Of > 0 {
			*f.coverage(&coverage) = &c
		}
		if c.Devices == 0 {
			continue
		}
		if f.mean {
			sum /= float64(c.Devices)
		}
		*f.of(&values) = &sum
	}
	return values, coverage
}

// judge decides which devices are silent as the summary does, so that nothing here
// counts what its averages leave out: those of missing pods, and those with a newest
// utilization older than the oldest point in the averages of their service.
func judge(inv *inventory.Inventory, services []*service, missing *model.Vector) {
	type name struct{ cluster, slurm, namespace, pod string }
	gone := map[name]bool{}
	for _, sample := range *missing {
		if m := sample.Metric; sample.Value == 1 {
			k := inventory.KeyOf(m)
			gone[name{k.Cluster, k.Slurm, k.Namespace, inventory.UnitOf(m)}] = true
		}
	}
	oldest := map[Key]time.Time{}
	for _, s := range services {
		if s.DataTime != nil {
			oldest[s.key] = s.DataTime.Add(-time.Second)
		}
	}
	for _, d := range inv.Devices {
		for _, h := range d.Owners {
			t := oldest[inventory.KeyOfOwner(d.ID.Cluster, &h)]
			d.Gone = d.Gone || gone[name{d.ID.Cluster, h.SlurmCluster(), h.Namespace, h.Pod}]
			d.Silent = d.Silent || d.Gone || !d.Measured.IsZero() && d.Measured.Before(t)
		}
	}
}

// hold gives services the devices that they hold.
func hold(inv *inventory.Inventory, services []*service) {
	held := map[Key][]*inventory.Device{}
	for _, d := range inv.Devices {
		if len(d.Parts) > 0 && !d.Whole() {
			continue // the owners of its parts, which are devices of their own
		}
		for i, h := range d.Owners {
			key := Key{Cluster: d.ID.Cluster, Namespace: h.Namespace, Service: optional.Value(h.Service)}
			if h.Service != nil && !hasService(d.Owners[:i], h) {
				held[key] = append(held[key], d)
			}
		}
	}
	for _, s := range services {
		s.held = held[s.key]
	}
}

// known leaves out what amounts do not have.
func known(c consoleapi.Coverages) consoleapi.Coverages {
	c.Tensor, c.SM, c.DRAM, c.FP16, c.FP32 = nil, nil, nil, nil, nil
	return c
}

// perPod is the capacity of a pod of a service, the mean over those that report.
func perPod(key Key, devices []*inventory.Device) *float64 {
	sum, pods := 0.0, map[string]bool{}
	for _, d := range devices {
		if d.Gone || d.Amounts.Capacity == nil {
			continue
		}
		sum += *d.Amounts.Capacity
		for _, h := range d.Owners {
			if h.Namespace == key.Namespace && optional.Value(h.Service) == key.Service {
				pods[h.Pod] = true
			}
		}
	}
	if len(pods) == 0 {
		return nil
	}
	return optional.Pointer(sum / float64(len(pods)))
}

func hasService(all []consoleapi.Holder, h consoleapi.Holder) bool {
	for _, one := range all {
		if one.Namespace == h.Namespace && optional.Value(one.Service) == optional.Value(h.Service) {
			return true
		}
	}
	return false
}

// complete adds to the averages of a service what its devices report. A device is busy from a
// utilization on.
func (s *service) complete(j *age.Judge, busyFrom float64) {
	s.Devices.Held = optional.Plus(s.Devices.Reporting, s.Devices.Missing)
	all := make([]measured, 0, len(s.held))
	busy, current, frozen := 0, 0, time.Time{}
	for _, d := range s.held {
		all = append(all, measured{d, d.Values(j)})
		if !d.FrozenSince.IsZero() {
			s.Devices.Frozen++
			if d.FrozenSince.After(frozen) {
				frozen = d.FrozenSince
			}
		}
		if d.Current(j, d.Measured) && d.Utilization != nil {
			current++
			if *d.Utilization >= busyFrom {
				busy++
			}
		}
	}
	if current > 0 || optional.Zero(s.Devices.Reporting) == 0 && s.Devices.Reporting != nil {
		s.Devices.Busy = &busy
	}
	sums, coverage := over(all)
	s.Coverage = known(coverage)
	s.NotMeasured = notMeasured(&s.Values, s.held)
	// What is silent has not lost its memory: the capacity is that of all devices.
	if total := sums.MemoryTotal; total != nil && (s.Totals.MemoryTotal == nil || *total >= *s.Totals.MemoryTotal) {
		s.Totals.MemoryTotal = total
		if mean := perPod(s.key, s.held); mean != nil {
			s.Values.MemoryTotal = mean
		}
	}
	if s.Devices.Frozen > 0 && s.Devices.Frozen == len(s.held) {
		s.Told = j.Reported(frozen)
		s.Stale = true
	}
}

// summarize sums up the whole fleet. What nothing reports is null.
func summarize(j *age.Judge, busyFrom float64, services []*service, inv *inventory.Inventory, wrong []consoleapi.Reason) consoleapi.FleetSummary {
	out := consoleapi.FleetSummary{
		Services: optional.Pointer(len(services)), Attention: optional.Pointer(0), PodsPending: pending(services).Pods,
		Reasons: wrong[:min(len(wrong), maxReasons)], ReasonsTotal: len(wrong),
	}
	for _, s := range services {
		if consoleapi.Pressing(s.Reasons) {
			*out.Attention++
		}
	}
	counts, allocations := consoleapi.NodeCounts{}, false
	for _, n := range inv.Nodes {
		c := n.Counts()
		counts.Devices += c.Devices
		counts.Held += c.Held
		counts.Idle += c.Idle
		counts.Free += c.Free
		counts.Lost += c.Lost
		counts.Unknown += c.Unknown
		allocations = allocations || !n.Allocated.IsZero()
	}
	if counts.Devices == 0 {
		if len(services) == 0 {
			out.Services, out.Attention = nil, nil
		}
		return out
	}
	sum(j, busyFrom, &out, inv)
	out.DevicesLost = &counts.Lost
	out.Devices, out.DevicesHeld, out.DevicesIdle, out.DevicesUnknown = &counts.Devices, &counts.Held, &counts.Idle, &counts.Unknown
	if allocations {
		out.DevicesFree = &counts.Free
	}
	return out
}

func physicalOf(inv *inventory.Inventory) (all []*inventory.Device) {
	for _, d := range inv.Devices {
		if physical(d) {
			all = append(all, d)
		}
	}
	return all
}

// sum adds up the physical devices.
func sum(j *age.Judge, busyFrom float64, out *consoleapi.FleetSummary, inv *inventory.Inventory) {
	var all []measured
	busy, some := 0, false
	for _, d := range physicalOf(inv) {
		m := measured{d, d.Values(j)}
		all = append(all, m)
		if u := m.values.Utilization; u != nil {
			some = true
			if *u >= busyFrom {
				busy++
			}
		}
	}
	v, coverage := over(all)
	out.Utilization, out.MemoryUsed, out.MemoryTotal, out.Power, out.Coverage = v.Utilization, v.MemoryUsed, v.MemoryTotal, v.Power, known(coverage)
	if some {
		out.DevicesBusy = &busy
	}
}
