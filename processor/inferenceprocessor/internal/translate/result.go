// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package translate // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/translate"

import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/page"

// Reason is why a point became no part of a series.
type Reason uint8

const (
	// Sentinel points stand for no value, or have one that cannot be.
	Sentinel Reason = iota
	// InvalidHistogram points contradict themselves or the page before.
	InvalidHistogram
	// LimitSeries points would have needed another series.
	LimitSeries
	// LimitModels points are of a model beyond the limit.
	LimitModels
	// Delta points count since the point before.
	Delta
	// Mistyped points are of another type than the family has.
	Mistyped

	reasons
)

func (r Reason) String() string {
	return [...]string{"sentinel", "invalid_histogram", "limit_series", "limit_models", "delta", "mistyped"}[r]
}

// Reasons are all reasons.
func Reasons() []Reason {
	list := make([]Reason, reasons)
	for i := range list {
		list[i] = Reason(i)
	}
	return list
}

// EngineResult is what became of the points of an engine.
type EngineResult struct {
	Engine string
	// Normalised is how many points of the vocabulary were made.
	Normalised int
	// Refused is how many points of the page became none, by Reason.
	Refused [reasons]int
}

// Result is what became of a page.
type Result struct {
	Engines []EngineResult
	// Empty are engines at the target of which the page has no family.
	Empty []string
	// Unknown are families of no engine.
	Unknown []string
	// Renamed are those of them that may have a metric which the page lacks.
	Renamed []page.Renamed
}

func (r *Result) reset() {
	r.Engines, r.Empty, r.Unknown, r.Renamed = r.Engines[:0], r.Empty[:0], nil, nil
}

func (r *Result) begin(engine string) { r.Engines = append(r.Engines, EngineResult{Engine: engine}) }

func (r *Result) now() *EngineResult { return &r.Engines[len(r.Engines)-1] }
