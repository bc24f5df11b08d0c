// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package pages prints what inference engines report about their requests, each with
// its own families, labels, bounds, types and peculiarities. An engine is a table.
package pages

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
)

// Engine is what prints a page: an engine of some version, or what stands before
// engines.
type Engine struct {
	Name string
	// Gateway is whether it has no requests of its own but sees those of engines.
	Gateway bool
	// Path of the page, Port that the engine listens on by default.
	Path string
	Port int

	prefix string // of the families
	style  style
	labels func(v *view) labels
	// ranked is whether each data-parallel rank has series of its own; repeated are
	// the labels of such series where there are several.
	ranked   bool
	repeated func(v *view) []labels
	rows     []row
}

// Input is what a page is about.
type Input struct {
	Epoch time.Time // start of the fleet: that of the times in States
	Pod   string
	// States are the engine or its data-parallel ranks; for a gateway what it has seen of
	// each engine behind it, one after the other.
	States []requests.State
	// Ranks is how many tensor-parallel ranks each have, 0 is 1.
	Ranks int
	// Race prints a histogram that was read while it was written: a bucket has less
	// than the one below it.
	Race bool
}

// row is one family.
type row struct {
	name   string // without the engine's prefix; "=" before it: as it is
	typ    string // gauge, counter, histogram or summary
	help   string
	labels labels                   // beside those of the engine
	free   bool                     // has none of those of the engine
	merged bool                     // of all ranks together
	base   func(v *view) labels     // instead of those of the engine
	of     func(in *Input) []series // instead of what the engine has series of
	when   func(v *view) bool
	early  bool // without _created: what the client library itself adds

	value func(v *view) float64
	each  func(v *view) []sample // several series of the family
	// A histogram: of the figure, in bounds that are times scale what the figure has.
	figure requests.Figure
	bounds func(requests.Limits) []float64
	scale  float64
	// A summary: its values come from quantiles.
	quantiles []float64
}

// sample is a series of a family.
type sample struct {
	labels labels
	value  float64
}

// view is what a row sees of an engine: one rank, or all.
type view struct {
	requests.State
	rank int
	in   *Input
}

// unix is a time of the fleet in seconds since 1970.
func (v *view) unix(t time.Duration) float64 {
	return float64(v.in.Epoch.Add(t).UnixMicro()) / 1e6
}

// uptime in seconds, never negative.
func (v *view) uptime() float64 { return max(v.Now-v.Since, 0).Seconds() }

// sum of a figure.
func (v *view) sum(f requests.Figure) float64 { return v.Histogram(f).Sum }

// labels are pairs of a key and a value.
type labels []string

var engines = slices.Concat(vllmEngines, vllmRelatives, otherEngines, tritonEngines, gateways)

// Names lists the engines.
func Names() []string {
	out := make([]string, 0, len(engines))
	for i := range engines {
		out = append(out, engines[i].Name)
	}
	return out
}

// Find returns an engine. The error lists those that there are.
func Find(name string) (*Engine, error) {
	for i := range engines {
		if engines[i].Name == name {
			return &engines[i], nil
		}
	}
	return nil, fmt.Errorf("unknown engine %q: use one of %s", name, strings.Join(Names(), ", "))
}

// Bounds are those of every engine's histograms, in the units of the figures: with
// them a process can be shown on each page.
func Bounds(l requests.Limits) requests.Bounds {
	out := requests.Bounds{}
	for i := range engines {
		for j := range engines[i].rows {
			r := &engines[i].rows[j]
			if r.bounds == nil {
				continue
			}
			for _, b := range r.bounds(l) {
				out[r.figure] = append(out[r.figure], b/r.factor())
			}
		}
	}
	return out
}

func (r *row) factor() float64 {
	if r.scale == 0 {
		return 1
	}
	return r.scale
}
