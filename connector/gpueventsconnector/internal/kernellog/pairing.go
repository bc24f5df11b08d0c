// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kernellog

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// apart is for how long a line and a page that report the same XID may be apart: the
// page has it when the exporter has read it, and a line when it was collected.
const apart = 2 * time.Minute

// Pairing finds out which XIDs of one code on one board both the kernel log and the pages
// of an exporter report: each of them happened once. Lines have all of them. Pages hide
// repeats where they have the last code alone, and report one later than its line, or
// before it is collected.
type Pairing struct {
	newest pcommon.Timestamp // the newest line; 0: there was none
	lines  reports           // that no page has reported
	pages  reports           // that no line has
}

// reports are XIDs that one of both has reported.
type reports struct {
	count    int64
	from, to pcommon.Timestamp // when they happened
}

// Restored is the Pairing of which that was saved before a restart.
func Restored(newest pcommon.Timestamp, lines int64) Pairing {
	return Pairing{newest: newest, lines: reports{count: max(0, lines), from: newest, to: newest}}
}

// Saved is what Restored takes; newest is 0 where there was no line.
func (p *Pairing) Saved() (newest pcommon.Timestamp, lines int64) { return p.newest, p.lines.count }

// Line takes the time of a line. It is not fresh where one with that time or a later one
// was read before, and again where a page has reported the XID.
func (p *Pairing) Line(at, now pcommon.Timestamp) (fresh, again bool) {
	if p.newest > now+pcommon.Timestamp(apart) {
		p.newest = 0 // from a clock that was ahead and has been set since
	}
	if at <= p.newest {
		return false, false
	}
	p.newest = at
	if p.pages.count > 0 && p.pages.near(at, at) {
		p.pages.count--
		return true, true
	}
	p.lines.add(1, at, at)
	return true, false
}

// Rise takes how often a page reports that the code happened between the page before and
// the time of the page. It returns how often that is what no line has reported.
func (p *Pairing) Rise(by int64, before, at pcommon.Timestamp) int64 {
	if p.lines.count > 0 && p.lines.near(before, at) {
		known := min(by, p.lines.count)
		p.lines.count -= known
		by -= known
	}
	if by > 0 {
		p.pages.add(by, before, at)
	}
	return by
}

// near reports whether what happened then can be the same.
func (r *reports) near(from, to pcommon.Timestamp) bool {
	return from < r.to+pcommon.Timestamp(apart) && r.from < to+pcommon.Timestamp(apart)
}

// add adds reports. Those from long before are of other XIDs.
func (r *reports) add(count int64, from, to pcommon.Timestamp) {
	if r.count == 0 || !r.near(from, to) {
		*r = reports{from: from}
	}
	r.count, r.to = r.count+count, to
	r.from = min(r.from, from)
}
