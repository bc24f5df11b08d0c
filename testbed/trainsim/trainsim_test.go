// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package trainsim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func metrics(md pmetric.Metrics) map[string]pmetric.Metric {
	found := map[string]pmetric.Metric{}
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				found[m.Name()] = m
			}
		}
	}
	return found
}

// What a run exports adds up to its truth, across restarts, at any time.
func TestExportsAreTheTruth(t *testing.T) {
	start := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		run, _ := Random(rng, Faults[seed%uint64(len(Faults))], start)
		run.Skew = nil
		at := start.Add(time.Duration(rng.Int64N(int64(run.End().Sub(start)))))
		before := Totals{} // of processes that ended
		last := run.Life(at)
		for i := range run.Lives {
			if &run.Lives[i] == last {
				break
			}
			for _, s := range run.Lives[i].Steps {
				before.add(s)
			}
		}
		want := run.Totals(time.Time{}, at)
		got := metrics(run.Export(at))
		tokens := got["training.tokens"].Sum().DataPoints().At(0)
		assert.Equal(t, pcommon.NewTimestampFromTime(last.Start), tokens.StartTimestamp())
		assert.Equal(t, want.Tokens, before.Tokens+tokens.IntValue(), seed)
		assert.Equal(t, want.NotFinite, before.NotFinite+got["training.nonfinite"].Sum().DataPoints().At(0).IntValue())
		steps := got["training.step.duration"].Histogram().DataPoints().At(0)
		assert.Equal(t, want.Steps, before.Steps+int64(steps.Count()))
		assert.InDelta(t, want.Step.Seconds(), before.Step.Seconds()+steps.Sum(), 1e-6)
		assert.Equal(t, len(run.Devices), run.Held(at).ResourceMetrics().Len())
	}
}

// The steps of a run that has no fault are worth between 5 and 60 percent of its peak, with Llama 3
// 8B's figures to the digit.
func TestPeaks(t *testing.T) {
	llama := Model{Parameters: 7504924672, Layers: 32, Attention: 8192, Sequence: 8192}
	assert.InEpsilon(t, 57.914e9, llama.PerToken(), 1e-5)
	start := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	for seed := range uint64(100) {
		run, peak := Random(rand.New(rand.NewPCG(seed, 1)), Honest, start)
		require.Positive(t, peak)
		all := run.Totals(time.Time{}, run.End())
		mfu := run.Model.PerToken() * float64(all.Tokens) / all.Step.Seconds() / peak
		assert.True(t, mfu > 0.04 && mfu < 0.7, "%d: %v", seed, mfu)
	}
}

// A restart throws away the steps that it repeats.
func TestLost(t *testing.T) {
	start := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	life := func(from, first, last int) (l Life) {
		l.Start = start.Add(time.Duration(from) * time.Second)
		for n := first; n <= last; n++ {
			l.Steps = append(l.Steps, Step{Number: int64(n), End: l.Start.Add(time.Duration(1+n-first) * time.Second)})
		}
		return l
	}
	run := Run{Lives: []Life{life(0, 1, 10), life(100, 8, 12), life(200, 13, 14)}}
	for _, c := range []struct{ after, lost, restarts int64 }{{50, 0, 0}, {100, 0, 1}, {102, 3, 1}, {300, 3, 2}} {
		lost, restarts := run.Lost(start.Add(time.Duration(c.after) * time.Second))
		assert.Equal(t, []int64{c.lost, c.restarts}, []int64{lost, restarts}, c.after)
	}
}
