// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package board judges the health of boards: which reasons against a board are active,
// and which state, action, coverage and score they make together. It reads no clock.
package board

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
)

// Reason is one reason against a board. Its place in Reasons is its identity in a Board.
type Reason struct {
	// Name is the value of gpu.health.reason.
	Name string
	// Sentence describes the reason while it is active, with value and limit. It has no
	// full stop.
	Sentence func(*Active) string
	// State and Action are those of the reason, where the finding has no others.
	State  health.State
	Action health.Action
	// Weight is the score of a board that this reason alone makes degraded, from 0.5 to
	// 0.9: less for what costs more work. 0: it makes no board degraded.
	Weight float64
	// Reads are the metrics that decide; none: what happens to the board decides.
	Reads []rule.Input
	// Needs are the features without which a board cannot have the inputs.
	Needs Kind
	// Only are the features of the boards that it is about: its limits are those of one
	// vendor. 0: of all.
	Only Kind
	// Judge reads one page. It may keep what it needs between two pages in the memory.
	Judge func(r Readings, m *Memory, at pcommon.Timestamp) Finding
	// ClearedBy is the evidence that ends the reason, beside its own value.
	ClearedBy Evidence
	// Quiet is after how long without its cause the reason ends; 0: it does not.
	Quiet time.Duration
	// Vital reasons are those of which one must be read for a board to be ok.
	Vital bool
	// Doc describes the reason in the README and in its runbook.
	Doc Doc
}

// Doc describes a reason, in Markdown. Each text but Means continues the sentence of its
// column, without a full stop.
type Doc struct {
	Means   string // for the board, in whole sentences
	Raised  string // when
	Cleared string // when
	Source  string // of the threshold
}

// Readings are the readings of one reason's inputs, in the order of rule.Input.
type Readings struct {
	Values []float64 // of all rules; NaN: absent
	Index  []int     // in Values
}

// At returns the i-th reading; NaN: there was none.
func (r Readings) At(i int) float64 { return r.Values[r.Index[i]] }

// known reports whether the i-th reading is there.
func (r Readings) known(i int) bool { return !math.IsNaN(r.At(i)) }

// some reports whether any of the readings is there.
func (r Readings) some() bool {
	for i := range r.Index {
		if r.known(i) {
			return true
		}
	}
	return false
}

// set reports whether any of the readings, which are flags, is 1.
func (r Readings) set() bool {
	for i := range r.Index {
		if r.At(i) > 0 {
			return true
		}
	}
	return false
}

// Finding is what a page has about one reason. One without Known changes nothing. With
// neither Raise nor Clear it is between two thresholds.
type Finding struct {
	Known, Raise, Clear bool
	// State and Action replace those of the reason; OK and None: they do not.
	State  health.State
	Action health.Action
	// Value is what was read, and Threshold what it is compared with; 0: none.
	Value, Threshold float64
	// Variant distinguishes causes that are described by different sentences.
	Variant Variant
}

// Variant is one of the causes of a reason that has several; 0 is the first one.
type Variant uint8

// holds is the finding of a condition without hysteresis.
func holds(is bool) Finding { return Finding{Known: true, Raise: is, Clear: !is} }

// Evidence is what was seen of a board that ends reasons.
type Evidence uint8

const (
	// Reset: the GPU was reset.
	Reset Evidence = 1 << iota
	// Boot: its node was booted.
	Boot
	// Driver: it has another version of the driver.
	Driver
	// Person: it was acknowledged by a person.
	Person
)

// later reports whether at is at least d after from.
func later(at, from pcommon.Timestamp, d time.Duration) bool {
	return at >= from && at-from >= pcommon.Timestamp(d)
}
