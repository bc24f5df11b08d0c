// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

var lostRule = rule{event: names.EventDeviceLost, levels: []level{{0, plog.SeverityNumberError}}}

// site is a node as the rules about devices see it.
type site struct {
	devices map[*device]struct{}
	heard   time.Duration // of reconfiguring
	at      pcommon.Timestamp
	mig     bool // its MIG layout is being changed
}

func (e *engine) site(p place) *site {
	s := e.sites[p]
	if s == nil {
		s = &site{devices: map[*device]struct{}{}}
		e.sites[p] = s
	}
	return s
}

// leave takes the device from its site, which goes with its last device where nothing is
// known of its MIG layout.
func (e *engine) leave(d *device) {
	p := place{d.id.cluster, d.facts.node}
	s := e.sites[p]
	if s == nil {
		return
	}
	delete(s.devices, d)
	if len(s.devices) == 0 && s.at == 0 {
		delete(e.sites, p)
	}
}

// reconfiguring notes what a point of gpu.node.mig.reconfiguring says.
func (e *engine) reconfiguring(p place, at pcommon.Timestamp, on bool) {
	if p.node == "" {
		e.counts.invalid++
		return
	}
	s := e.sites[p]
	if s == nil {
		if len(e.sites) >= 2*e.cfg.MaxSubjects {
			e.unwatched("node")
			return
		}
		s = e.site(p)
	}
	if at < s.at && e.now-s.heard < clockSet {
		e.counts.late++
		return
	}
	s.at, s.heard, s.mig = at, e.now, on
}

// missDevices counts a scrape of x that succeeded for the devices that were not
// on its page, and raises gpu.device.lost after enough of them.
//
// A MIG instance is not lost while its GPU is there: then the layout is another
// one. With its GPU it is named in the GPU's event.
func (e *engine) missDevices(x *exporter, at pcommon.Timestamp) {
	s := e.sites[place{x.id.cluster, x.id.node}]
	if s == nil {
		return
	}
	relayout := s.relayout(e.now)
	for d := range s.devices {
		seen := d.latest()
		if seen == at {
			if d.exporter != x.id {
				d.exporter = x.id
				e.changed = true
			}
			d.missed = 0
			continue
		}
		if d.exporter != x.id || seen > at {
			continue
		}
		if relayout {
			d.missed = 0
			continue
		}
		if d.missed++; d.missed < e.cfg.Events.DeviceLost.Scrapes || !e.overdue(d, at) {
			continue
		}
		parent := e.devices[deviceID{d.id.cluster, d.facts.parent}]
		switch {
		case d.facts.parent == "" || parent == nil:
			e.lose(d, at, " is gone: its exporter answers without it")
		case parent.latest() >= at:
			e.dropDevice(d, "is no part of its GPU's MIG layout any more")
		}
	}
}

// judgeValues judges whether the device's exporter still reads it. One that it prints
// without a value, when it did read it before, is lost like one that it does not print.
func (e *engine) judgeValues(d *device) {
	switch {
	case d.was.measured:
		e.changed = e.changed || !d.valued
		d.valued, d.measured = true, d.at
	case d.valued:
		d.blank++
		if d.measured == 0 {
			d.measured = d.at // it may have been read until the restart
		}
		s := e.sites[place{d.id.cluster, d.facts.node}]
		if c := &e.cfg.Events.DeviceLost; !c.Enabled || s != nil && s.relayout(e.now) {
			d.blank = 0
		} else if d.blank >= c.Scrapes && time.Duration(d.at-d.measured) >= e.cfg.Staleness*5/6 {
			e.lose(d, d.at, " gives no values: its exporter names it, and reads nothing from it")
		}
		return
	}
	if d.lost.level > 0 {
		e.found(d)
	}
	d.blank = 0
}

// relayout reports whether the MIG layout of the node is being changed.
func (s *site) relayout(now time.Duration) bool { return s.mig && now-s.heard < maxGap }

// overdue reports whether the device was away for as many of its own intervals,
// but half a one. Of an exporter with several pages, as those that a proxy has
// under one address, three scrapes are nothing.
func (e *engine) overdue(d *device, at pcommon.Timestamp) bool {
	away, scrapes := e.now-d.heard, time.Duration(e.cfg.Events.DeviceLost.Scrapes)
	if seen := d.latest(); seen != 0 {
		away = time.Duration(at - seen)
	}
	every := d.gaps[0]
	if d.gaps[1] != 0 {
		every = min(every, d.gaps[1]) // an outage is no interval
	}
	if every == 0 {
		return away >= e.cfg.Staleness*5/6
	}
	return away >= every*(2*scrapes-1)/2
}

func (e *engine) lose(d *device, at pcommon.Timestamp, why string) {
	e.move(&d.lost, &lostRule, 1, at, func(ev *event) {
		d.subject(ev)
		ev.body = d.String() + why + d.owned(ev)
		instances := names50(e.instances(d))
		ev.details = append(ev.details, func(attrs pcommon.Map) { putList(attrs, names.GPUDeviceInstances, instances) })
	})
}

// found clears gpu.device.lost.
func (e *engine) found(d *device) {
	e.move(&d.lost, &lostRule, 0, d.at, func(ev *event) {
		d.subject(ev)
		ev.body = d.String() + " is back" + d.owned(ev)
		if d.blank > 0 {
			ev.body = d.String() + " gives values again" + d.owned(ev)
		}
	})
}

// instances are the MIG instances of a GPU.
func (e *engine) instances(d *device) (ids []string) {
	s := e.sites[place{d.id.cluster, d.facts.node}]
	if s == nil {
		return nil
	}
	for o := range s.devices {
		if o.facts.parent == d.id.id {
			ids = append(ids, o.id.id)
		}
	}
	return ids
}

// hasInstances reports whether the GPU has MIG instances now.
func (e *engine) hasInstances(d *device) bool {
	s := e.sites[place{d.id.cluster, d.facts.node}]
	if s == nil || d.facts.parent != "" {
		return false
	}
	for o := range s.devices {
		if o.facts.parent == d.id.id && o.latest() >= d.at {
			return true
		}
	}
	return false
}
