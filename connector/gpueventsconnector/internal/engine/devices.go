// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/devicerules"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
)

// devices are the devices that are watched, with the rules about them.
type devices struct {
	*ledger
	on         bool
	conditions []watched
	xid, ecc   notices
	lost       struct {
		on      bool
		scrapes int
	}
	boards   *boards
	logged   bool // lines of the kernel log are read
	readings int  // of a device

	all     map[subject.DeviceID]*device
	open    []*device            // with a snapshot that is not judged yet
	pending map[*device]struct{} // with something that becomes due
	sites   sites
}

// watched is a condition of an enabled rule.
type watched struct {
	devicerules.Condition
	event  string
	places []int // of its readings
}

// notices are the settings of a rule that reports what happened.
type notices struct {
	on          bool
	quiet       bool // what happens is read for the health of boards alone
	repeatAfter time.Duration
	places      []int // of its readings
}

func newDevices(l *ledger, o *Options, in *inputs) *devices {
	d := &devices{ledger: l, on: o.Devices, all: map[subject.DeviceID]*device{}, pending: map[*device]struct{}{}, sites: sites{}}
	for _, r := range devicerules.Conditions {
		s := o.settings(&r.Rule)
		if !s.Enabled() {
			continue
		}
		places := in.add(&r.Rule)
		for _, c := range r.Conditions(s) {
			d.conditions = append(d.conditions, watched{c, r.Event, places})
		}
	}
	if s := o.settings(&devicerules.XID); s.Enabled() {
		d.xid = notices{on: true, repeatAfter: s.Duration("repeat_after"), places: in.add(&devicerules.XID)}
	}
	if s := o.settings(&devicerules.ECCUncorrected); s.Enabled() {
		d.ecc = notices{on: true, repeatAfter: s.Duration("repeat_after"), places: in.add(&devicerules.ECCUncorrected)}
	}
	if s := o.settings(&devicerules.DeviceLost); s.Enabled() {
		d.lost.on, d.lost.scrapes = true, s.Count("scrapes")
		in.add(&devicerules.DeviceLost)
	}
	if d.boards = newBoards(l, o, in, d); d.boards.on && !d.xid.on {
		d.xid = notices{places: in.add(&devicerules.XID), quiet: true}
	}
	d.readings = in.size
	return d
}

// get finds or adds a device; nil when there is no room.
func (s *devices) get(id subject.DeviceID) *device {
	d := s.all[id]
	if d != nil {
		return d
	}
	if len(s.all) >= s.maxSubjects {
		s.unwatched("device")
		return nil
	}
	d = &device{
		Device: subject.Device{
			ID:    subject.DeviceID{Cluster: strings.Clone(id.Cluster), ID: strings.Clone(id.ID)},
			Facts: subject.Facts{Index: -1},
		},
		first: s.now, values: make([]float64, s.readings), conditions: make([]condition.Condition, len(s.conditions)), xids: devicerules.XIDs{Last: -1},
	}
	d.clear()
	s.all[d.ID] = d
	s.sites.add(d)
	s.changed = true
	return d
}

// openAt reports whether a point of the time at belongs to the device's snapshot, and
// opens a new one where it is later.
func (s *devices) openAt(d *device, at pcommon.Timestamp) bool {
	if at == d.snapshot {
		return true
	}
	if !s.isNew(at, d.snapshot, d.at, d.seen) {
		return false
	}
	if last := d.latest(); last != 0 && at > last {
		d.gaps = [2]time.Duration{time.Duration(at - last), d.gaps[0]}
	}
	if d.snapshot != 0 {
		s.judge(d)
	}
	d.snapshot, d.seen = at, s.now
	d.clear()
	if !d.opened {
		d.opened = true
		s.open = append(s.open, d)
	}
	return true
}

// present notes that there is a point of the device, and what its resource contains. Of
// several resources at one time the same one is used in any order.
func (s *devices) present(d *device, f *subject.Facts, first bool) {
	if !first && f.Owner.Compare(d.Facts.Owner) < 0 {
		return
	}
	s.boards.describe(d, f)
	moved := f.Node != d.Facts.Node
	if moved {
		s.sites.remove(d)
		s.changed = true
	}
	d.Facts = *f
	if moved {
		s.sites.add(d)
	}
}

// judgeOpen judges snapshots that are at least that old.
func (s *devices) judgeOpen(age time.Duration) {
	open := s.open
	s.open = s.open[:0]
	for _, d := range open {
		switch {
		case d.snapshot == 0 || s.all[d.ID] != d:
			d.opened = false
		case s.now-d.seen < age:
			s.open = append(s.open, d)
		default:
			d.opened = false
			s.judge(d)
		}
	}
}

// judge judges the snapshot of a device, which is complete.
func (s *devices) judge(d *device) {
	d.at, d.snapshot = d.snapshot, 0
	if !d.known {
		d.log.since = d.at
		s.changed = true
	}
	d.log.at = 0
	waits := false
	for i := range s.conditions {
		w, c := &s.conditions[i], &d.conditions[i]
		verdict := w.Judge(devicerules.Readings{Values: d.values, Index: w.places})
		if !verdict.Known || w.Undivided && verdict.Met != 0 && s.sites.divided(d) {
			continue
		}
		c.Take(d.at, verdict)
		s.moveTo(d, w, c, d.at)
		waits = waits || c.Due(&w.Spec) != 0
	}
	waits = s.judgeNotices(d) || waits
	s.boards.judge(d, d.hot(s))
	d.known, d.missed = true, 0
	s.judgeValues(d)
	if waits {
		s.pending[d] = struct{}{}
	} else {
		delete(s.pending, d)
	}
}

// elapse raises and clears what became due since the newest snapshots.
func (s *devices) elapse() {
	for d := range s.pending {
		if d.snapshot == 0 && s.elapseOne(d) {
			delete(s.pending, d)
		}
	}
}

// elapseOne reports whether nothing more becomes due.
func (s *devices) elapseOne(d *device) (done bool) {
	done = true
	for i := range s.conditions {
		w, c := &s.conditions[i], &d.conditions[i]
		due := c.Due(&w.Spec)
		if due == 0 || c.At != d.at {
			continue // absent from the newest snapshot, which decides nothing
		}
		passed, fresh := s.due(due, d.at, d.seen)
		if !fresh {
			continue
		}
		if passed {
			s.moveTo(d, w, c, due)
		}
		done = done && c.Due(&w.Spec) == 0
	}
	if !d.pendingNotices() {
		return done
	}
	s.report(d, func(due pcommon.Timestamp) (pcommon.Timestamp, bool) {
		// A notice is not about the present: it does not have to be fresh.
		at, seen := d.noticed()
		passed, _ := s.due(due, at, seen)
		return max(due, at), passed
	})
	return done && !d.pendingNotices()
}

func (s *devices) moveTo(d *device, w *watched, c *condition.Condition, at pcommon.Timestamp) {
	next := c.Next(&w.Spec, at)
	if next == c.Level {
		return
	}
	s.move(c, &w.Spec, w.event, next, at, func(ev *event.Event) {
		d.About(ev, w.Part)
		w.Describe(&d.Device, devicerules.Readings{Values: d.values, Index: w.places}, ev)
	})
}

// judgeNotices reports what happened up to the device's snapshot. It returns whether
// something is left to report.
func (s *devices) judgeNotices(d *device) (waits bool) {
	if s.xid.on || s.xid.quiet {
		last := int64(-1)
		if v := d.values[s.xid.places[0]]; v >= 0 {
			last = int64(v)
		}
		changed, duplicates := d.xids.Take(d.counts, last, d.at, d.known)
		if duplicates > 0 {
			s.counts.Duplicate += int64(duplicates)
			s.counts.DuplicateOn = d.ID
		}
		s.changed = s.changed || changed
		if s.xid.quiet {
			d.xids.Forget()
		}
	}
	if s.ecc.on && d.ecc.Take(devicerules.Readings{Values: d.values, Index: s.ecc.places}) {
		s.changed = true
	}
	if !d.pendingNotices() {
		return false
	}
	s.report(d, func(pcommon.Timestamp) (pcommon.Timestamp, bool) { return d.at, true })
	return d.pendingNotices()
}

// reportLines reports what lines of the kernel log up to the time at had about a device.
// The series of its health follow with its next page: they have the time of pages.
func (s *devices) reportLines(d *device, at pcommon.Timestamp) {
	s.changed = true
	if at >= d.log.at {
		d.log.at, d.log.seen = at, s.now
	}
	if s.xid.quiet {
		d.xids.Forget()
	}
	s.report(d, func(pcommon.Timestamp) (pcommon.Timestamp, bool) { return at, true })
	if d.pendingNotices() {
		s.pending[d] = struct{}{}
	}
	if s.boards.has(d) {
		s.boards.report(d, at)
	}
}

func (d *device) pendingNotices() bool { return d.ecc.Notice.Pending > 0 || d.xids.Pending() }

// report reports what happened, where the time of a report that when returns for the
// first possible one has passed.
func (s *devices) report(d *device, when func(due pcommon.Timestamp) (at pcommon.Timestamp, passed bool)) {
	known, _ := d.noticed()
	ready := func(n *condition.Notice, repeatAfter time.Duration) (pcommon.Timestamp, bool) {
		if n.Pending == 0 {
			return 0, false
		}
		due := n.Due(known, repeatAfter)
		at, passed := when(due)
		return at, passed && at >= due
	}
	for i := range d.xids.Codes {
		c := &d.xids.Codes[i]
		if at, ok := ready(&c.Notice, s.xid.repeatAfter); ok && s.notify(c.Event(&d.Device, at)) {
			c.Report(at)
		}
	}
	if at, ok := ready(&d.ecc.Notice, s.ecc.repeatAfter); ok && s.notify(d.ecc.Event(&d.Device, at)) {
		d.ecc.Notice.Report(at)
	}
}

// drop forgets a device and clears what is raised about it; why completes the
// sentence.
func (s *devices) drop(d *device, why string) {
	at := pcommon.NewTimestampFromTime(s.wall)
	gone := func(part string) func(*event.Event) {
		return func(ev *event.Event) {
			d.About(ev, part)
			ev.Body = d.String() + " " + why + ", and what was raised about it is over."
		}
	}
	left := false
	for i := range s.conditions {
		w := &s.conditions[i]
		s.move(&d.conditions[i], &w.Spec, w.event, 0, at, gone(w.Part))
		left = left || d.conditions[i].Level > 0
	}
	s.move(&d.lost, &devicerules.DeviceLostSpec, devicerules.DeviceLost.Event, 0, at, gone(""))
	s.move(&d.health.condition, &devicerules.HealthSpec, devicerules.Health.Event, 0, at, gone(""))
	if left || d.lost.Level > 0 || d.health.condition.Level > 0 {
		return // no room for the events: the next round tries again
	}
	delete(s.all, d.ID)
	delete(s.pending, d)
	s.boards.forget(d)
	s.sites.remove(d)
	s.changed = true
}

// newest is when the newest point of a device arrived.
func (s *devices) newest() (newest time.Duration) {
	for _, d := range s.all {
		newest = max(newest, d.seen)
	}
	return newest
}

// forget drops devices that are old, and nodes without devices.
func (s *devices) forget(old func(seen time.Duration) bool, ttl time.Duration) {
	for _, d := range s.all {
		if old(d.seen) {
			s.drop(d, "was not seen for "+event.InWords(ttl))
		}
	}
	for n, site := range s.sites {
		if len(site.devices) == 0 && old(max(site.seen, site.paged)) && s.boards.leave(n, site, ttl) {
			delete(s.sites, n)
		}
	}
}

// hot reports whether the temperature of the device is critical.
func (d *device) hot(s *devices) bool {
	for i := range s.conditions {
		if s.conditions[i].event == devicerules.Temperature.Event && d.conditions[i].Level == 2 {
			return true
		}
	}
	return false
}

// find returns the condition of a rule about a device, and its levels; nil where the
// rule does not run.
func (d *device) find(s *devices, name, part string) (c *condition.Condition, levels int) {
	if name == devicerules.Health.Event && s.boards.on {
		return &d.health.condition, len(devicerules.HealthSpec.Levels)
	}
	if name == devicerules.DeviceLost.Event && s.lost.on {
		return &d.lost, len(devicerules.DeviceLostSpec.Levels)
	}
	i := slices.IndexFunc(s.conditions, func(w watched) bool { return w.event == name && w.Part == part })
	if i < 0 {
		return nil, 0
	}
	return &d.conditions[i], len(s.conditions[i].Levels)
}
