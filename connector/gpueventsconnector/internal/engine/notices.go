// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/board"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/devicerules"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/ras"
	"github.com/otelcol-gpu/otelcol-gpu/internal/xid"
)

// counted is an enabled rule about a count.
type counted struct {
	*devicerules.Counted
	notices
}

// notices are the settings of a rule that reports what happened.
type notices struct {
	on          bool
	quiet       bool // what happens is read for the health of boards alone
	repeatAfter time.Duration
	places      []int // of its readings
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
	for i := range s.counted {
		_, changed := d.counted[i].Take(d.readings(s.counted[i].places))
		s.changed = s.changed || changed
	}
	if m := d.series; m != nil && (s.ras.on || s.ras.quiet) {
		s.changed = m.ras.Take(m.codes, d.known) || s.changed
		if s.ras.on {
			for range m.ras.Note(s.corrected) {
				s.unwatched("ras")
			}
		}
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

func (d *device) pendingNotices() bool {
	return d.xids.Pending() || d.series != nil && d.series.ras.Pending() ||
		slices.ContainsFunc(d.counted, func(c devicerules.Counts) bool { return c.Notice.Pending > 0 })
}

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
	for i := range s.counted {
		c := &d.counted[i]
		if at, ok := ready(&c.Notice, s.counted[i].repeatAfter); ok && s.notify(s.counted[i].About(c, &d.Device, at)) {
			c.Notice.Report(at)
		}
	}
	if d.series == nil {
		return
	}
	for i := range d.series.ras.Codes {
		n := &d.series.ras.Codes[i]
		if at, ok := ready(&n.Notice, s.ras.repeatAfter); ok && s.notify(n.Event(&d.Device, at)) {
			n.Notice.Report(at)
		}
	}
}

// series is what only boards of other vendors than NVIDIA have.
type series struct {
	codes []devicerules.RASCode // of the page
	links []devicerules.Link    // likewise
	rises []condition.Counter   // of each of devices.rising
	ras   devicerules.RAS
	ports devicerules.Ports
}

// more returns the series for a change.
func (d *device) more() *series {
	if d.series == nil {
		d.series = &series{}
	}
	return d.series
}

// judgeSeries turns what a page has of counts and of ports into what changed since the page
// before.
func (s *devices) judgeSeries(d *device) {
	if !d.Other() && d.series == nil {
		return
	}
	m := d.more()
	if m.rises == nil {
		m.rises = make([]condition.Counter, len(s.rising))
	}
	for i := range s.rising {
		if v := d.values[s.rising[i].place]; v >= 0 {
			before := m.rises[i]
			d.values[s.rising[i].place+1] = m.rises[i].Rise(v)
			s.changed = s.changed || before != m.rises[i]
		}
	}
	s.changed = m.ports.Take(m.links, d.at) || s.changed
}

// readings are those of a rule.
func (d *device) readings(places []int) devicerules.Readings {
	r := devicerules.Readings{Values: d.values, Index: places}
	if d.series != nil {
		r.Ports = &d.series.ports
	}
	return r
}

// instance judges the XIDs of a MIG instance: one after which the GPU has to be reset is
// against the board. What is the fault of an application stays with the instance.
func (b *boards) instance(d *device) {
	of := b.devices[subject.DeviceID{Cluster: d.ID.Cluster, ID: d.Facts.Parent}]
	if of == nil || !b.has(of) {
		return
	}
	for _, code := range d.xids.Happened {
		if h := board.XIDOf(int(code)); h.Reason != "" || board.AboutMemory(int(code)) {
			of.health.board.XID(int(code), h, d.at)
		}
	}
}

// line takes an XID of which a line of the kernel log was read. Again is whether a page has
// reported it.
func (b *boards) line(d *device, l *xid.Line, again bool, at pcommon.Timestamp) {
	if !b.has(d) {
		return
	}
	d.health.board.Kind = b.kindOf(d)
	d.health.board.Line(l, again, at)
	if !again && board.Repeats(l.Code) {
		b.fault(d, l.Code, at)
	}
}

// fault takes a code that is normally the fault of the application: under which owner
// the board had it, and whether the owner's other boards on the node have it too.
func (b *boards) fault(d *device, code int, at pcommon.Timestamp) {
	o := &d.Facts.Owner
	owner := o.Unit() // "": none, or not known
	d.health.board.Fault(code, owner, at)
	site := b.sites.of(d)
	if site == nil {
		return
	}
	var all []*board.Board
	had := 0
	for of := range site.devices {
		if b.has(of) && of.Facts.Owner.Unit() == owner {
			all = append(all, &of.health.board)
			if of.health.board.HadFault(code, owner, at) {
				had++
			}
		}
	}
	if board.Common(had, len(all)) {
		for _, of := range all {
			of.Spread(code, owner, at)
		}
	}
}

// happened takes what a page has of errors and resets of boards that are not NVIDIA's: a
// fatal error, and that the device was reset.
func (b *boards) happened(d *device) {
	if d.series == nil {
		return
	}
	for _, c := range d.series.ras.Happened {
		if c.Severity == ras.Fatal {
			e, _ := ras.Lookup(c.Code, c.Severity)
			d.health.board.RAS(c.Code, e.Action, d.at)
		}
	}
	if by := d.values[b.resets]; by > 0 {
		d.health.board.Seen(board.Reset, d.at)
	}
}
