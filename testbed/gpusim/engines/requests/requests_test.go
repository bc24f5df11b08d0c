// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func full(int64) float64 { return 1 }

func start(t *testing.T, cfg Config, seed uint64) *Process {
	t.Helper()
	p, err := New(cfg, seed, 0, full, nil)
	require.NoError(t, err)
	return p
}

// busy has too little of everything.
func busy() Config {
	return Config{
		Rate: 16, Prompt: 120, Output: 60, Context: 1024, Slots: 16, Queue: 8, Blocks: 70, Aborts: .3, Errors: .1, PrefixHits: .5, Drafts: 2, Accepted: .6,
		Adapters: []string{"sql", "legal"},
	}
}

// The same whatever the steps in which time passes.
func TestSameRequestsForTheSameSeed(t *testing.T) {
	a, b, other := start(t, busy(), 7), start(t, busy(), 7), start(t, busy(), 8)
	a.Advance(2 * time.Minute)
	other.Advance(2 * time.Minute)
	for at := time.Duration(0); at <= 2*time.Minute; at += 137 * time.Millisecond {
		b.Advance(at)
	}
	b.Advance(2 * time.Minute)
	assert.Equal(t, list(a), list(b))
	assert.Equal(t, a.State(), b.State())
	assert.NotEqual(t, list(a), list(other))
}

func list(p *Process) (out []string) {
	for _, r := range p.Requests() {
		out = append(out, fmt.Sprintf("%v %v %v %s %d/%d %v %d", r.Arrival, r.Scheduled, r.End, r.Reason, r.Cached, r.Prompt, r.tokens, r.Preemptions))
	}
	return out
}

// Whatever happens to a request, its times are in order, and blocks and slots are not
// given twice.
func TestRequestsAreSound(t *testing.T) {
	p := start(t, busy(), 3)
	seen := map[Reason]int{}
	preempted := 0
	for at := time.Duration(0); at < 5*time.Minute; at += 50 * time.Millisecond {
		p.Advance(at)
		s := p.State()
		assert.LessOrEqual(t, s.Running, 16)
		assert.LessOrEqual(t, s.Waiting, 8+16, "the queue and who was preempted")
		assert.LessOrEqual(t, s.Used, 70)
		held := 0
		for _, r := range p.running {
			held += r.held
		}
		require.Equal(t, held, s.Used)
	}
	for _, r := range p.Requests() {
		seen[r.Reason]++
		preempted += r.Preemptions
		last := r.Scheduled
		if r.Reason != Active {
			assert.LessOrEqual(t, r.Arrival, r.End)
		}
		for i := range r.tokens {
			assert.GreaterOrEqual(t, r.Token(i), last)
			last = r.Token(i)
		}
		assert.LessOrEqual(t, r.Prompt+r.Output(), 1024)
		if r.Reason.Outcome() == Success {
			assert.Equal(t, last, r.End)
			assert.GreaterOrEqual(t, r.Output(), 2)
			assert.Less(t, r.Cached, r.Prompt)
		}
	}
	for _, why := range []Reason{Stop, Length, Abort, Error, Overloaded} {
		assert.Greater(t, seen[why], 5, why.String())
	}
	assert.Greater(t, preempted, 5)
}

// What the engine counted is what the list of its requests holds.
func TestCountsAgreeWithTheTruth(t *testing.T) {
	p := start(t, busy(), 5)
	p.Advance(10 * time.Minute)
	s, total := p.State(), Total([]*Process{p})
	window := Truth([]*Process{p}, -1, p.Now())
	assert.True(t, window.Complete)
	assert.Equal(t, total, window.Totals)
	assert.Equal(t, []int{total.Arrived, total.FirstTokens, total.InputTokens, total.OutputTokens, total.FinishedInput, total.FinishedOutput, total.FinishedCached},
		[]int{s.Arrived, s.FirstTokens, s.InputTokens, s.OutputTokens, s.FinishedInput, s.FinishedOutput, s.FinishedCached})
	for why := Stop; why < reasons; why++ {
		assert.Equal(t, total.Reasons[why.String()], s.Finished[why], why.String())
	}
	for _, f := range []Figure{FirstToken, InterToken, Duration, PerOutputToken, QueueTime, QueueTimeAtStart, PrefillTime, DecodeTime, OutputTokens} {
		values := Values([]*Process{p}, f, -1, p.Now())
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		assert.Equal(t, int(s.Histogram(f).Count), len(values), "figure %d", f)
		assert.InDelta(t, s.Histogram(f).Sum, sum, 1e-6*sum, "figure %d", f)
	}
	assert.Equal(t, total.OutputTokens-total.FirstTokens, window.InterToken.Count)
}

func TestWindowsAddUp(t *testing.T) {
	p := start(t, busy(), 5)
	p.Advance(3 * time.Minute)
	all := []*Process{p}
	whole, sum := Truth(all, 0, 3*time.Minute), Totals{}
	waited := 0.0
	for at := time.Duration(0); at < 3*time.Minute; at += 20 * time.Second {
		w := Truth(all, at, at+20*time.Second)
		sum.Arrived += w.Arrived
		sum.OutputTokens += w.OutputTokens
		sum.InputTokens += w.InputTokens
		sum.FinishedOutput += w.FinishedOutput
		waited += w.MeanWaiting / 9
	}
	assert.Equal(t, []int{whole.Arrived, whole.OutputTokens, whole.InputTokens, whole.FinishedOutput}, []int{sum.Arrived, sum.OutputTokens, sum.InputTokens, sum.FinishedOutput})
	assert.InDelta(t, whole.MeanWaiting, waited, 1e-9)
}

func TestMeanWaitingIsThatOfTheGauge(t *testing.T) {
	p := start(t, busy(), 9)
	sum, n := 0.0, 0
	for at := time.Duration(0); at < time.Minute; at += 5 * time.Millisecond {
		p.Advance(at)
		sum += float64(p.State().Waiting)
		n++
	}
	assert.Greater(t, sum, 100.0)
	assert.InEpsilon(t, sum/float64(n), Truth([]*Process{p}, 0, time.Minute).MeanWaiting, .02)
}

// Requests of long ago are totals: nothing is forgotten, and memory has a limit.
func TestOldRequestsBecomeTotals(t *testing.T) {
	p := start(t, Config{Rate: 2, Prompt: 50, Output: 8}, 1)
	all := []*Process{p}
	p.Advance(time.Hour)
	kept := len(p.Requests())
	hour := Total(all)
	p.Advance(3 * time.Hour)
	assert.InEpsilon(t, kept, len(p.Requests()), .1)
	assert.Empty(t, p.patience)
	total := Total(all)
	s := p.State()
	assert.Equal(t, []int{s.Arrived, s.OutputTokens, s.FinishedInput}, []int{total.Arrived, total.OutputTokens, total.FinishedInput})
	assert.Greater(t, total.Arrived, 2*hour.Arrived)
	assert.False(t, Truth(all, time.Hour, 3*time.Hour).Complete)
	assert.True(t, Truth(all, 2*time.Hour+time.Minute, 3*time.Hour).Complete)
}

func TestRestartLosesWhatWasActive(t *testing.T) {
	p := start(t, busy(), 4)
	p.Advance(time.Minute)
	before := p.State()
	require.Positive(t, before.Running)
	p.Stop()
	assert.False(t, p.State().Up)
	p.Advance(70 * time.Second)
	p.Start()
	s := p.State()
	assert.True(t, s.Up)
	assert.Zero(t, s.OutputTokens)
	assert.Equal(t, 70*time.Second, s.Since)
	total := Total([]*Process{p})
	assert.Equal(t, before.Running+before.Waiting, total.Finished[Lost])
	assert.Equal(t, before.OutputTokens, total.OutputTokens, "what was made was made")
	seen := p.Seen()[0]
	assert.Equal(t, []int{total.OutputTokens, total.Finished[Lost], total.Arrived}, []int{seen.OutputTokens, seen.Finished[Stopped], seen.Arrived})
	assert.Equal(t, before.Histogram(Duration).Count, seen.Histogram(Duration).Count)
	p.Advance(2 * time.Minute)
	assert.Equal(t, Total([]*Process{p}).OutputTokens, before.OutputTokens+p.State().OutputTokens)

	p.Swap("other/model")
	s = p.State()
	assert.Equal(t, "other/model", s.Model)
	assert.Equal(t, []time.Duration{70 * time.Second, 2 * time.Minute}, []time.Duration{s.Process, s.Since})
	assert.Zero(t, s.Counts.Arrived)
	p.Advance(3 * time.Minute)
	models := p.Seen()
	require.Len(t, models, 2)
	assert.Equal(t, Total([]*Process{p}).OutputTokens, models[0].OutputTokens+models[1].OutputTokens)
	later := models[1]
	p.Advance(4 * time.Minute)
	again := p.Seen()[1]
	again.Less(&later)
	assert.Equal(t, Truth([]*Process{p}, 3*time.Minute, 4*time.Minute).OutputTokens, again.OutputTokens)
	assert.Equal(t, 3*time.Minute, again.Since)
}

func TestSleep(t *testing.T) {
	p := start(t, Config{Rate: 2}, 4)
	p.Advance(time.Minute)
	p.Sleep(true)
	p.Advance(61 * time.Second) // the step that had begun ends
	before := p.State()
	p.Advance(90 * time.Second)
	s := p.State()
	assert.Equal(t, before.OutputTokens, s.OutputTokens)
	assert.Greater(t, s.Waiting, 20)
	p.Sleep(false)
	p.Advance(3 * time.Minute)
	assert.Less(t, p.State().Waiting, 5)
}

func TestLoadIsTheRate(t *testing.T) {
	p, err := New(Config{Rate: 10, Output: 4, Prompt: 4}, 1, 0, func(k int64) float64 {
		if k/100%2 == 0 {
			return 0
		}
		return .5
	}, nil)
	require.NoError(t, err)
	p.Advance(1000 * time.Second)
	assert.InEpsilon(t, 2500, Total([]*Process{p}).Arrived, .06)
	assert.Zero(t, Truth([]*Process{p}, 0, 100*time.Second).Arrived)
}

func TestQuantile(t *testing.T) {
	v := []float64{1, 2, 3, 4}
	assert.Equal(t, []float64{1, 2, 2, 4, 4}, []float64{Quantile(v, 0), Quantile(v, .5), Quantile(v, .4), Quantile(v, .99), Quantile(v, 1)})
}

func TestConfigIsChecked(t *testing.T) {
	for want, cfg := range map[string]Config{
		"rate: -1":        {Rate: -1},
		"aborts: 2":       {Aborts: 2},
		"context: 8":      {Context: 8},
		"blocks: 4":       {Blocks: 4},
		"slots: -1":       {Slots: -1},
		"adapters: a nam": {Adapters: []string{""}},
	} {
		_, err := New(cfg, 1, 0, full, nil)
		assert.ErrorContains(t, err, want)
	}
}
