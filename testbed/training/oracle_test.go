// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package training

import (
	"math"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/trainsim"
)

// sent is an export of a run and what it shows beside the one before it.
type sent struct {
	at, clock time.Time // by ours, and by the job's
	trainsim.Totals
	good float64 // seconds
	jump bool    // no time since the one before is known
}

// oracle computes the figures of a run anew, from its steps and from when it has exported.
type oracle struct {
	run      *trainsim.Run
	peak     float64
	held     time.Time
	exports  []sent
	life     *trainsim.Life
	restarts int64
	lost     int64
	highest  int64
	known    bool
	fresh    bool
}

// export notes that the run exports now.
func (o *oracle) export(now time.Time) {
	life := o.run.Life(now)
	if life == nil {
		return
	}
	e := sent{at: now, clock: now}
	if o.run.Skew != nil {
		e.clock = now.Add(o.run.Skew(now))
	}
	var steps []trainsim.Step // that the collector has not seen
	all := 0                  // of the process
	for _, s := range life.Steps {
		if s.End.After(now) {
			break
		}
		all++
		if len(o.exports) > 0 && (life != o.life || s.End.After(o.exports[len(o.exports)-1].at)) {
			steps = append(steps, s)
			e.Steps++
			e.Tokens += s.Tokens
			e.Step += s.Duration
			e.Wait += s.Wait
		}
	}
	if o.life != nil && life != o.life {
		o.restarts++
		o.fresh = true
	}
	o.life = life
	if all > 0 {
		newest := life.Steps[all-1].Number
		switch {
		case !o.known:
			o.known = true
			e.good = e.Step.Seconds()
			o.fresh = false
			o.highest = newest
		default:
			if first := newest - int64(all) + 1; o.fresh && first <= o.highest {
				o.lost += o.highest - first + 1
			}
			o.fresh = false
			// Which of the steps were new is known by their number, and their time by their sum.
			if newest > o.highest && len(steps) > 0 {
				e.good = e.Step.Seconds() * min(1, float64(newest-o.highest)/float64(len(steps)))
			}
			o.highest = max(o.highest, newest)
		}
	}
	if n := len(o.exports); n > 0 {
		off := e.clock.Sub(o.exports[n-1].clock) - e.at.Sub(o.exports[n-1].at)
		e.jump = off.Abs() > 30*time.Second
	}
	o.exports = append(o.exports, e)
}

// figures are the expected values by metric and attribute; what is not in them is absent.
func (o *oracle) figures(now time.Time) map[string]float64 {
	if len(o.exports) == 0 {
		return nil
	}
	want := map[string]float64{"gpu.training.restarts": float64(o.restarts), "gpu.training.lost_steps": float64(o.lost)}
	since := o.exports[0].at
	if o.held.After(since) {
		since = o.held
	}
	if o.known && now.After(since) {
		good := 0.0
		for _, e := range o.exports {
			good += e.good
		}
		want["gpu.training.goodput run"] = min(1, good/now.Sub(since).Seconds())
	}
	// Those since the job's clock was set, without those that are not later than the one before.
	var usable []int
	for i, e := range o.exports {
		switch {
		case e.jump:
			usable = []int{i}
		case len(usable) == 0 || e.clock.After(o.exports[usable[len(usable)-1]].clock):
			usable = append(usable, i)
		}
	}
	last := usable[len(usable)-1]
	window := o.window(usable)
	base := -1
	for _, i := range usable[:len(usable)-1] {
		if o.exports[last].clock.Sub(o.exports[i].clock) >= window {
			base = i
		}
	}
	if base < 0 {
		return want
	}
	t := o.between(base, last)
	wall := o.exports[last].clock.Sub(o.exports[base].clock).Seconds()
	if t.Step > 0 {
		want["gpu.training.data.wait.ratio"] = t.Wait.Seconds() / t.Step.Seconds()
	}
	if o.between(0, last).Tokens == 0 {
		return want
	}
	want["gpu.training.throughput"] = float64(t.Tokens) / wall
	if devices := o.run.Devices; devices[0].Parent == "" && devices[0].Model != "NVIDIA Imaginary 9000" &&
		!slices.ContainsFunc(devices, func(d trainsim.Device) bool { return d.Model != devices[0].Model }) {
		want["gpu.training.device.throughput"] = float64(t.Tokens) / wall / float64(len(devices))
	}
	if o.peak > 0 {
		work := o.run.Model.PerToken() * float64(t.Tokens) / o.peak
		step := work / t.Step.Seconds()
		if worst := math.Max(work/wall, step); t.Step > 0 && worst <= 1 {
			want["gpu.training.mfu wall"], want["gpu.training.mfu step"] = work/wall, step
		} else if t.Step == 0 {
			want["gpu.training.mfu wall"] = work / wall
		}
	}
	return want
}

// between are the steps that the exports after a, up to b, have shown.
func (o *oracle) between(a, b int) (t trainsim.Totals) {
	for _, e := range o.exports[a+1 : b+1] {
		t.Steps += e.Steps
		t.Tokens += e.Tokens
		t.Step += e.Step
		t.Wait += e.Wait
	}
	return t
}

// window is at least two minutes, five mean steps of the newest five exports, and three of the
// shortest time between two of the newest nine.
func (o *oracle) window(usable []int) time.Duration {
	window := 2 * time.Minute
	n := len(usable)
	if n < 2 {
		return window
	}
	if t := o.between(usable[max(0, n-5)], usable[n-1]); t.Steps > 0 {
		window = max(window, 5*t.Step/time.Duration(t.Steps))
	}
	shortest := time.Duration(math.MaxInt64)
	for i := max(1, n-8); i < n; i++ {
		shortest = min(shortest, o.exports[usable[i]].clock.Sub(o.exports[usable[i-1]].clock))
	}
	return max(window, 3*shortest)
}
