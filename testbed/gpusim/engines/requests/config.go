// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package requests simulates what an inference engine does with its requests: they
// arrive, wait for a slot and for memory, are prefilled, get a token a step, and end.
// Every request is kept for an hour. It has no clock, no goroutine and no I/O: a
// process is a function of its seed, its load and of what is done to it when.
package requests

import (
	"errors"
	"fmt"
	"math"
)

// Config describes the traffic and the engine. Zero stands for the default of a key;
// of shares the default is 0.
type Config struct {
	Model string `json:"model,omitempty"` // default: meta-llama/Llama-3.1-8B-Instruct
	// Rate is how many requests a second arrive at full load, on average.
	Rate float64 `json:"rate,omitempty"` // default 2
	// Prompt and Output are the mean lengths in tokens, Context is the most tokens of
	// a request, both together.
	Prompt  int `json:"prompt_tokens,omitempty"` // default 300
	Output  int `json:"output_tokens,omitempty"` // default 120
	Context int `json:"context,omitempty"`       // default 8192
	// Slots is how many requests may run at once, Queue how many may wait; more are
	// rejected.
	Slots int `json:"slots,omitempty"` // default 64
	Queue int `json:"queue,omitempty"` // default 1000
	// Blocks of BlockSize tokens are the memory for keys and values. A request that
	// needs one more than there is takes it from the one that came last, which waits
	// again.
	Blocks    int `json:"blocks,omitempty"`     // default 4096
	BlockSize int `json:"block_size,omitempty"` // default 16
	// Aborts is the share of clients that may lose patience, Errors that of requests
	// that fail, PrefixHits that of prompts that begin as an earlier one did.
	Aborts     float64 `json:"aborts,omitempty"`
	Errors     float64 `json:"errors,omitempty"`
	PrefixHits float64 `json:"prefix_hits,omitempty"`
	// Drafts is how many tokens are proposed for each step of a request, 0 without
	// speculation; Accepted is the chance of each of them.
	Drafts   int     `json:"drafts,omitempty"`
	Accepted float64 `json:"accepted,omitempty"`
	// Adapters are the LoRA adapters that half of the requests name.
	Adapters []string `json:"adapters,omitempty"`
}

// Typical is an engine with a little of everything that happens.
func Typical() Config {
	return Config{Aborts: .03, Errors: .01, PrefixHits: .4}
}

// Limits are what bounds of token histograms are made of.
type Limits struct{ Input, Total int }

func (c *Config) limits() Limits { return Limits{Input: c.Context * 3 / 4, Total: c.Context} }

func orDefault[T int | float64 | string](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// complete fills in the defaults and checks the rest. The error names the key.
func (c *Config) complete() error {
	orDefault(&c.Model, "meta-llama/Llama-3.1-8B-Instruct")
	orDefault(&c.Rate, 2)
	orDefault(&c.Prompt, 300)
	orDefault(&c.Output, 120)
	orDefault(&c.Context, 8192)
	orDefault(&c.Slots, 64)
	orDefault(&c.Queue, 1000)
	orDefault(&c.Blocks, 4096)
	orDefault(&c.BlockSize, 16)
	for key, v := range map[string]int{
		"prompt_tokens": c.Prompt, "output_tokens": c.Output, "context": c.Context, "slots": c.Slots, "queue": c.Queue, "blocks": c.Blocks,
		"block_size": c.BlockSize, "drafts": c.Drafts,
	} {
		if v < 0 || v > 1<<24 {
			return fmt.Errorf("%s: %d is not between 0 and %d", key, v, 1<<24)
		}
	}
	for key, v := range map[string]float64{"aborts": c.Aborts, "errors": c.Errors, "prefix_hits": c.PrefixHits, "accepted": c.Accepted} {
		if !(v >= 0 && v <= 1) {
			return fmt.Errorf("%s: %v is not a share between 0 and 1", key, v)
		}
	}
	if !(c.Rate > 0) || math.IsInf(c.Rate, 1) || c.Rate > 1000 {
		return fmt.Errorf("rate: %v is not above 0 and at most 1000 requests a second", c.Rate)
	}
	if c.Context < 16 {
		return fmt.Errorf("context: %d tokens are too few, use 16 or more", c.Context)
	}
	if need := c.Context + c.Drafts + c.BlockSize; c.Blocks*c.BlockSize < need {
		return fmt.Errorf("blocks: %d of %d tokens cannot hold one request of %d tokens: use more, or a smaller context", c.Blocks, c.BlockSize, need)
	}
	for _, name := range c.Adapters {
		if name == "" {
			return errors.New("adapters: a name must not be empty")
		}
	}
	return nil
}
