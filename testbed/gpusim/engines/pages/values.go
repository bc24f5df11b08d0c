// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
)

// What several engines report, as functions of the state.

func running(v *view) float64 { return float64(v.Running) }
func waiting(v *view) float64 { return float64(v.Waiting) }
func slots(v *view) float64   { return float64(v.Slots) }

// paused are requests that an engine at rest holds.
func paused(v *view) float64 {
	if v.Asleep {
		return float64(v.Running)
	}
	return 0
}

// kvUsage is the part of the blocks that is in use.
func kvUsage(v *view) float64 { return float64(v.Used) / float64(max(v.Blocks, 1)) }

// kvTokens is how many tokens the blocks can hold.
func kvTokens(v *view) float64 { return float64(v.Blocks * v.Block) }

// count reports one of the counts.
func count(of func(*requests.Counts) int) func(*view) float64 {
	return func(v *view) float64 { return float64(of(&v.Counts)) }
}

var (
	preemptions    = count(func(c *requests.Counts) int { return c.Preemptions })
	inputTokens    = count(func(c *requests.Counts) int { return c.InputTokens })
	cachedInput    = count(func(c *requests.Counts) int { return c.CachedInput })
	outputTokens   = count(func(c *requests.Counts) int { return c.OutputTokens })
	finishedInput  = count(func(c *requests.Counts) int { return c.FinishedInput })
	finishedOutput = count(func(c *requests.Counts) int { return c.FinishedOutput })
	finishedCached = count(func(c *requests.Counts) int { return c.FinishedCached })
	queried        = count(func(c *requests.Counts) int { return c.QueriedTokens })
	hits           = count(func(c *requests.Counts) int { return c.HitTokens })
	queriedBlocks  = count(func(c *requests.Counts) int { return c.QueriedBlocks })
	hitBlocks      = count(func(c *requests.Counts) int { return c.HitBlocks })
	drafts         = count(func(c *requests.Counts) int { return c.Drafts })
	draftTokens    = count(func(c *requests.Counts) int { return c.DraftTokens })
	acceptedTokens = count(func(c *requests.Counts) int { return c.AcceptedTokens })
	steps          = count(func(c *requests.Counts) int { return c.Steps })
	batches        = count(func(c *requests.Counts) int { return c.Batches })
	arrived        = count(func(c *requests.Counts) int { return c.Arrived })
	succeeded      = count((*requests.Counts).Succeeded)
)

func finished(why requests.Reason) func(*view) float64 {
	return count(func(c *requests.Counts) int { return c.Finished[why] })
}

// hitRatio is the part of the prompts' tokens that the prefix cache had, 0 before any.
func hitRatio(v *view) float64 { return quotient(hits(v), queried(v)) }

// acceptance is the part of the proposed tokens that were right, 0 before any.
func acceptance(v *view) float64 { return quotient(acceptedTokens(v), draftTokens(v)) }

func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// rate is a count in a second of the engine's life.
func rate(of func(*view) float64) func(*view) float64 {
	return func(v *view) float64 { return quotient(of(v), v.uptime()) }
}

func speculates(v *view) bool { return v.Drafts > 0 }
func hasLoRA(v *view) bool    { return len(v.Adapters) > 0 }

// byReason reports ended requests by a label that names the reason.
func byReason(key string, all ...requests.Reason) func(*view) []sample {
	return func(v *view) (out []sample) {
		for _, why := range all {
			out = append(out, sample{labels{key, why.String()}, float64(v.Finished[why])})
		}
		return out
	}
}

// occurred leaves out what is 0: a client library that creates a series when it is
// first counted.
func occurred(each func(*view) []sample) func(*view) []sample {
	return func(v *view) (out []sample) {
		for _, s := range each(v) {
			if s.value != 0 {
				out = append(out, s)
			}
		}
		return out
	}
}

// modelName is the label of most engines.
func modelName(v *view) labels { return labels{"model_name", v.Model} }

func names(list string) int {
	if list == "" {
		return 0
	}
	return 1 + strings.Count(list, ",")
}
