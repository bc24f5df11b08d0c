// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"fmt"
	"slices"
	"sort"
	"time"
)

// Figure is a quantity that engines put into histograms: seconds or a number.
type Figure int

// The figures. Those of a request are of successful ones, at their end, unless stated.
const (
	FirstToken           Figure = iota // arrival to first token, when that is made
	FirstTokenOfFinished               // the same at the end
	InterToken                         // to each token from the one before, when it is made
	Duration                           // arrival to end
	PerOutputToken                     // (duration - time to first token) / (tokens - 1)
	QueueTime                          // arrival to first scheduled
	QueueTimeAtStart                   // the same, of every request, when it is scheduled
	PrefillTime                        // scheduled to first token
	DecodeTime                         // first token to end
	InferenceTime                      // prefill and decode
	InferencePerToken                  // inference time / tokens
	DurationPerToken                   // duration / tokens
	PromptTokens
	ComputedTokens // of the prompt, without cached ones
	CachedTokens
	OutputTokens
	MostTokens    // that the client allowed
	Choices       // 1
	Preempted     // how often a request was
	SkippedTokens // tokens that speculation added
	StepTokens    // prefilled and made in a step, at its end
	StepBatch     // requests of a step, at its end
	StepSeconds   // of a step, at its end
	figures
)

// Bounds are the bounds in which each figure is counted: those of every page that is
// to show it.
type Bounds map[Figure][]float64

// Histogram is a figure since the engine's start. It can be cut at any of its bounds.
type Histogram struct {
	bounds  []float64
	buckets []uint64 // of each bound, not cumulative, and above the last
	Sum     float64
	Count   uint64
}

func (h *Histogram) observe(v float64) {
	h.buckets[sort.SearchFloat64s(h.bounds, v)]++
	h.Sum += v
	h.Count++
}

// At is how many observations are at most a bound. A bound that was not asked for is
// a mistake of the program.
func (h *Histogram) At(bound float64) uint64 {
	i, ok := slices.BinarySearch(h.bounds, bound)
	if !ok {
		panic(fmt.Sprintf("no bound %v", bound))
	}
	var n uint64
	for _, b := range h.buckets[:i+1] {
		n += b
	}
	return n
}

// add is for histograms of the same bounds, or an empty one.
func (h *Histogram) add(o *Histogram) {
	if h.buckets == nil {
		h.bounds, h.buckets = o.bounds, make([]uint64, len(o.buckets))
	}
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
	h.Sum += o.Sum
	h.Count += o.Count
}

// Counts are what an engine counts since its start.
type Counts struct {
	Arrived        int // requests, rejected ones too
	Started        int // requests that were scheduled
	FirstTokens    int // requests that have their first token
	InputTokens    int // of prompts, when they are prefilled
	CachedInput    int // of those, found in the prefix cache
	OutputTokens   int // when they are made
	FinishedInput  int // of successful requests, when they end
	FinishedOutput int
	FinishedCached int
	QueriedTokens  int // asked of the prefix cache
	HitTokens      int // found there
	QueriedBlocks  int
	HitBlocks      int
	Preemptions    int
	Drafts         int
	DraftTokens    int
	AcceptedTokens int
	Steps          int
	Batches        int // sum of the requests of every step
	Finished       [reasons]int
}

func (c *Counts) add(o *Counts, sign int) {
	all := c.all()
	for i, v := range o.all() {
		*all[i] += sign * *v
	}
	for i, n := range o.Finished {
		c.Finished[i] += sign * n
	}
}

func (c *Counts) all() [19]*int {
	return [...]*int{
		&c.Arrived, &c.Started, &c.FirstTokens, &c.InputTokens, &c.CachedInput, &c.OutputTokens, &c.FinishedInput, &c.FinishedOutput, &c.FinishedCached, &c.QueriedTokens,
		&c.HitTokens, &c.QueriedBlocks, &c.HitBlocks, &c.Preemptions, &c.Drafts, &c.DraftTokens, &c.AcceptedTokens, &c.Steps, &c.Batches,
	}
}

// Succeeded counts the outcome success.
func (c *Counts) Succeeded() int { return c.Finished[Stop] + c.Finished[Length] }

// life is what an engine knows since it started.
type life struct {
	since time.Duration
	Counts
	histograms [figures]Histogram
	mixes      []Mix // of LoRA adapters
}

func newLife(since time.Duration, bounds Bounds) *life {
	l := &life{since: since}
	for f := range l.histograms {
		all := slices.Clone(bounds[Figure(f)])
		slices.Sort(all)
		all = slices.Compact(all)
		l.histograms[f] = Histogram{bounds: all, buckets: make([]uint64, len(all)+1)}
	}
	return l
}

func (l *life) observe(f Figure, v float64) { l.histograms[f].observe(v) }

// finished counts a request that has ended.
func (l *life) finished(r *Request) {
	l.Finished[r.Reason]++
	if r.Reason.Outcome() != Success {
		return
	}
	l.FinishedInput += r.Prompt
	l.FinishedOutput += r.Output()
	l.FinishedCached += r.Cached
	for f := range figures {
		if v, ok := r.figure(f); ok {
			l.observe(f, v)
		}
	}
}

// figure is a figure of a successful request, if it is one.
func (r *Request) figure(f Figure) (float64, bool) {
	first, n := r.Token(0), float64(r.Output())
	switch f {
	case FirstTokenOfFinished:
		return (first - r.Arrival).Seconds(), true
	case Duration:
		return (r.End - r.Arrival).Seconds(), true
	case PerOutputToken:
		return (r.End - first).Seconds() / (n - 1), n > 1
	case QueueTime:
		return (r.Scheduled - r.Arrival).Seconds(), true
	case PrefillTime:
		return (first - r.Scheduled).Seconds(), true
	case DecodeTime:
		return (r.End - first).Seconds(), true
	case InferenceTime:
		return (r.End - r.Scheduled).Seconds(), true
	case InferencePerToken:
		return (r.End - r.Scheduled).Seconds() / n, true
	case DurationPerToken:
		return (r.End - r.Arrival).Seconds() / n, true
	case PromptTokens:
		return float64(r.Prompt), true
	case ComputedTokens:
		return float64(r.Prompt - r.Cached), true
	case CachedTokens:
		return float64(r.Cached), true
	case OutputTokens:
		return n, true
	case MostTokens:
		return float64(r.most), true
	case Choices:
		return 1, true
	case Preempted:
		return float64(r.Preemptions), true
	case SkippedTokens:
		return float64(r.Skipped), true
	default:
		return 0, false
	}
}

// less takes away what was observed before.
func (h *Histogram) less(o *Histogram) {
	for i, n := range o.buckets {
		h.buckets[i] -= n
	}
	h.Sum -= o.Sum
	h.Count -= o.Count
}

// Quantile is the bound below which at least the share q lies: as good as the bounds.
// Above the last bound it is the mean.
func (h *Histogram) Quantile(q float64) float64 {
	var n uint64
	for i, b := range h.bounds {
		if n += h.buckets[i]; float64(n) >= q*float64(h.Count) {
			return b
		}
	}
	return h.Sum / float64(max(h.Count, 1))
}
