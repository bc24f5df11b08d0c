// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"cmp"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/counting"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/xid"
)

// maxXIDCodes is how many codes of one device are remembered.
const maxXIDCodes = 256

// xidState is what is known of the XIDs of a device.
type xidState struct {
	last  int64 // the last code, 0 for none; -1: there was no point of it
	codes []xidCode
}

// xidCode is one code of one device.
type xidCode struct {
	code   int64
	count  counting.Series
	notice notice
}

// xidCount is a point of gpu.xid.errors.
type xidCount struct {
	code    int64
	derived bool // the counter is made of changes of the last code
	delta   bool // it is what happened since the point before
	start   pcommon.Timestamp
	count   float64
}

// add keeps one count a code.
func (r *readings) add(n xidCount) bool {
	for i := range r.xids {
		if r.xids[i].code == n.code {
			if r.xids[i].derived == n.derived && r.xids[i].delta == n.delta {
				r.xids[i].count = max(r.xids[i].count, n.count)
			} else if !n.derived {
				r.xids[i] = n
			}
			return true
		}
	}
	if len(r.xids) >= maxXIDCodes {
		return false
	}
	r.xids = append(r.xids, n)
	return true
}

func (s *xidState) code(code int64) *xidCode {
	for i := range s.codes {
		if s.codes[i].code == code {
			return &s.codes[i]
		}
	}
	if len(s.codes) >= maxXIDCodes {
		return nil
	}
	s.codes = append(s.codes, xidCode{code: code})
	return &s.codes[len(s.codes)-1]
}

// judgeXID counts the XIDs that happened since the snapshot before: counters that
// rose, and a last code that changed where no counter has it. On a device that was
// not known before nothing has risen; on one that was, a code that is new has risen
// from 0.
func (e *engine) judgeXID(d *device) {
	s, r := &d.xid, &d.was
	for i := range s.codes {
		if code := s.codes[i].code; !slices.ContainsFunc(r.xids, func(x xidCount) bool { return x.code == code }) {
			s.codes[i].count.Missing()
		}
	}
	exact := false // the exporter counts, so that the last code says nothing more
	for _, x := range r.xids {
		exact = exact || !x.derived
		c := s.code(x.code)
		if c == nil {
			continue
		}
		before := c.count
		by, twice := 0., false
		if x.delta {
			by = c.count.Add(x.count)
		} else {
			by, twice = c.count.Take(counting.Reading{Value: x.count, Start: x.start, At: d.at, Derived: x.derived}, d.known)
		}
		if twice {
			e.counts.twice++
			e.counts.twiceOn = d.id
		}
		if by > 0 {
			c.notice.happened(int64(by))
		}
		e.changed = e.changed || c.count != before
	}
	if r.xidLast < 0 {
		return
	}
	counted := slices.ContainsFunc(r.xids, func(x xidCount) bool { return x.code == r.xidLast })
	if d.known && r.xidLast > 0 && r.xidLast != s.last && !counted && !exact {
		if c := s.code(r.xidLast); c != nil {
			c.notice.happened(1)
		}
	}
	e.changed = e.changed || s.last != r.xidLast
	s.last = r.xidLast
}

// judgeNotices tells what happened up to the device's snapshot, and reports
// whether there is something left to tell.
func (e *engine) judgeNotices(d *device) (waits bool) {
	if e.cfg.Events.XID.Enabled {
		e.judgeXID(d)
	}
	if c := &e.cfg.Events.ECCUncorrected; c.Enabled && (d.was.uncorrected >= 0 || d.was.uncorrectedMore > 0) {
		before := d.ecc
		by := d.was.uncorrectedMore
		if d.was.uncorrected >= 0 {
			by = d.ecc.rise(d.was.uncorrected)
		} else {
			d.ecc = counter{}
		}
		if by > 0 {
			d.eccTold.happened(int64(by))
		}
		e.changed = e.changed || d.ecc != before
	}
	e.tellNotices(d, func(pcommon.Timestamp) (pcommon.Timestamp, bool) { return d.at, true })
	return d.hasUntold()
}

// elapseNotices tells what was held back until now.
func (e *engine) elapseNotices(d *device) (done bool) {
	if d.hasUntold() {
		e.tellNotices(d, func(due pcommon.Timestamp) (pcommon.Timestamp, bool) {
			// A notice is not about the present: it does not have to be fresh.
			come, _ := e.due(due, d.at, d.heard)
			return max(due, d.at), come
		})
	}
	return !d.hasUntold()
}

func (d *device) hasUntold() bool {
	return d.eccTold.untold > 0 || slices.ContainsFunc(d.xid.codes, func(c xidCode) bool { return c.notice.untold > 0 })
}

// tellNotices tells what may be told at the time that when gives.
func (e *engine) tellNotices(d *device, when func(due pcommon.Timestamp) (at pcommon.Timestamp, come bool)) {
	ready := func(n *notice, c *NoticeEvent) (pcommon.Timestamp, bool) {
		if n.untold == 0 {
			return 0, false
		}
		n.forget(d.at)
		at, come := when(n.due(c.RepeatAfter))
		return at, come && n.ready(at, c.RepeatAfter)
	}
	slices.SortFunc(d.xid.codes, func(a, b xidCode) int { return cmp.Compare(a.code, b.code) })
	for i := range d.xid.codes {
		c := &d.xid.codes[i]
		if at, ok := ready(&c.notice, &e.cfg.Events.XID); ok && e.notify(d.xidEvent(c, at)) {
			c.notice.tell(at)
		}
	}
	if at, ok := ready(&d.eccTold, &e.cfg.Events.ECCUncorrected); ok && e.notify(d.eccEvent(at)) {
		d.eccTold.tell(at)
	}
}

func (d *device) xidEvent(c *xidCode, at pcommon.Timestamp) event {
	entry, known := xid.Lookup(int(c.code))
	ev := event{name: names.EventXID, at: at, severity: xidSeverity(entry.Severity)}
	d.subject(&ev, fmt.Sprint(c.code))
	what := fmt.Sprintf("%s reported XID %d", d, c.code)
	if known {
		what += " (" + entry.Mnemonic + "): " + entry.Meaning
	} else {
		what += ": " + entry.Meaning
	}
	if n := c.notice.untold; n > 1 {
		what += fmt.Sprintf(" It happened %d times since it was last told.", n)
	}
	ev.body = what + " " + entry.Action
	if h := d.owned(&ev); h != "." {
		ev.body += h[1:]
	}
	code, count := c.code, c.notice.untold
	ev.details = append(ev.details, func(attrs pcommon.Map) {
		attrs.PutInt(names.GPUXIDCode, code)
		putTexts(attrs, names.GPUXIDMnemonic, entry.Mnemonic,
			names.GPUXIDMeaning, safetext.Strip(entry.Meaning, xid.MaxText), names.GPUXIDAction, safetext.Strip(entry.Action, xid.MaxText))
		if known {
			attrs.PutBool(names.GPUXIDFatal, entry.Fatal)
		}
		attrs.PutInt(names.GPUEventOccurrences, count)
	})
	return ev
}

func xidSeverity(s xid.Severity) plog.SeverityNumber {
	switch s {
	case xid.Info:
		return plog.SeverityNumberInfo
	case xid.Error:
		return plog.SeverityNumberError
	case xid.Fatal:
		return plog.SeverityNumberFatal
	}
	return plog.SeverityNumberWarn
}

func (d *device) eccEvent(at pcommon.Timestamp) event {
	ev := event{name: names.EventECCUncorrected, at: at, severity: plog.SeverityNumberError}
	d.subject(&ev)
	count, total := d.eccTold.untold, d.ecc.value
	errs := "uncorrected memory errors"
	if count == 1 {
		errs = "uncorrected memory error"
	}
	ev.body = fmt.Sprintf("%s counted %d more %s", d, count, errs)
	if d.ecc.known {
		ev.body += fmt.Sprintf(", %.0f since the driver was loaded", total)
	}
	ev.body += d.owned(&ev)
	known := d.ecc.known
	ev.details = append(ev.details, func(attrs pcommon.Map) {
		attrs.PutInt(names.GPUEventOccurrences, count)
		if known {
			attrs.PutInt(names.HwErrors.Name, int64(total))
		}
	})
	return ev
}
