// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// current is the one rule of what counts, in cards, bars, tables and sums: a value
// is current while it is no older than stale_after, its exporter is not frozen, and
// the summary does not leave its device out as silent. All else is stale: it is
// shown with its age, and counts nowhere.
func (r *reading) current(d *device, t time.Time) bool { return r.fresh(t) && d.counts() }

// counts reports whether the values of a device are current.
func (d *device) counts() bool { return d.frozenSince.IsZero() && !d.silent }

// reported is how current a device is. What a frozen exporter repeats is as old as the
// exporter has been frozen.
func (r *reading) reportedOf(d *device, t time.Time) consoleapi.Told {
	if !d.frozenSince.IsZero() && d.frozenSince.Before(t) {
		t = d.frozenSince
	}
	reported := r.reported(t)
	reported.Stale = reported.Stale || !t.IsZero() && !d.counts()
	return reported
}

// lastWord is when a device last reported what its pod is judged by.
func (d *device) lastWord() time.Time {
	if d.measured.IsZero() && !d.alive {
		return d.seen // remembered alone
	}
	return d.measured
}

// amounts are the figures of a device that add up; nil is no current value.
type amounts struct {
	used, limit, power *float64
	capacity           *float64 // the limit that was last known
}

// askAmounts asks for the amounts of devices; the function notes them after wait.
func (r *reading) askAmounts(s queries.Selector) func(*inventory) {
	of := func(metric string) *model.Vector { return r.vector(queries.OfDevices(metric, s, r.options.StaleAfter)) }
	used, limit, power := of(queries.MemoryUsage), of(queries.MemoryLimit), of(queries.Power)
	capacity := r.vector(queries.Capacity(s, r.options.Remembered))
	return func(inv *inventory) {
		put := func(v *model.Vector, to func(*device) **float64) {
			for _, sample := range *v {
				if d := inv.devices[placeOf(sample.Metric)]; d != nil {
					*to(d) = pointer(float64(sample.Value))
				}
			}
		}
		put(used, func(d *device) **float64 { return &d.amounts.used })
		put(limit, func(d *device) **float64 { return &d.amounts.limit })
		put(power, func(d *device) **float64 { return &d.amounts.power })
		put(capacity, func(d *device) **float64 { return &d.amounts.capacity })
		for _, d := range inv.devices {
			if d.amounts.capacity == nil {
				d.amounts.capacity = d.amounts.limit
			}
		}
	}
}

// values are those of a device that are current, as far as amounts know them.
func (r *reading) values(d *device) consoleapi.Values {
	v := consoleapi.Values{MemoryTotal: d.amounts.capacity}
	if d.counts() {
		v.MemoryUsed, v.Power = d.amounts.used, d.amounts.power
	}
	if r.current(d, d.measured) {
		v.Utilization = d.utilization
	}
	return v
}

// measured is a device and the values of it that count.
type measured struct {
	device *device
	values consoleapi.Values
}

// measured are devices with gauges that are shown, and the values that count.
func (r *reading) measured(devices []*device, shown map[*device]consoleapi.Device) []measured {
	all := make([]measured, 0, len(devices))
	for _, d := range devices {
		v := consoleapi.Values{}
		if r.current(d, d.measured) || d.measured.IsZero() && r.current(d, d.seen) {
			v = shown[d].Values
		}
		v.MemoryTotal = d.amounts.capacity
		all = append(all, measured{d, v})
	}
	return all
}

// fields are the nine fields, and which devices should have them: activity is that
// of instances where a device is split, replicas have their device's memory, and
// power is the board's.
var fields = []struct {
	of       func(*consoleapi.Values) **float64
	coverage func(*consoleapi.Coverages) **consoleapi.Coverage
	mean     bool
	due      func(*device) bool
}{
	{func(v *consoleapi.Values) **float64 { return &v.Utilization }, func(c *consoleapi.Coverages) **consoleapi.Coverage { return &c.Utilization }, true, undivided},
	{func(v *consoleapi.Values) **float64 { return &v.Tensor }, func(c *consoleapi.Coverages) **consoleapi.Coverage { return &c.Tensor }, true, undivided},
	{func(v *consoleapi.Values) **float64 { return &v.SM }, func(c *consoleapi.Coverages) **consoleapi.Coverage { return &c.SM }, true, undivided},
	{func(v *consoleapi.Values) **float64 { return &v.DRAM }, func(c *consoleapi.Coverages) **consoleapi.Coverage { return &c.DRAM }, true, undivided},
	{func(v *consoleapi.Values) **float64 { return &v.FP16 }, func(c *consoleapi.Coverages) **consoleapi.Coverage { return &c.FP16 }, true, undivided},
	{func(v *consoleapi.Values) **float64 { return &v.FP32 }, func(c *consoleapi.Coverages) **consoleapi.Coverage { return &c.FP32 }, true, undivided},
	{func(v *consoleapi.Values) **float64 { return &v.MemoryUsed }, func(c *consoleapi.Coverages) **consoleapi.Coverage { return &c.MemoryUsed }, false, notReplica},
	{func(v *consoleapi.Values) **float64 { return &v.MemoryTotal }, func(c *consoleapi.Coverages) **consoleapi.Coverage { return &c.MemoryTotal }, false, notReplica},
	{func(v *consoleapi.Values) **float64 { return &v.Power }, func(c *consoleapi.Coverages) **consoleapi.Coverage { return &c.Power }, false, physical},
}

func undivided(d *device) bool { return !d.split() }
func physical(d *device) bool  { return d.parent == "" }
func notReplica(d *device) bool {
	_, replica := deviceid.CutReplica(d.id.name)
	return replica == ""
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
			if v != nil || f.due(all[i].device) {
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
func (r *reading) judge(inv *inventory, services []*service, missing *model.Vector) {
	type name struct{ cluster, namespace, pod string }
	gone := map[name]bool{}
	for _, sample := range *missing {
		if m := sample.Metric; sample.Value == 1 {
			gone[name{string(m[queries.Cluster]), string(m[queries.Namespace]), string(m[queries.Pod])}] = true
		}
	}
	oldest := map[Key]time.Time{}
	for _, s := range services {
		if s.DataTime != nil {
			oldest[s.key] = s.DataTime.Add(-time.Second)
		}
	}
	for _, d := range inv.devices {
		for _, h := range d.owners {
			t := oldest[Key{d.id.cluster, h.Namespace, value(h.Service)}]
			d.gone = d.gone || gone[name{d.id.cluster, h.Namespace, h.Pod}]
			d.silent = d.silent || d.gone || !d.measured.IsZero() && d.measured.Before(t)
		}
	}
}

// measure completes services with what their devices report: how many are busy, of
// how many devices every figure is, and what capacity the silent ones have.
func (r *reading) measure(inv *inventory, services []*service) {
	held := map[Key][]*device{}
	for _, d := range inv.devices {
		if len(d.parts) > 0 {
			continue // the owners of its parts, which are devices of their own
		}
		for i, h := range d.owners {
			key := Key{d.id.cluster, h.Namespace, value(h.Service)}
			if h.Service != nil && !hasService(d.owners[:i], h) {
				held[key] = append(held[key], d)
			}
		}
	}
	for _, s := range services {
		r.measureService(s, held[s.key])
	}
}

// known leaves out what amounts do not have.
func known(c consoleapi.Coverages) consoleapi.Coverages {
	c.Tensor, c.SM, c.DRAM, c.FP16, c.FP32 = nil, nil, nil, nil, nil
	return c
}

// perPod is the capacity of a pod of a service, the mean over those that report.
func perPod(key Key, devices []*device) *float64 {
	sum, pods := 0.0, map[string]bool{}
	for _, d := range devices {
		if d.gone || d.amounts.capacity == nil {
			continue
		}
		sum += *d.amounts.capacity
		for _, h := range d.owners {
			if h.Namespace == key.Namespace && value(h.Service) == key.Service {
				pods[h.Pod] = true
			}
		}
	}
	if len(pods) == 0 {
		return nil
	}
	return pointer(sum / float64(len(pods)))
}

func hasService(all []consoleapi.Holder, h consoleapi.Holder) bool {
	for _, one := range all {
		if one.Namespace == h.Namespace && value(one.Service) == value(h.Service) {
			return true
		}
	}
	return false
}

func (r *reading) measureService(s *service, devices []*device) {
	s.held = devices
	all := make([]measured, 0, len(devices))
	busy, current, frozen := 0, 0, time.Time{}
	for _, d := range devices {
		all = append(all, measured{d, r.values(d)})
		if !d.frozenSince.IsZero() {
			s.Devices.Frozen++
			if d.frozenSince.After(frozen) {
				frozen = d.frozenSince
			}
		}
		if r.current(d, d.measured) && d.utilization != nil {
			current++
			if *d.utilization >= r.thresholds.IdleThreshold {
				busy++
			}
		}
	}
	if current > 0 || zero(s.Devices.Reporting) == 0 && s.Devices.Reporting != nil {
		s.Devices.Busy = &busy
	}
	sums, coverage := over(all)
	s.Coverage = known(coverage)
	// What is silent has not lost its memory: the capacity is that of all devices.
	if total := sums.MemoryTotal; total != nil && (s.Totals.MemoryTotal == nil || *total >= *s.Totals.MemoryTotal) {
		s.Totals.MemoryTotal = total
		if mean := perPod(s.key, devices); mean != nil {
			s.Values.MemoryTotal = mean
		}
	}
	if s.Devices.Frozen > 0 && s.Devices.Frozen == len(devices) {
		s.Told = r.reported(frozen)
		s.Stale = true
	}
}

// summarize sums up the whole fleet. What nothing reports is null.
func (r *reading) summarize(services []*service, inv *inventory, wrong []consoleapi.Reason) consoleapi.FleetSummary {
	out := consoleapi.FleetSummary{
		Services: pointer(len(services)), Attention: pointer(0), PodsPending: pending(services).Pods,
		Reasons: wrong[:min(len(wrong), maxReasons)], ReasonsTotal: len(wrong),
	}
	for _, s := range services {
		if consoleapi.Pressing(s.Reasons) {
			*out.Attention++
		}
	}
	counts, allocations := consoleapi.NodeCounts{}, false
	for _, n := range inv.nodes {
		c := n.counts()
		counts.Devices += c.Devices
		counts.Held += c.Held
		counts.Idle += c.Idle
		counts.Free += c.Free
		counts.Lost += c.Lost
		counts.Unknown += c.Unknown
		allocations = allocations || !n.allocated.IsZero()
	}
	if counts.Devices == 0 {
		if len(services) == 0 {
			out.Services, out.Attention = nil, nil
		}
		return out
	}
	r.sum(&out, inv)
	out.DevicesLost = &counts.Lost
	out.Devices, out.DevicesHeld, out.DevicesIdle, out.DevicesUnknown = &counts.Devices, &counts.Held, &counts.Idle, &counts.Unknown
	if allocations {
		out.DevicesFree = &counts.Free
	}
	return out
}

// sum adds up the physical devices.
func (r *reading) sum(out *consoleapi.FleetSummary, inv *inventory) {
	var all []measured
	busy, some := 0, false
	for _, d := range inv.devices {
		if d.parent != "" {
			continue
		}
		m := measured{d, r.values(d)}
		all = append(all, m)
		if u := m.values.Utilization; u != nil {
			some = true
			if *u >= r.thresholds.IdleThreshold {
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
