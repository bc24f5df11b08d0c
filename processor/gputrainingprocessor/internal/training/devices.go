// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package training

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpuspecs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

type deviceKey struct{ cluster, id string }

// device is a device that someone has, or had.
type device struct {
	model      string
	part       bool // of a board
	shared     bool
	unresolved bool
	held       bool
	holder     Holder
	seen       time.Time
}

// device takes in who holds a device: gpu.allocation, which every allocation has a point of.
func (s *State) device(attrs pcommon.Map, m pmetric.Metric, now time.Time, t *Tally) {
	dps, ok := points.Numbers(m)
	if !ok || points.IsDelta(m) {
		t.refuse(WrongKind, m.Name())
		return
	}
	holder, owned := holderOf(attrs)
	for _, dp := range dps.All() {
		id := points.Str(dp.Attributes(), names.HwID)
		if id == "" {
			id = points.Str(attrs, names.HwID)
		}
		if id == "" || dp.Flags().NoRecordedValue() {
			continue
		}
		d := s.find(attrs, id, now, t)
		if d == nil {
			continue
		}
		share := points.Value(dp)
		if share <= 0 || !owned {
			// Free, or held by what is in no service: it counts for none.
			d.held = false
			continue
		}
		sharing := points.Str(dp.Attributes(), names.GPUSharing)
		resolved, known := dp.Attributes().Get(names.GPUAllocationResolved)
		d.held, d.holder = true, holder
		d.shared = share < 1 || sharing != "" && sharing != names.SharingNone
		d.unresolved = known && !resolved.Bool()
		if _, has := s.holders[holder]; !has {
			s.holders[holder] = now
		}
	}
}

// find finds or makes a device, and keeps what its resource has.
func (s *State) find(attrs pcommon.Map, id string, now time.Time, t *Tally) *device {
	key := deviceKey{points.Str(attrs, names.K8sClusterName), id}
	d := s.devices[key]
	if d == nil {
		if len(s.devices) >= s.cfg.MaxDevices {
			t.refuse(LimitDevs, names.GPUAllocation.Name)
			return nil
		}
		d = &device{}
		s.devices[key] = d
	}
	d.seen = now
	if model := points.Str(attrs, names.HwModel); model != "" {
		d.model = model
	}
	if points.Str(attrs, names.HwParent) != "" {
		d.part = true
	}
	return d
}

// describe keeps the model of a device that gpu.allocation has, whose points may lack it.
func (s *State) describe(attrs pcommon.Map) {
	id := points.Str(attrs, names.HwID)
	if id == "" {
		return
	}
	if d := s.devices[deviceKey{points.Str(attrs, names.K8sClusterName), id}]; d != nil {
		if model := points.Str(attrs, names.HwModel); model != "" {
			d.model = model
		}
		d.part = d.part || points.Str(attrs, names.HwParent) != ""
	}
}

// fleet is what a holder has: how many devices, and what they can do together.
type fleet struct {
	devices int
	spec    gpuspecs.Spec
	reason  Reason // why their peak is not known
}

// worst is the order of the reasons of devices: the first that applies to any is that of all.
var worst = []Reason{SilentDevice, Unresolved, Partitioned, Shared, UnknownDevice, MixedDevices}

// fleets are those of all holders.
func (s *State) fleets(now time.Time) map[Holder]*fleet {
	all, reasons := map[Holder]*fleet{}, map[Holder]map[Reason]bool{}
	for _, d := range s.devices {
		if !d.held {
			continue
		}
		f := all[d.holder]
		if f == nil {
			f = &fleet{}
			all[d.holder], reasons[d.holder] = f, map[Reason]bool{}
		}
		f.devices++
		spec, known := s.cfg.Lookup(d.model)
		switch {
		case now.Sub(d.seen) > heldFor:
			reasons[d.holder][SilentDevice] = true
		case d.unresolved:
			reasons[d.holder][Unresolved] = true
		case d.part:
			reasons[d.holder][Partitioned] = true
		case d.shared:
			reasons[d.holder][Shared] = true
		case !known:
			reasons[d.holder][UnknownDevice] = true
		case f.spec.Name != "" && f.spec.Name != spec.Name:
			reasons[d.holder][MixedDevices] = true
		default:
			f.spec = spec
		}
	}
	for holder, f := range all {
		for _, r := range worst {
			if reasons[holder][r] {
				f.reason = r
				break
			}
		}
	}
	return all
}

// prune forgets runs of which nothing arrives; devices likewise, but for those that a run has; and
// holders without any.
func (s *State) prune(now time.Time) {
	left, restarted := map[Holder]bool{}, map[Holder]time.Time{}
	for key, r := range s.runs {
		if now.Sub(r.arrived) > s.cfg.RunTTL {
			delete(s.runs, key)
			continue
		}
		left[key.holder] = true
		if r.restarted.After(restarted[key.holder]) {
			restarted[key.holder] = r.restarted
		}
	}
	for key, d := range s.devices {
		silent := now.Sub(d.seen) > heldFor
		if silent && (!d.held || !left[d.holder] || restarted[d.holder].After(d.seen)) {
			delete(s.devices, key)
		}
	}
	for _, d := range s.devices {
		if d.held {
			left[d.holder] = true
		}
	}
	for holder := range s.holders {
		if !left[holder] {
			delete(s.holders, holder)
		}
	}
}

// Tracked is how many runs and devices are known.
func (s *State) Tracked() (runs, devices int) { return len(s.runs), len(s.devices) }
