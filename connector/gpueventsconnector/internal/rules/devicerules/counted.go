// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicerules

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Counted is a rule that reports by how much a count rose. Its input is one Count.
type Counted struct {
	rule.Rule
	Severity plog.SeverityNumber
	// Sentence continues the sentence about the device: it rose by so many, to total where
	// that is known.
	Sentence func(by int64, total condition.Counter) string
}

// CountedRules are the rules about counts. Their order is that of the events of one time.
var CountedRules = []*Counted{&ECCUncorrected, &DeviceReset}

// Counts is the state of a Counted for one device.
type Counts struct {
	Count  condition.Counter
	Notice condition.Notice
}

// Take counts what happened up to one time: r is the count, and the sum of what deltas
// add. It returns by how much it rose, and whether anything changed.
func (s *Counts) Take(r Readings) (by float64, changed bool) {
	count, added := r.At(0), r.At(1)
	if !(count >= 0 || added > 0) {
		return 0, false
	}
	before := s.Count
	by = added
	if count >= 0 {
		by = s.Count.Rise(count)
	} else {
		s.Count = condition.Counter{}
	}
	if by > 0 {
		s.Notice.Happened(int64(by))
	}
	return by, s.Count != before
}

// About is the event about what is pending.
func (c *Counted) About(s *Counts, d *subject.Device, at pcommon.Timestamp) event.Event {
	ev := event.Event{Name: c.Event, State: names.EventRaised, At: at, Severity: c.Severity}
	d.About(&ev)
	by, total := s.Notice.Pending, s.Count
	d.Describe(&ev, c.Sentence(by, total))
	ev.Add(func(attrs pcommon.Map) {
		attrs.PutInt(names.GPUEventOccurrences, by)
		if total.Known {
			attrs.PutInt(c.Reads[0].Metric.Name, int64(total.Value))
		}
	})
	return ev
}
