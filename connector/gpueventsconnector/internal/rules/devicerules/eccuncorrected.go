// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicerules

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// ECCUncorrected is gpu.ecc.uncorrected.
var ECCUncorrected = rule.Rule{
	Event: names.EventECCUncorrected, Set: rule.Device, Notice: true,
	Reads: []rule.Input{{
		Metric: &names.HwErrors, Attribute: names.ErrorType, Values: []string{names.ErrorTypeUncorrected}, Count: true, Most: rule.MostCount,
	}},
	Keys: []rule.Key{repeatAfter},
	Doc:  rule.Doc{Raised: "`hw.errors` with `error.type`=uncorrected rises", Severity: "ERROR", Key: perDevice},
}

// ECC is the state of the rule ECCUncorrected for one device.
type ECC struct {
	Count  condition.Counter
	Notice condition.Notice
}

// Take counts the errors up to one time: r is the count, and the sum of what deltas
// add. It reports whether anything changed.
func (s *ECC) Take(r Readings) (changed bool) {
	count, added := r.At(0), r.At(1)
	if !(count >= 0 || added > 0) {
		return false
	}
	before := s.Count
	by := added
	if count >= 0 {
		by = s.Count.Rise(count)
	} else {
		s.Count = condition.Counter{}
	}
	if by > 0 {
		s.Notice.Happened(int64(by))
	}
	return s.Count != before
}

// Event is the event about what is pending.
func (s *ECC) Event(d *subject.Device, at pcommon.Timestamp) event.Event {
	ev := event.Event{Name: names.EventECCUncorrected, State: names.EventRaised, At: at, Severity: plog.SeverityNumberError}
	d.About(&ev)
	count, total, known := s.Notice.Pending, s.Count.Value, s.Count.Known
	errs := "uncorrected memory errors"
	if count == 1 {
		errs = "uncorrected memory error"
	}
	what := fmt.Sprintf(" counted %d more %s", count, errs)
	if known {
		what += fmt.Sprintf(", %.0f since the driver was loaded", total)
	}
	d.Describe(&ev, what)
	ev.Add(func(attrs pcommon.Map) {
		attrs.PutInt(names.GPUEventOccurrences, count)
		if known {
			attrs.PutInt(names.HwErrors.Name, int64(total))
		}
	})
	return ev
}
