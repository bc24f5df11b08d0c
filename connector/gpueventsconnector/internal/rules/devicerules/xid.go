// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicerules

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/counting"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/kernellog"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/xid"
)

// XID is gpu.xid. Its one reading is the last code; the counts are by code.
var XID = rule.Rule{
	Event: names.EventXID, Set: rule.Device, Notice: true,
	Reads: []rule.Input{{Metric: &names.GPUXIDLast, Most: rule.MostCode}, {Metric: &names.GPUXIDErrors, ByCode: true, Most: rule.MostCount}},
	Keys:  []rule.Key{repeatAfter},
	Doc: rule.Doc{
		Raised:   "`gpu.xid.errors` rises, or `gpu.xid.last` changes",
		Severity: "by code: INFO, WARN, ERROR or FATAL", Key: perDevice + "/code",
	},
}

// repeatAfter is for how long the same about the same device is not reported again. What
// happens in between is counted in the next report.
var repeatAfter = rule.Duration("repeat_after", fiveMinutes, 0, 24*time.Hour)

// MaxXIDCodes is how many codes of one device are kept.
const MaxXIDCodes = 256

// XIDCount is a point of gpu.xid.errors.
type XIDCount struct {
	Code    int64
	Derived bool // counted by the receiver, from changes of the last code
	Delta   bool // what happened since the point before
	Start   pcommon.Timestamp
	Count   float64
}

// AddXIDCount adds a point to those of one time, of which it keeps one for each code. It
// reports whether there was room.
func AddXIDCount(counts []XIDCount, n XIDCount) ([]XIDCount, bool) {
	for i := range counts {
		if counts[i].Code == n.Code {
			if counts[i].Derived == n.Derived && counts[i].Delta == n.Delta {
				counts[i].Count = max(counts[i].Count, n.Count)
			} else if !n.Derived {
				counts[i] = n
			}
			return counts, true
		}
	}
	if len(counts) >= MaxXIDCodes {
		return counts, false
	}
	return append(counts, n), true
}

// XIDs is the state of the rule XID for one device.
type XIDs struct {
	Last  int64     // the last code, 0 for none; -1: there was no point of it
	Codes []XIDCode // in ascending order
	// Happened are the codes that the last Take has counted.
	Happened []int64

	exact bool              // an exporter counts, and no reader of its pages
	shown bool              // the newest page has Last
	at    pcommon.Timestamp // of the last page; 0: none, or before a restart
}

// restart is for how long a process is away at most that does not know it.
const restart = 15 * time.Minute

// Line counts an XID of which a line of the kernel log was read at the time at. It is not
// fresh where it was read before, and again where a page has reported it. room is false
// where the limit of codes leaves no room for it.
func (s *XIDs) Line(l *xid.Line, at, now pcommon.Timestamp) (fresh, again, room bool) {
	c := s.Code(int64(l.Code))
	if c == nil {
		return false, false, false
	}
	if fresh, again = c.Pairing.Line(at, now); fresh && !again {
		c.line, c.at = *l, max(c.at, at)
		c.Notice.Happened(1)
		c.Logged++
	}
	return fresh, again, true
}

// Forget drops what is not reported yet.
func (s *XIDs) Forget() {
	for i := range s.Codes {
		s.Codes[i].Notice.Pending, s.Codes[i].Logged = 0, 0
	}
}

// XIDCode is one code of one device.
type XIDCode struct {
	Code   int64
	Count  counting.Series
	Notice condition.Notice
	// Pairing has what lines of the kernel log report, and pages as well.
	Pairing kernellog.Pairing
	Logged  int64             // of what is pending in Notice: reported by lines
	line    xid.Line          // the last of these
	at      pcommon.Timestamp // of the newest page or line that reported it
}

// Report notes that what is pending is reported at the time at.
func (c *XIDCode) Report(at pcommon.Timestamp) {
	c.Notice.Report(at)
	c.Logged, c.line = 0, xid.Line{}
}

// Code finds or adds a code; nil when there is no room. It is valid until the next
// call.
func (s *XIDs) Code(code int64) *XIDCode {
	i, found := slices.BinarySearchFunc(s.Codes, code, func(c XIDCode, code int64) int { return cmp.Compare(c.Code, code) })
	if !found {
		if len(s.Codes) >= MaxXIDCodes {
			return nil
		}
		s.Codes = slices.Insert(s.Codes, i, XIDCode{Code: code})
	}
	return &s.Codes[i]
}

// Take counts the XIDs that happened up to the time at: counters that rose, and a last
// code that changed where no counter has it. last is -1 where there is none. On a device
// that is not known nothing has risen; on one that is, a new code has risen from 0.
// duplicates is how many counts two exporters have in turn.
func (s *XIDs) Take(counts []XIDCount, last int64, at pcommon.Timestamp, known bool) (changed bool, duplicates int) {
	s.Happened = s.Happened[:0]
	before := s.at
	if s.at = at; before == 0 {
		before = max(at, pcommon.Timestamp(restart)) - pcommon.Timestamp(restart)
	}
	for i := range s.Codes {
		if code := s.Codes[i].Code; !slices.ContainsFunc(counts, func(x XIDCount) bool { return x.Code == code }) {
			s.Codes[i].Count.Missing()
		}
	}
	s.exact = false // if so, the last code adds nothing
	for _, x := range counts {
		s.exact = s.exact || !x.Derived
		c := s.Code(x.Code)
		if c == nil {
			continue
		}
		was := c.Count
		by, twice := 0., false
		if x.Delta {
			by = c.Count.Add(x.Count)
		} else {
			by, twice = c.Count.Take(counting.Reading{Value: x.Count, Start: x.Start, At: at, Derived: x.Derived}, known)
		}
		if twice {
			duplicates++
		}
		if by > 0 {
			s.happened(c, int64(by), before, at)
		}
		changed = changed || c.Count != was
	}
	if s.shown = last >= 0; !s.shown {
		return changed, duplicates
	}
	counted := slices.ContainsFunc(counts, func(x XIDCount) bool { return x.Code == last })
	if known && last > 0 && last != s.Last && !counted && !s.exact {
		if c := s.Code(last); c != nil {
			s.happened(c, 1, before, at)
		}
	}
	changed = changed || s.Last != last
	s.Last = last
	return changed, duplicates
}

// happened counts XIDs of a page, since the page before, that the kernel log did not have.
func (s *XIDs) happened(c *XIDCode, count int64, before, at pcommon.Timestamp) {
	c.at = at
	if count = c.Pairing.Rise(count, before, at); count > 0 {
		c.Notice.Happened(count)
		s.Happened = append(s.Happened, c.Code)
	}
}

// Booted takes that the node was booted between the page before the time since and the page of
// that time: what pages have counted since, and the last code on them, happened since the boot,
// also where a page before it had the same count or code. Happened is then what was not counted
// yet.
func (s *XIDs) Booted(since pcommon.Timestamp) {
	s.Happened = s.Happened[:0]
	if s.at < since { // the next page counts from 0
		for i := range s.Codes {
			s.Codes[i].Count.Restarted()
		}
		s.Last = min(s.Last, 0)
		return
	}
	last := s.shown && !s.exact && s.Last > 0
	if last {
		s.Code(s.Last)
	}
	for i := range s.Codes {
		c := &s.Codes[i]
		if c.at < since && (c.Count.Counted() > 0 || last && c.Code == s.Last) {
			c.at = s.at
			c.Notice.Happened(1)
			s.Happened = append(s.Happened, c.Code)
		}
	}
}

// Pending reports whether there is an XID that is not reported yet.
func (s *XIDs) Pending() bool {
	return slices.ContainsFunc(s.Codes, func(c XIDCode) bool { return c.Notice.Pending > 0 })
}

// Event is the event about what is pending.
func (c *XIDCode) Event(d *subject.Device, at pcommon.Timestamp) event.Event {
	entry, known := xid.Lookup(int(c.Code))
	ev := event.Event{Name: names.EventXID, State: names.EventRaised, At: at, Severity: xidSeverity(entry.Severity)}
	d.About(&ev, fmt.Sprint(c.Code))
	what := fmt.Sprintf(" reported XID %d", c.Code)
	if known {
		what += " (" + entry.Mnemonic + "): " + entry.Meaning
	} else {
		what += ": " + entry.Meaning
	}
	if n := c.Notice.Pending; n > 1 {
		what += fmt.Sprintf(" It happened %d times since it was last reported.", n)
	}
	d.DescribeWhole(&ev, what+" "+entry.Action)
	code, count, line := c.Code, c.Notice.Pending, c.line
	ev.Add(func(attrs pcommon.Map) {
		attrs.PutInt(names.GPUXIDCode, code)
		event.PutTexts(attrs, names.GPUXIDMnemonic, entry.Mnemonic,
			names.GPUXIDMeaning, safetext.Strip(entry.Meaning, xid.MaxText), names.GPUXIDAction, safetext.Strip(entry.Action, xid.MaxText),
			names.GPUXIDBucket, string(entry.Bucket))
		if known {
			attrs.PutBool(names.GPUXIDFatal, entry.Fatal)
			attrs.PutStr(names.GPUHealthAction, entry.Health().Action.String())
		}
		if line.Kind == xid.GPU {
			attrs.PutStr(names.GPUHealthAction, line.Health.Action.String())
			event.PutTexts(attrs, names.ProcessName, line.Process)
			if line.PID > 0 {
				attrs.PutInt(names.ProcessPID, int64(line.PID))
			}
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
