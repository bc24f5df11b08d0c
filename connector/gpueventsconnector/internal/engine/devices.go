// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/devicerules"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
)

// devices are the devices that are watched, with the rules about them.
type devices struct {
	*ledger
	on         bool
	conditions []watched
	xid        notices
	counted    []counted
	ras        notices
	corrected  bool // ras reports what was corrected
	rising     []rising
	heldOnly   bool // an exporter that prints devices with an owner alone was reported
	lost       struct {
		on        bool
		scrapes   int
		suspended int // the place of whether a device is suspended
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
	for _, r := range devicerules.CountedRules {
		if s := o.settings(&r.Rule); s.Enabled() {
			d.counted = append(d.counted, counted{r, notices{on: true, repeatAfter: s.Duration("repeat_after"), places: in.add(&r.Rule)}})
		}
	}
	if s := o.settings(&devicerules.RASErrors); s.Enabled() {
		d.ras = notices{on: true, repeatAfter: s.Duration("repeat_after"), places: in.add(&devicerules.RASErrors)}
		d.corrected = s.On("corrected")
	}
	if s := o.settings(&devicerules.DeviceLost); s.Enabled() {
		d.lost.on, d.lost.scrapes = true, s.Count("scrapes")
		d.lost.suspended = in.add(&devicerules.DeviceLost)[0]
	}
	if d.boards = newBoards(l, o, in, d); d.boards.on {
		if !d.xid.on {
			d.xid = notices{places: in.add(&devicerules.XID), quiet: true}
		}
		if !d.ras.on {
			d.ras = notices{places: in.add(&devicerules.RASErrors), quiet: true}
		}
	}
	d.readings, d.rising = in.size, in.rising
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
			Facts: subject.Facts{Index: -1}, Make: deviceid.MakeOf(id.ID),
		},
		first: s.now, values: make([]float64, s.readings), conditions: make([]condition.Condition, len(s.conditions)), xids: devicerules.XIDs{Last: -1},
		counted: make([]devicerules.Counts, len(s.counted)),
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
	if s.gap(d, at) {
		d.returned = at
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

// resume starts all durations again.
func (s *devices) resume() {
	for _, d := range s.all {
		for i := range d.conditions {
			d.conditions[i].Restart()
		}
		d.missed, d.blank, d.measuredAt = 0, 0, 0
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
	s.judgeSeries(d)
	waits := false
	for i := range s.conditions {
		w, c := &s.conditions[i], &d.conditions[i]
		verdict := w.Judge(&d.Device, d.readings(w.places))
		if !verdict.Known || w.Undivided && verdict.Met != 0 && s.sites.divided(d) {
			continue
		}
		c.Take(d.at, verdict)
		s.moveTo(d, w, c, d.at)
		waits = waits || c.Due(&w.Spec) != 0
	}
	waits = s.judgeNotices(d) || waits
	s.boards.judge(d, d.is(s, devicerules.Temperature.Event, 2), d.is(s, devicerules.LinkDown.Event, 1))
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
		w.Describe(&d.Device, d.readings(w.places), ev)
	})
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

// is reports whether a condition of the device is raised to a level.
func (d *device) is(s *devices, event string, level uint8) bool {
	for i := range s.conditions {
		if s.conditions[i].event == event && d.conditions[i].Level == level {
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
