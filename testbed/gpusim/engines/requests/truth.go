// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"math"
	"slices"
	"time"
)

// Totals are requests and tokens, counted.
type Totals struct {
	Arrived      int             `json:"arrived"`
	FirstTokens  int             `json:"first_tokens"`
	Finished     map[Outcome]int `json:"finished"`
	Reasons      map[string]int  `json:"reasons"`
	InputTokens  int             `json:"input_tokens"`  // of prompts, when their first token was made
	OutputTokens int             `json:"output_tokens"` // when each was made
	// Of successful requests, when they ended:
	FinishedInput  int `json:"finished_input_tokens"`
	FinishedOutput int `json:"finished_output_tokens"`
	FinishedCached int `json:"finished_cached_tokens"`
}

// add counts what of a request falls into a window: later than from, not later than to.
func (t *Totals) add(r *Request, from, to time.Duration) {
	within := func(at time.Duration) bool { return at > from && at <= to }
	if t.Finished == nil {
		t.Finished, t.Reasons = map[Outcome]int{}, map[string]int{}
	}
	if within(r.Arrival) {
		t.Arrived++
	}
	if r.Output() > 0 && within(r.Token(0)) {
		t.FirstTokens++
		t.InputTokens += r.Prompt
	}
	t.OutputTokens += r.made(to) - r.made(from)
	if r.Reason == Active || !within(r.End) {
		return
	}
	t.Finished[r.Reason.Outcome()]++
	t.Reasons[r.Reason.String()]++
	if r.Reason.Outcome() == Success {
		t.FinishedInput += r.Prompt
		t.FinishedOutput += r.Output()
		t.FinishedCached += r.Cached
	}
}

// made is how many tokens a request had at a time.
func (r *Request) made(at time.Duration) int {
	if at < r.Arrival {
		return 0
	}
	n, _ := slices.BinarySearchFunc(r.tokens, at, func(token uint32, at time.Duration) int {
		if r.Arrival+time.Duration(token)*time.Microsecond <= at {
			return -1
		}
		return 1
	})
	return n
}

// Total counts everything since the process began.
func Total(all []*Process) Totals {
	t := Totals{Finished: map[Outcome]int{}, Reasons: map[string]int{}}
	for _, p := range all {
		t.Arrived += p.total.Arrived
		t.FirstTokens += p.total.FirstTokens
		t.InputTokens += p.total.InputTokens
		t.OutputTokens += p.total.OutputTokens
		t.FinishedInput += p.total.FinishedInput
		t.FinishedOutput += p.total.FinishedOutput
		t.FinishedCached += p.total.FinishedCached
		for k, n := range p.total.Finished {
			t.Finished[k] += n
		}
		for k, n := range p.total.Reasons {
			t.Reasons[k] += n
		}
		for _, r := range p.kept {
			t.add(r, -1, p.now)
		}
	}
	return t
}

// Distribution is what there is to know of a figure, in its unit. Quantiles are values
// that occurred: the smallest that at least so many are not above.
type Distribution struct {
	Count int     `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// Window is the truth about some engines later than From and not later than To,
// seconds since the start of the fleet.
type Window struct {
	From float64 `json:"from_seconds"`
	To   float64 `json:"to_seconds"`
	// Complete is whether every request of the window is still kept.
	Complete bool `json:"complete"`
	Totals
	FirstToken     Distribution `json:"time_to_first_token_seconds"` // of first tokens made in the window
	PerOutputToken Distribution `json:"time_per_output_token_seconds"`
	InterToken     Distribution `json:"inter_token_latency_seconds"`
	Duration       Distribution `json:"request_duration_seconds"`
	QueueTime      Distribution `json:"queue_time_seconds"`
	PrefillTime    Distribution `json:"prefill_time_seconds"`
	DecodeTime     Distribution `json:"decode_time_seconds"`
	MeanWaiting    float64      `json:"mean_waiting"` // requests in the queues, over the window
}

// Truth is the truth about the requests of some engines in a window.
func Truth(all []*Process, from, to time.Duration) Window {
	w := Window{From: from.Seconds(), To: to.Seconds(), Complete: true, Totals: Totals{Finished: map[Outcome]int{}, Reasons: map[string]int{}}}
	var waited time.Duration
	for _, p := range all {
		w.Complete = w.Complete && (p.total.Arrived == 0 || from >= p.now-keepFor)
		for _, r := range p.kept {
			w.add(r, from, to)
			for _, q := range r.waits {
				waited += q.between(from, min(to, p.now))
			}
		}
	}
	if to > from {
		w.MeanWaiting = waited.Seconds() / (to - from).Seconds()
	}
	for f, into := range map[Figure]*Distribution{
		FirstToken: &w.FirstToken, PerOutputToken: &w.PerOutputToken, InterToken: &w.InterToken, Duration: &w.Duration, QueueTime: &w.QueueTime,
		PrefillTime: &w.PrefillTime, DecodeTime: &w.DecodeTime,
	} {
		*into = distribution(Values(all, f, from, to))
	}
	return w
}

// Values are the observations of a figure of requests in a window, sorted.
func Values(all []*Process, f Figure, from, to time.Duration) []float64 {
	var out []float64
	for _, p := range all {
		for _, r := range p.kept {
			switch {
			case f == FirstToken:
				if r.Output() > 0 && r.Token(0) > from && r.Token(0) <= to {
					out = append(out, (r.Token(0) - r.Arrival).Seconds())
				}
			case f == InterToken:
				out = r.gaps(out, from, to)
			case f == QueueTimeAtStart:
				if r.Scheduled > from && r.Scheduled <= to {
					out = append(out, (r.Scheduled - r.Arrival).Seconds())
				}
			case r.Reason.Outcome() == Success && r.End > from && r.End <= to:
				if v, ok := r.figure(f); ok {
					out = append(out, v)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// gaps are the times between tokens made in a window. Tokens of one step came together:
// each has its part of the time since the step before.
func (r *Request) gaps(out []float64, from, to time.Duration) []float64 {
	for i := 1; i < r.Output(); {
		n := 1
		for i+n < r.Output() && r.tokens[i+n] == r.tokens[i] {
			n++
		}
		if at := r.Token(i); at > from && at <= to {
			for range n {
				out = append(out, (at-r.Token(i-1)).Seconds()/float64(n))
			}
		}
		i += n
	}
	return out
}

func distribution(sorted []float64) Distribution {
	n := len(sorted)
	if n == 0 {
		return Distribution{}
	}
	sum := 0.0
	for _, v := range sorted {
		sum += v
	}
	return Distribution{
		Count: n, Mean: sum / float64(n), P50: Quantile(sorted, .5), P90: Quantile(sorted, .9), P95: Quantile(sorted, .95), P99: Quantile(sorted, .99),
		Max: sorted[n-1],
	}
}

// Quantile is the smallest of sorted values that at least the share q is not above.
func Quantile(sorted []float64, q float64) float64 {
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
