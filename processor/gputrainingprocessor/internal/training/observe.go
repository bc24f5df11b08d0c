// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package training

import (
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// series is the newest point of a cumulative series.
type series struct {
	start pcommon.Timestamp   // of its process
	past  []pcommon.Timestamp // starts of those before it
	value float64
	count uint64
}

// sample is what is known of a run at one of its exports. Sums are since the run was first seen.
type sample struct {
	at, arrived      time.Time // by the job's clock, and by ours
	tokens           float64
	steps            float64
	step, wait, good float64 // seconds
	peak             float64 // of the devices then, operations a second; 0 until it is known
}

// run is a training run.
type run struct {
	since     time.Time // when it was first seen
	arrived   time.Time
	series    map[uint64]*series
	rank      int64 // the lowest that sends
	start     pcommon.Timestamp
	now       sample
	samples   []sample // of the window and an hour, the oldest first
	gauges    map[string]float64
	precision string
	highest   float64 // step
	number    float64 // of the newest step
	stepKnown bool
	restarts  int64
	restarted time.Time // the last time
	several   bool      // processes that state no rank run at the same time
	// fresh is set after a restart until its first step is known, and sinceRestart are its steps.
	fresh        bool
	sinceRestart float64
	lost         int64
	reason       Reason
	emitted      map[string]bool
}

// kinds of inputs.
const (
	counter = iota
	histogram
	gauge
)

// inputs are the metrics of the contract that figures need.
var inputs = func() (t names.Table[*input]) {
	for _, in := range []input{
		{names.TrainingTokens, counter}, {names.TrainingStepDuration, histogram}, {names.TrainingDataWait, histogram},
		{names.TrainingStep, gauge}, {names.TrainingModelParameters, gauge}, {names.TrainingModelLayers, gauge},
		{names.TrainingModelAttention, gauge}, {names.TrainingModelSequence, gauge}, {names.TrainingFLOPsPerToken, gauge},
	} {
		t.Put(in.metric.Name, &in)
	}
	return t
}()

type input struct {
	metric names.Metric
	kind   int
}

// Observe takes in what md has of training and of devices. It changes nothing in md.
func (s *State) Observe(md pmetric.Metrics, now time.Time) (t Tally) {
	for _, rm := range md.ResourceMetrics().All() {
		attrs := rm.Resource().Attributes()
		s.describe(attrs)
		var touched []*export
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() == names.GPUAllocation.Name {
					s.device(attrs, m, now, &t)
				} else if in := inputs.Get(m.Name()); in != nil {
					touched = s.take(attrs, in, m, now, touched, &t)
				}
			}
		}
		for _, e := range touched {
			e.close(now, &t)
		}
	}
	return t
}

// export is what one resource of a batch has of a run.
type export struct {
	run                      *run
	at                       pcommon.Timestamp
	start                    pcommon.Timestamp
	tokens, steps, dur, wait float64
	restarted, delta         bool
	other, beside            bool    // of another process than that which counts, at the same time
	number                   float64 // training.step
	numbered                 bool
}

func (s *State) take(attrs pcommon.Map, in *input, m pmetric.Metric, now time.Time, touched []*export, t *Tally) []*export {
	holder, ok := holderOf(attrs)
	if !ok {
		t.refuse(NoHolder, m.Name())
		return touched
	}
	if unit := m.Unit(); in.kind == histogram && unit != "s" && unit != "" {
		t.refuse(WrongUnit, m.Name())
		return touched
	}
	of := func(dp pcommon.Map, at pcommon.Timestamp) *export {
		id := points.Str(dp, names.TrainingRunID)
		if id == "" {
			id = points.Str(attrs, names.TrainingRunID)
		}
		r := s.run(runKey{holder, id}, now)
		if r == nil {
			t.refuse(LimitRuns, m.Name())
			return nil
		}
		rank := int64(0)
		if v, has := dp.Get(names.TrainingRank); has {
			rank = v.Int()
		}
		if rank > r.rank {
			t.refuse(OtherRank, m.Name())
			return nil
		}
		if rank < r.rank {
			r.samples = r.samples[:0] // of another rank
			r.rank = rank
		}
		if p := points.Str(attrs, names.TrainingPrecision); p != "" {
			r.precision = p
		}
		for _, e := range touched {
			if e.run == r {
				e.at = max(e.at, at)
				return e
			}
		}
		e := &export{run: r, at: at}
		touched = append(touched, e)
		return e
	}
	switch {
	case in.kind == histogram && m.Type() == pmetric.MetricTypeHistogram:
		delta := m.Histogram().AggregationTemporality() == pmetric.AggregationTemporalityDelta
		for _, dp := range m.Histogram().DataPoints().All() {
			if e := of(dp.Attributes(), dp.Timestamp()); e != nil {
				e.add(in, m.Name(), dp, dp.Sum(), dp.Count(), delta, t)
			}
		}
	case in.kind == histogram && m.Type() == pmetric.MetricTypeExponentialHistogram:
		delta := m.ExponentialHistogram().AggregationTemporality() == pmetric.AggregationTemporalityDelta
		for _, dp := range m.ExponentialHistogram().DataPoints().All() {
			if e := of(dp.Attributes(), dp.Timestamp()); e != nil {
				e.add(in, m.Name(), dp, dp.Sum(), dp.Count(), delta, t)
			}
		}
	case in.kind == counter && m.Type() == pmetric.MetricTypeSum:
		delta := m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta
		for _, dp := range m.Sum().DataPoints().All() {
			if e := of(dp.Attributes(), dp.Timestamp()); e != nil {
				e.add(in, m.Name(), dp, points.Value(dp), 0, delta, t)
			}
		}
	case in.kind == gauge:
		dps, ok := points.Numbers(m)
		if !ok {
			t.refuse(WrongKind, m.Name())
			break
		}
		for _, dp := range dps.All() {
			v := points.Value(dp)
			if dp.Flags().NoRecordedValue() || !(v >= 0 && v < math.MaxFloat64) {
				t.refuse(OutOfRange, m.Name())
				continue
			}
			if e := of(dp.Attributes(), dp.Timestamp()); e != nil && in.metric.Name == names.TrainingStep.Name {
				e.number, e.numbered = v, true
			} else if e != nil {
				e.run.gauges[in.metric.Name] = v
			}
		}
	default:
		t.refuse(WrongKind, m.Name())
	}
	return touched
}

func (s *State) run(key runKey, now time.Time) *run {
	r := s.runs[key]
	if r == nil {
		if len(s.runs) >= s.cfg.MaxRuns {
			return nil
		}
		r = &run{since: now, rank: math.MaxInt64, series: map[uint64]*series{}, gauges: map[string]float64{}, emitted: map[string]bool{}}
		s.runs[key] = r
	}
	r.arrived = now
	return r
}

// counted is a point of a counter or a histogram.
type counted interface {
	Attributes() pcommon.Map
	StartTimestamp() pcommon.Timestamp
	Timestamp() pcommon.Timestamp
}

// add takes in a point that counts: what it has more than the one before it.
func (e *export) add(in *input, metric string, dp counted, value float64, count uint64, delta bool, t *Tally) {
	start := dp.StartTimestamp()
	if !(value >= 0 && value < math.MaxFloat64) {
		t.refuse(OutOfRange, metric)
		return
	}
	more, steps := value, float64(count)
	if delta {
		e.delta = true
	} else {
		key := points.Key(metric, dp.Attributes())
		l := e.run.series[key]
		switch {
		case l == nil && len(e.run.series) >= maxSeries:
			t.refuse(LimitSeries, metric)
			return
		case l == nil: // what was before is not known
			more, steps = 0, 0
			l = &series{}
			e.run.series[key] = l
			if e.run.start != 0 && start > e.run.start {
				more, steps = value, float64(count) // it began while the run was watched
			}
		case slices.Contains(l.past, start):
			// It runs beside the one that counts, or its points are late.
			t.refuse(OtherProcess, metric)
			e.other = true
			e.beside = e.beside || dp.Timestamp() > l.start
			return
		case start != l.start && start != 0 && l.start != 0 || value < l.value:
			e.restarted = true // a new process counts from zero
			if l.start != 0 && len(l.past) < maxPast {
				l.past = append(l.past, l.start)
			}
		default:
			more, steps = value-l.value, float64(count)-float64(l.count)
		}
		l.start, l.value, l.count = start, value, count
	}
	e.start = max(e.start, start)
	switch in.metric.Name {
	case names.TrainingTokens.Name:
		e.tokens += more
	case names.TrainingStepDuration.Name:
		e.dur += more
		e.steps += steps
	case names.TrainingDataWait.Name:
		e.wait += more
	}
}

// close ends an export: it becomes a sample.
func (e *export) close(now time.Time, t *Tally) {
	r := e.run
	if e.beside && !r.several {
		// What was taken for a restart was none.
		r.several, r.samples = true, r.samples[:0]
	}
	if e.other {
		return
	}
	// What a delta is from has no start; the number of the step goes back.
	if e.delta && e.numbered && r.stepKnown && e.number < r.number {
		e.restarted = true
	}
	if e.restarted {
		r.restarts++
		r.restarted = now
		r.fresh, r.sinceRestart = true, 0
	}
	r.start = max(r.start, e.start)
	r.now.good += e.progress()
	r.now.tokens += e.tokens
	r.now.steps += e.steps
	r.now.step += e.dur
	r.now.wait += e.wait

	at := e.at.AsTime()
	if n := len(r.samples); n > 0 {
		last := r.samples[n-1]
		passed := at.Sub(last.at)
		switch off := passed - now.Sub(last.arrived); {
		case off.Abs() > jump:
			// The job's clock was set: no time over this moment is known.
			t.refuse(Clock, names.TrainingTokens.Name)
			r.samples = r.samples[:0]
		case passed <= 0:
			t.refuse(Late, names.TrainingTokens.Name)
			return
		}
	}
	r.now.at, r.now.arrived = at, now
	r.samples = append(r.samples, r.now)
	r.trim()
}

// progress follows the number of the step, and returns how much of the time in steps made some: that
// of steps with a number above all before. Steps that a restart repeats make none.
func (e *export) progress() (seconds float64) {
	r := e.run
	if !e.numbered {
		return 0
	}
	if !r.stepKnown {
		r.highest, r.number, r.stepKnown = e.number, e.number, true
		return e.dur
	}
	r.number = e.number
	if r.sinceRestart += e.steps; r.fresh && r.sinceRestart > 0 {
		if first := e.number - r.sinceRestart + 1; first <= r.highest {
			r.lost += int64(r.highest - first + 1)
		}
		r.fresh = false
	}
	if e.number <= r.highest {
		return 0
	}
	beyond := e.number - r.highest
	r.highest = e.number
	if e.steps <= 0 {
		return 0
	}
	return e.dur * min(1, beyond/e.steps)
}

// keep is how long samples are kept, and maxSamples how many; maxSeries is how many series of counters
// and histograms a run may have, and maxPast how many earlier processes are known.
const (
	keep       = time.Hour
	maxSamples = 1024
	maxSeries  = 64
	maxPast    = 1024
)

func (r *run) trim() {
	last := r.samples[len(r.samples)-1].at
	n := 0
	for n < len(r.samples)-2 && last.Sub(r.samples[n+1].at) > keep {
		n++
	}
	if len(r.samples)-n > maxSamples {
		n = len(r.samples) - maxSamples
	}
	r.samples = append(r.samples[:0], r.samples[n:]...)
}
