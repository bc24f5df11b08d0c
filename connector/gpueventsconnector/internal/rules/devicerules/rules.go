// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package devicerules has the rules about devices and exporters: one file for each
// event. They are values and pure functions; what happens over time and is stored is the
// engine's.
package devicerules

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Rule is a rule that is judged from the readings of one device at one time.
type Rule struct {
	rule.Rule
	// Conditions are what the rule watches on each device.
	Conditions func(rule.Settings) []Condition
}

// Condition is raised and cleared by the readings of a device.
type Condition struct {
	condition.Spec
	Part  string // last part of the event key, of a rule with several conditions; or empty
	Judge func(*subject.Device, Readings) condition.Verdict
	// Describe completes an event with its sentence and its attributes.
	Describe func(*subject.Device, Readings, *event.Event)
	// Undivided is whether the condition is that of a GPU without MIG instances: with
	// them its readings are a sum, and each instance has its own.
	Undivided bool
}

// Readings are the readings of one rule's inputs, in the order of rule.Input.
type Readings struct {
	Values []float64 // of all rules; NaN: absent
	Index  []int     // in Values
	Ports  *Ports    // of the device, nil without any
}

// At returns the i-th reading of the rule; NaN: there was none.
func (r Readings) At(i int) float64 { return r.Values[r.Index[i]] }

// Conditions are the rules that are raised and cleared by readings. Their order is that
// of the events of one time.
var Conditions = []*Rule{&Temperature, &MemoryPressure, &Throttle, &RowRemapFailure, &RowRemapPending, &MemoryRepair, &LinkDown}

// Notices are the rules that report what happened.
var Notices = []*rule.Rule{&XID, &ECCUncorrected.Rule, &DeviceReset.Rule, &RASErrors}

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

// flag is a rule about a metric of the device that is 0 or 1.
type flag struct {
	event    string
	metric   *names.Metric
	severity plog.SeverityNumber
	// on and off complete the sentence that begins with the device.
	on, off string
}

// rule returns the rule. A flag is a state: it is raised by the first point that is 1.
func (f flag) rule(docSeverity string) Rule {
	return Rule{
		Rule: rule.Rule{
			Event: f.event, Set: rule.Device,
			Reads: []rule.Input{{Metric: f.metric}},
			Doc:   rule.Doc{Raised: "`" + f.metric.Name + "` is 1", Cleared: "it is 0", Severity: docSeverity, Key: perDevice},
		},
		Conditions: func(rule.Settings) []Condition {
			return []Condition{{
				Spec: condition.Once(f.severity),
				Judge: func(_ *subject.Device, r Readings) condition.Verdict {
					if v := r.At(0); math.IsNaN(v) || v < 0 {
						return condition.Verdict{}
					}
					return condition.Holds(r.At(0) > 0)
				},
				Describe: func(d *subject.Device, _ Readings, ev *event.Event) {
					if ev.Cleared() {
						d.Describe(ev, " "+f.off)
					} else {
						d.Describe(ev, " "+f.on)
					}
				},
			}}
		},
	}
}

// perDevice is the event key of most rules about devices.
const perDevice = "cluster/`hw.id`"
