// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package training

import (
	"sort"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpuspecs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Figures are those of one run at one moment; a nil one is not known.
type Figures struct {
	Holder Holder
	Run    string
	Since  time.Time // counters count from then

	MFUStep, MFUWall             *float64
	Peak                         gpuspecs.Precision // what fp8 was measured against, else ""
	Throughput, DeviceThroughput *float64
	GoodputHour, GoodputRun      *float64
	DataWait                     *float64
	Restarts, LostSteps          int64

	// Reason is why there is no MFU, and Changed whether it is another than before. Value is what
	// was dropped as implausible.
	Reason  Reason
	Changed bool
	Value   float64

	run *run
}

// Evaluate returns the figures of all runs, by their order.
func (s *State) Evaluate(now time.Time) (all []Figures) {
	s.prune(now)
	fleets := s.fleets(now)
	running := map[Holder]int{}
	for key, r := range s.runs {
		if now.Sub(r.arrived) <= r.silence(s.cfg.Window) {
			running[key.holder]++
		}
	}
	for key, r := range s.runs {
		f := Figures{Holder: key.holder, Run: key.id, Since: r.since, Restarts: r.restarts, LostSteps: r.lost, run: r}
		s.evaluate(&f, r, fleets[key.holder], running[key.holder], now)
		f.Changed = f.Reason != r.reason
		r.reason = f.Reason
		all = append(all, f)
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := &all[i], &all[j]
		if a.Holder != b.Holder {
			return less(a.Holder, b.Holder)
		}
		return a.Run < b.Run
	})
	return all
}

func less(a, b Holder) bool {
	x, y := [...]string{a.Cluster, a.Namespace, a.Service, a.SlurmCluster, a.Job}, [...]string{b.Cluster, b.Namespace, b.Service, b.SlurmCluster, b.Job}
	for i := range x {
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	return false
}

func (s *State) evaluate(f *Figures, r *run, have *fleet, running int, now time.Time) {
	peak, reason := s.peak(f, r, have)
	r.now.peak = peak
	if n := len(r.samples); n > 0 && r.samples[n-1].peak == 0 {
		r.samples[n-1].peak = peak
	}
	if have != nil {
		f.GoodputRun, f.GoodputHour = s.goodput(f.Holder, r, now)
	}
	base, why := r.base(s.cfg.Window, now)
	if why != Fine {
		f.Reason = why
		return
	}
	last := r.samples[len(r.samples)-1]
	wall, step, tokens := last.at.Sub(base.at).Seconds(), last.step-base.step, last.tokens-base.tokens
	if step > 0 {
		f.DataWait = known((last.wait - base.wait) / step)
		if last.wait == 0 {
			f.DataWait = nil // the run measures none
		}
	}
	if last.tokens == 0 {
		f.Reason = NoTokens
		return
	}
	f.Throughput = known(tokens / wall)
	if have != nil && have.reason == Fine {
		f.DeviceThroughput = known(tokens / wall / float64(have.devices))
	}
	flops := r.perToken()
	switch {
	case running > 1:
		f.Reason = SeveralRuns
	case flops == 0:
		f.Reason = NoModel
	case reason != Fine:
		f.Reason = reason
	case base.peak != peak:
		f.Reason = DevicesChange
	}
	if f.Reason != Fine {
		return
	}
	mfuWall := flops * tokens / (wall * peak)
	mfuStep := 0.0
	if step > 0 {
		mfuStep = flops * tokens / (step * peak)
	}
	if f.Value = max(mfuWall, mfuStep); f.Value > 1 {
		f.Reason = Implausible
		return
	}
	f.MFUWall = known(mfuWall)
	if step > 0 {
		f.MFUStep = known(mfuStep)
	}
}

func known(v float64) *float64 { return &v }

// peak is what the devices of a run can do together at its precision, in operations a second.
func (s *State) peak(f *Figures, r *run, have *fleet) (float64, Reason) {
	precision := gpuspecs.Precision(r.precision)
	if precision == gpuspecs.FP8 {
		f.Peak = s.cfg.FP8Peak
	}
	switch {
	case precision == "":
		return 0, NoPrecision
	case precision == gpuspecs.FP8 && s.cfg.FP8Peak == "":
		return 0, FP8
	case have == nil:
		return 0, NoDevices
	case have.reason != Fine:
		return 0, have.reason
	case precision == gpuspecs.FP8:
		precision = s.cfg.FP8Peak
	}
	one, ok := have.spec.Peak(precision)
	if !ok {
		return 0, NoPeak
	}
	return one * float64(have.devices), Fine
}

// perToken is how many operations a token takes, forward and backward; 0 where it is not known. Six
// for each parameter that it meets, and six for each product with the rest of its sequence, which is
// PaLM's 12 L H Q T for queries and values of the same width (arXiv 2204.02311, appendix B).
// Recomputation counts for nothing, and a causal mask is no discount.
func (r *run) perToken() float64 {
	if stated := r.gauges[names.TrainingFLOPsPerToken.Name]; stated > 0 {
		return stated
	}
	n, l := r.gauges[names.TrainingModelParameters.Name], r.gauges[names.TrainingModelLayers.Name]
	a, t := r.gauges[names.TrainingModelAttention.Name], r.gauges[names.TrainingModelSequence.Name]
	if n == 0 || l == 0 || a == 0 || t == 0 {
		return 0
	}
	return 6*n + 6*l*a*t
}

// base is the sample that figures are computed from: the newest that is a window before the last.
func (r *run) base(window time.Duration, now time.Time) (sample, Reason) {
	n := len(r.samples)
	if n == 0 {
		return sample{}, TooEarly
	}
	last := r.samples[n-1]
	if now.Sub(last.arrived) > r.silence(window) {
		return sample{}, Silent
	}
	window = r.window(window)
	for i := n - 2; i >= 0; i-- {
		if last.at.Sub(r.samples[i].at) >= window {
			return r.samples[i], Fine
		}
	}
	return sample{}, TooEarly
}

// window is over which time figures are: at least the configured one, five steps and three exports,
// as the run has been doing of late.
func (r *run) window(least time.Duration) time.Duration {
	return max(least, 5*r.step(), 3*r.interval())
}

// step is the mean duration of the newest steps, 0 where it is not known.
func (r *run) step() time.Duration {
	if len(r.samples) < 2 {
		return 0
	}
	a, b := r.samples[max(0, len(r.samples)-5)], r.samples[len(r.samples)-1]
	if b.steps <= a.steps {
		return 0
	}
	return time.Duration((b.step - a.step) / (b.steps - a.steps) * float64(time.Second))
}

// interval is the shortest time between two of the newest exports, 0 where it is not known.
func (r *run) interval() (least time.Duration) {
	for i := max(1, len(r.samples)-8); i < len(r.samples); i++ {
		if d := r.samples[i].at.Sub(r.samples[i-1].at); least == 0 || d < least {
			least = d
		}
	}
	return least
}

// silence is after which time without an export figures of before are too old. SDKs send every
// minute unless they are set to another interval.
func (r *run) silence(window time.Duration) time.Duration {
	return max(window, 3*max(r.interval(), time.Minute))
}

// goodput is the time in steps that were not repeated, as a part of the time since the run, or an
// hour ago, while devices were held.
func (s *State) goodput(h Holder, r *run, now time.Time) (whole, hour *float64) {
	since, held := s.holders[h]
	if !held || !r.stepKnown || len(r.samples) == 0 {
		return nil, nil
	}
	if since.Before(r.since) {
		since = r.since
	}
	if passed := now.Sub(since).Seconds(); passed > 0 {
		whole = known(min(1, r.now.good/passed))
	}
	if now.Sub(since) < keep {
		return whole, nil
	}
	first := r.samples[0]
	if passed := now.Sub(first.arrived).Seconds(); passed >= (keep - 5*time.Minute).Seconds() {
		hour = known(min(1, (r.now.good-first.good)/passed))
	}
	return whole, hour
}
