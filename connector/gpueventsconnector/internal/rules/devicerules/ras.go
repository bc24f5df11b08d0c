// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicerules

import (
	"fmt"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/ras"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// RASErrors is gpu.ras. The metric has the newest code of each severity, and no count: that
// the same code came again is not seen.
var RASErrors = rule.Rule{
	Event: names.EventRAS, Set: rule.Device, Notice: true,
	Reads: []rule.Input{{Metric: &names.GPURASLast, Codes: true, Most: rule.MostCode}},
	Keys:  []rule.Key{repeatAfter, rule.Switch("corrected", false)},
	Doc: rule.Doc{
		Raised:   "`gpu.ras.last` has a code that it did not have on the page before; for corrected errors only with `corrected`",
		Severity: "ERROR; INFO for corrected errors", Key: perDevice + "/severity/code",
		Chart: "Error codes of AMD boards; corrected reports the errors that the board has corrected as well.",
	},
}

// MaxRASCodes is how many codes of one device are kept.
const MaxRASCodes = 64

// RASCode is an error code with its severity. 0 is the code of no error.
type RASCode struct {
	Code     int
	Severity ras.Severity
}

// AddRASCode adds a point of gpu.ras.last to those of one time. It reports whether it is
// valid, and whether there was room.
func AddRASCode(codes []RASCode, v float64, severity string) (all []RASCode, valid, room bool) {
	c := RASCode{Code: int(v), Severity: ras.Severity(severity)}
	switch {
	case v != math.Trunc(v), !c.Severity.Known():
		return codes, false, true
	case slices.Contains(codes, c):
		return codes, true, true
	case len(codes) >= MaxRASCodes:
		return codes, true, false
	}
	return append(codes, c), true, true
}

// RAS is the state of the rule RASErrors for one device.
type RAS struct {
	Last  []RASCode   // of each severity, on the last page that had it
	Codes []RASNotice // that happened
	// Happened are the codes that the last Take has found new.
	Happened []RASCode
}

// RASNotice is what is reported of a code.
type RASNotice struct {
	RASCode
	Notice condition.Notice
}

// Take finds the codes that were not on the last page with their severity. On a device
// that is not known none is new. It reports whether anything changed.
func (s *RAS) Take(codes []RASCode, known bool) (changed bool) {
	s.Happened = s.Happened[:0]
	if len(codes) == 0 {
		return false // absent input changes nothing
	}
	for _, c := range codes {
		if known && c.Code != 0 && !slices.Contains(s.Last, c) {
			s.Happened = append(s.Happened, c)
		}
	}
	before := s.Last
	s.Last = slices.DeleteFunc(slices.Clone(before), func(c RASCode) bool {
		return slices.ContainsFunc(codes, func(now RASCode) bool { return now.Severity == c.Severity })
	})
	s.Last = append(s.Last, codes...)
	s.Last = s.Last[:min(len(s.Last), 3*MaxRASCodes)]
	return !slices.Equal(before, s.Last)
}

// Note makes what the last Take has found pending. It returns how many there was no room
// for.
func (s *RAS) Note(corrected bool) (refused int) {
	for _, c := range s.Happened {
		if c.Severity == ras.Corrected && !corrected {
			continue
		}
		i := slices.IndexFunc(s.Codes, func(n RASNotice) bool { return n.RASCode == c })
		if i < 0 {
			if len(s.Codes) >= MaxRASCodes {
				refused++
				continue
			}
			i = len(s.Codes)
			s.Codes = append(s.Codes, RASNotice{RASCode: c})
		}
		s.Codes[i].Notice.Happened(1)
	}
	return refused
}

// Pending reports whether there is a code that is not reported yet.
func (s *RAS) Pending() bool {
	return slices.ContainsFunc(s.Codes, func(n RASNotice) bool { return n.Notice.Pending > 0 })
}

// Reported are the last codes without those that are not reported yet, which are new again
// after a restart.
func (s *RAS) Reported() []RASCode {
	return slices.DeleteFunc(slices.Clone(s.Last), func(c RASCode) bool {
		return slices.ContainsFunc(s.Codes, func(n RASNotice) bool { return n.RASCode == c && n.Notice.Pending > 0 })
	})
}

// Event is the event about what is pending.
func (n *RASNotice) Event(d *subject.Device, at pcommon.Timestamp) event.Event {
	entry, _ := ras.Lookup(n.Code, n.Severity)
	ev := event.Event{Name: names.EventRAS, State: names.EventRaised, At: at, Severity: plog.SeverityNumberError}
	if n.Severity == ras.Corrected {
		ev.Severity = plog.SeverityNumberInfo
	}
	d.About(&ev, string(n.Severity), fmt.Sprint(n.Code))
	what := fmt.Sprintf(" reported AFID %d (%s): %s", n.Code, n.Severity, entry.Meaning)
	if n.Notice.Pending > 1 {
		what += fmt.Sprintf(" It was new on %d pages since it was last reported.", n.Notice.Pending)
	}
	d.DescribeWhole(&ev, what+" "+entry.Do)
	is, count := n.RASCode, n.Notice.Pending
	ev.Add(func(attrs pcommon.Map) {
		attrs.PutInt(names.GPURASCode, int64(is.Code))
		attrs.PutBool(names.GPURASDerived, true)
		event.PutTexts(attrs, names.GPURASSeverity, string(is.Severity), names.GPURASCategory, string(entry.Category),
			names.GPURASMeaning, safetext.Strip(entry.Meaning, ras.MaxText), names.GPURASAction, safetext.Strip(entry.Do, ras.MaxText),
			names.GPUHealthAction, entry.Action.String())
		attrs.PutInt(names.GPUEventOccurrences, count)
	})
	return ev
}
