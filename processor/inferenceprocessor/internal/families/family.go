// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package families has the one table of what inference engines print: which families
// each of them has in every version, what they really contain, and which series of the
// common vocabulary they become. Code, tests and families.md read it.
package families // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"

import "github.com/otelcol-gpu/otelcol-gpu/internal/names"

// Engine is a program that serves models, or one that stands before those.
type Engine struct {
	// Name is the value of inference.engine.
	Name string
	// Title is its name in documentation.
	Title string
	// Gateway marks what stands before servers. Its metrics are inference.gateway.*.
	Gateway bool
	// Prefixes begin the names of its families, the newest first, with the separator,
	// which is a colon or an underscore: where the page has several, only families with
	// the first of them that has a family of the row are read. The empty prefix is
	// accepted on a page that is known to be of this engine, or has five of its families.
	Prefixes []string
	// Marks are families, with prefix, of which one makes the page this engine's.
	Marks []string
	// Hides is an engine that is not looked for on a page of this one, and that has the
	// same prefixes: they do not make a page this engine's.
	Hides string
	// Repeats are engines of which a server of this one may print the families too, for the
	// same requests: they are not looked for on a page of this one.
	Repeats []string
	// Named is the inference.gateway of all rows of a gateway. Where the page has one of
	// the families NamedBy, it is the value of their label NamedLabel, if all series agree.
	Named, NamedLabel string
	NamedBy           []string
	// Model are the labels that name the model; the first that a series has counts.
	Model []string
	// Rank is the label of a data-parallel engine within the page, which becomes
	// inference.engine.rank.
	Rank string
	// Lowest are labels of ranks that repeat the same figures. Of the series that
	// they distinguish, the one with the lowest values counts, and all do where the row
	// takes the highest.
	Lowest []string
	// Stage is the label of pipeline stages, of which each has the same requests, and which
	// may have pages of their own: only what the row takes the highest of is read from later
	// ones than 0.
	Stage string
	// Rows are the series that are made. Where two could make one, the first with
	// its families on the page does.
	Rows []Row
	// Passed are families, without prefix, that are on no row on purpose: parts of
	// others, averages of an unknown window, figures without a unit. One that ends in *
	// stands for all that begin so.
	Passed []string
	// Dropped are families, with prefix, that others have better: with names:
	// normalised they are left out. One that ends in * stands for all that begin so.
	Dropped []string
	// Cannot has the reason for each metric of the tier that no row makes.
	Cannot map[*names.Metric]string
}

// Rule is how the values of a row are computed.
type Rule uint8

const (
	// Copy takes the value, or the histogram, of From as it is.
	Copy Rule = iota
	// Product multiplies From by With, series by series with equal labels.
	Product
	// Quotient divides From by With; nothing where that is 0.
	Quotient
	// Difference subtracts With from From, not below 0.
	Difference
	// Mean makes a histogram without bounds: its sum is the counter From, its count the
	// counter With.
	Mean
	// SumOf takes the sum of a histogram as a counter.
	SumOf
	// CountOf takes the count of a histogram as a counter.
	CountOf
	// Given takes From; nothing where With is 0.
	Given
	// LabelProduct multiplies the numbers in two labels of an info series.
	LabelProduct
	// LabelList counts the entries of a comma-separated label of the newest of the
	// series, which is the one with the greatest value.
	LabelList
)

// Fold is what becomes of series that only left-out labels distinguish.
type Fold uint8

const (
	// Add adds them: counters and histograms by their increments.
	Add Fold = iota
	// Highest takes the highest value.
	Highest
)

// Selector restricts a family to the series with a label value. Without Label, it
// takes all.
type Selector struct{ Label, Value string }

// Dimension turns a label into an attribute.
type Dimension struct {
	Label, Attribute string
	// Words translates the values; nil keeps them. A value that is not in it keeps
	// its text.
	Words map[string]string
	// Outcome adds inference.request.outcome, by the meaning of the value; a value of
	// unknown meaning has this outcome.
	Outcome string
}

// Attribute is one that all series of a row have.
type Attribute struct{ Key, Value string }

// Row is one series of the vocabulary, or several that Dimensions distinguish.
type Row struct {
	Metric     *names.Metric
	Attributes []Attribute
	// From are the names of one family in different versions, without prefix, and
	// without _total where the metric is a counter. The first on the page counts. A name
	// after = has no prefix on the page, and does not make the page the engine's.
	From []string
	// Where restricts From to some of its series: with its value of the label, or with Or.
	Where Selector
	Or    string
	// With is the second family of Rule, and its restriction; or for LabelProduct and
	// LabelList, labels.
	With       string
	WithWhere  Selector
	WithLabels []string
	Rule       Rule
	// Unless are families, without prefix, that keep the row away; Beside is one without
	// which the row is not made, though nothing is read from it.
	Unless []string
	Beside string
	// Mul and Div convert to the base unit: value * Mul / Div; bounds and sums of
	// histograms too. 0 stands for 1.
	Mul, Div float64
	// Unit, where the page has other things than the metric's unit: {block}. It counts
	// where the family's help text contains UnitHelp.
	Unit, UnitHelp string
	// ZeroIsAbsent marks figures that are 0 before they are set.
	ZeroIsAbsent bool
	// Negative marks gauges where -1 stands for off. A negative value is absent
	// everywhere; here it is not counted as a fault of the page.
	Negative bool
	// Monotonic marks gauges on the page that only rise: they are counters.
	Monotonic  bool
	Dimensions []Dimension
	Fold       Fold
	// Advised are bounds near which bounds are kept if there are too many; nil: those
	// of the metric.
	Advised []float64
	// Note is what a reader of families.md should know.
	Note string
}

// Ratio reports whether values of the row are ratios from 0 to 1.
func (r *Row) Ratio() bool { return r.Metric.Unit == "1" && r.Metric.Kind == names.Gauge }

// Converts reports whether the page has another unit than the metric.
func (r *Row) Converts() bool { return r.Mul != 0 || r.Div != 0 }

// Convert turns a value on the page into the base unit.
func (r *Row) Convert(v float64) float64 {
	if r.Mul != 0 {
		v *= r.Mul
	}
	if r.Div != 0 {
		v /= r.Div
	}
	return v
}
