// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/devicerules"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// gap reports whether the time from the newest point of a device to the time at is more than
// one or two intervals: in it the node may have been booted. Before the first point it is.
func (l *ledger) gap(d *device, at pcommon.Timestamp) bool {
	last := d.latest()
	return last == 0 || at.AsTime().Sub(last.AsTime()) > max(l.staleness, 2*d.interval())
}

// reconfiguring takes a point of gpu.node.mig.reconfiguring.
func (s *devices) reconfiguring(n subject.Node, at pcommon.Timestamp, on bool) {
	if n.Name == "" {
		s.invalid(names.GPUNodeMIGReconfiguring.Name)
		return
	}
	site := s.sites[n]
	if site == nil {
		if len(s.sites) >= 2*s.maxSubjects {
			s.unwatched("node")
			return
		}
		site = s.sites.get(n)
	}
	if at < site.at && s.now-site.seen < clockSet {
		s.counts.Late++
		return
	}
	site.at, site.seen, site.mig = at, s.now, on
}

// owned notes that a device, or a replica of it, has an owner on the page of the time at, and
// with it the GPU that it is a part of.
func (s *devices) owned(id subject.DeviceID, parent string, at pcommon.Timestamp) {
	id.ID, _ = deviceid.CutReplica(id.ID)
	for _, some := range [...]string{id.ID, parent} {
		if d := s.all[subject.DeviceID{Cluster: id.Cluster, ID: some}]; d != nil {
			d.owned = max(d.owned, at)
		}
	}
}

// listed notes that the kubelet lists a device, with an owner or without.
func (s *devices) listed(id subject.DeviceID, free bool) {
	if d := s.all[id]; d != nil {
		d.absence.listed, d.free = s.now, free
	}
}

// withheld reports whether a device is absent because its exporter prints devices with an
// owner alone, as dcgm-exporter does with virtual GPUs or DRA. All devices on the page have
// one then. It is absent like others before it, or as the kubelet lists it without an owner,
// or because it left the page together with others without one.
func (s *devices) withheld(d *device, page *heldPage) bool {
	board := d
	if d.Facts.Parent != "" {
		if board = s.all[subject.DeviceID{Cluster: d.ID.Cluster, ID: d.Facts.Parent}]; board == nil {
			return false
		}
	}
	switch {
	case d.lost.Level > 0:
		return false
	case board.absence.listed != 0 && s.now-board.absence.listed <= s.staleness+grace:
		return board.free
	}
	return page.before || !board.hadOwner() && page.left[board.latest()] > 1
}

// miss counts a successful scrape of an exporter for those of its devices that were not
// on its page, and raises gpu.device.lost after enough of them.
//
// A MIG instance is not lost while its GPU is there: then the layout is another
// one. With its GPU it is named in the GPU's event. A board is not lost where another one
// is in its place: it was replaced, and is forgotten.
//
// A partition or a tile is like an instance: where the mode of the board changes, they are
// others. A board of these vendors is there as long as one of its parts is: its own rows are
// those of one of them.
func (s *devices) miss(x subject.ExporterID, at pcommon.Timestamp, unrecognized bool) {
	n := subject.Node{Cluster: x.Cluster, Name: x.Node}
	site := s.sites[n]
	if site == nil || !s.lost.on && !s.boards.on {
		return
	}
	s.boards.page(n, site, at)
	relayout := site.relayout(s.now)
	var held *heldPage // once a device is missing
	withheld := int64(0)
	for d := range site.devices {
		seen := d.latest()
		if seen == at {
			if d.exporter != x {
				d.exporter = x
				s.changed = true
			}
			d.missed, d.absence.withheld = 0, false
			continue
		}
		if d.exporter != x || seen > at || unrecognized {
			continue
		}
		if held == nil {
			held = site.held(x, at)
		}
		if d.absence.withheld = held.all && s.withheld(d, held); d.absence.withheld {
			d.missed = 0
			withheld++
			continue
		}
		s.boards.missing(d)
		if relayout || !s.lost.on || d.Other() && site.partOf(d, at) {
			d.missed = 0
			continue
		}
		if d.missed++; d.missed == 1 {
			d.missedAt = at
		}
		away := s.now - d.seen
		if seen != 0 { // an outage of the exporter, or of this process, is no absence of its devices
			away = min(time.Duration(at-seen), time.Duration(at-d.missedAt)+cmp.Or(d.interval(), s.staleness/3))
		}
		a := devicerules.Absence{Scrapes: d.missed, Away: away, Interval: d.interval()}
		if !a.Lost(s.lost.scrapes, s.staleness) {
			continue
		}
		parent := s.all[subject.DeviceID{Cluster: d.ID.Cluster, ID: d.Facts.Parent}]
		switch o := site.successor(d, at); {
		case o != nil:
			s.replace(d, o)
		case d.Facts.Parent == "" || parent == nil:
			s.lose(d, at, false)
		case parent.latest() >= at:
			if d.Other() {
				s.drop(d, "is no part of its board any more")
			} else {
				s.drop(d, "is no part of its GPU's MIG layout any more")
			}
		}
	}
	if withheld > 0 && !s.heldOnly {
		s.heldOnly, s.counts.HeldOnly = true, HeldOnly{Exporter: x, Withheld: withheld}
	}
}

// replace forgets a board that another one has replaced, with its MIG instances.
func (s *devices) replace(d, by *device) {
	for _, id := range s.sites.instances(d) {
		if instance := s.all[subject.DeviceID{Cluster: d.ID.Cluster, ID: id}]; instance != nil {
			s.drop(instance, "went with its GPU, which was replaced by "+event.Clean(by.ID.ID))
		}
	}
	s.drop(d, "was replaced by "+event.Clean(by.ID.ID))
}

// judgeValues judges whether the device's exporter still reads it. One that it prints
// without a value, after it did read it, is lost like one that it does not print. One that is
// suspended is there, and is not read so that it stays so; one of which the exporter prints
// no field that is known may have every value.
func (s *devices) judgeValues(d *device) {
	switch {
	case d.measured:
		s.changed = s.changed || !d.valued
		d.valued, d.measuredAt = true, d.at
	case s.lost.on && d.values[s.lost.suspended] > 0, s.boards.unrecognized(d):
		d.measuredAt = d.at
	case d.valued:
		d.blank++
		if d.measuredAt == 0 {
			d.measuredAt = d.at // it may have been read until the restart
		}
		switch {
		case !s.lost.on || s.sites.relayout(d, s.now):
			d.blank = 0
		case devicerules.Blank(d.blank, time.Duration(d.at-d.measuredAt), s.lost.scrapes, s.staleness):
			s.lose(d, d.at, true)
		}
		return
	}
	if d.lost.Level > 0 {
		s.move(&d.lost, &devicerules.DeviceLostSpec, devicerules.DeviceLost.Event, 0, d.at, func(ev *event.Event) {
			devicerules.DescribeFound(&d.Device, d.blank > 0, ev)
		})
		s.boards.lost(d, false, d.at)
	}
	d.blank = 0
}

func (s *devices) lose(d *device, at pcommon.Timestamp, blank bool) {
	s.move(&d.lost, &devicerules.DeviceLostSpec, devicerules.DeviceLost.Event, 1, at, func(ev *event.Event) {
		devicerules.DescribeLost(&d.Device, blank, event.Names(s.sites.instances(d)), ev)
	})
	if !blank { // nothing is read of it: its health is not known
		s.boards.lost(d, true, at)
	}
}
