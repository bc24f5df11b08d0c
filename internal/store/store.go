// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package store // import "github.com/otelcol-gpu/otelcol-gpu/internal/store"

import (
	"context"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
)

// Store is what the gpu_store extension offers. It may be used by several
// goroutines at once, from the extension's Start to its Shutdown.
type Store interface {
	Querier
	Appender
	Log
	UsageLog
	// Problems are those that last, and for a few minutes those that have ended,
	// in a fixed order.
	Problems() []Problem
}

// Querier answers questions about metrics. Every error of its methods is an
// *Error, which has the Kind of the cause.
type Querier interface {
	// Instant evaluates a PromQL expression at one time.
	Instant(ctx context.Context, query string, at time.Time) (*Result, error)
	// Range evaluates a PromQL expression at every step of a range; its result
	// is a model.Matrix.
	Range(ctx context.Context, query string, r Range) (*Result, error)
	// Series returns the labels of the series that match any of the selectors;
	// at least one is needed.
	Series(ctx context.Context, s Selection) ([]model.LabelSet, Warnings, error)
	// LabelNames returns the sorted names of the labels of all series, or of
	// those that match any of the selectors.
	LabelNames(ctx context.Context, s Selection) ([]string, Warnings, error)
	// LabelValues returns the sorted values of a label.
	LabelValues(ctx context.Context, label string, s Selection) ([]string, Warnings, error)
	// Metadata returns type, unit and help of a metric, or of all metrics if the
	// name is empty. A limit of 0 is none.
	Metadata(ctx context.Context, metric string, limit int) (map[string][]Metadata, error)
	// Health is nil if the store can be read and, where it takes samples,
	// written.
	Health(ctx context.Context) error
	// Info returns what the store is and what it will refuse.
	Info() Info
}

// Appender takes samples.
type Appender interface {
	// Append stores samples. What cannot be taken is skipped and reported in the
	// result, and costs its neighbours nothing; an error means that nothing of
	// this call was stored.
	Append(ctx context.Context, series []Series) (Appended, error)
	// AppendWithin is Append for what must leave room for others: of all the series
	// that are written by it, at most maxSeries are in memory. Further new ones are
	// refused with ShareLimit.
	AppendWithin(ctx context.Context, series []Series, maxSeries int) (Appended, error)
	// Describe keeps the metadata of metric families by their Prometheus names.
	Describe(map[string]Metadata)
}

// Result is the value of a query: a model.Vector, model.Matrix, *model.Scalar or
// (from the embedded engine only) *model.String. A series without a value is not in it.
type Result struct {
	Value    model.Value
	Warnings Warnings
	// Infos are hints on the query itself (from the embedded engine only).
	Infos Warnings
}

// Warnings are what a reader should know of an answer, such as that it was cut.
type Warnings []string

// Range is the times of a range query, both ends included.
type Range struct {
	Start, End time.Time
	Step       time.Duration
}

// Selection selects series.
type Selection struct {
	// Matchers are PromQL series selectors, such as up{job="a"}.
	Matchers []string
	// Start and End bound the time in which a series has samples; zero is
	// unbounded.
	Start, End time.Time
	// Limit is the most that is returned; 0 is the store's own limit. What is
	// cut is reported in a warning.
	Limit int
}

// Metadata describes a metric family.
type Metadata struct {
	Type string `json:"type"`
	Unit string `json:"unit"`
	Help string `json:"help"`
}

// Info is what a store is. Zero is "not known here" for durations and
// "without limit" for numbers.
type Info struct {
	// Engine is embedded or prometheus.
	Engine string
	// ReadOnly stores take no samples: Append fails.
	ReadOnly bool
	// Retention is how long samples are kept.
	Retention time.Duration
	// Lookback is how long a sample counts as a series' value.
	Lookback time.Duration
	// QueryTimeout is how long a query may take, waiting included.
	QueryTimeout time.Duration
	// MaxSamples is how many samples a query may hold at once.
	MaxSamples int
	// MaxPoints is how many steps a range may have.
	MaxPoints int
	// MaxConcurrentQueries is how many queries run at once; others wait.
	MaxConcurrentQueries int
	// MaxSeries is how many series may be in memory.
	MaxSeries int
	// NewestSample is the time of the newest sample; zero if not known.
	NewestSample time.Time
}

// Series is a series and samples of it, oldest first.
type Series struct {
	Labels     labels.Labels
	Samples    []Sample
	Histograms []Histogram
}

// Sample is a value at a time. value.StaleNaN ends the series.
type Sample struct {
	Time  int64 // milliseconds since 1970
	Value float64
}

// Histogram is a native histogram at a time: one of the two is set.
type Histogram struct {
	Time    int64 // milliseconds since 1970
	Integer *histogram.Histogram
	Float   *histogram.FloatHistogram
}

// Appended is what became of samples.
type Appended struct {
	Stored  int
	Refused map[Refusal]int
}

// Refusal is why a sample was not stored.
type Refusal string

const (
	OutOfOrder   Refusal = "out_of_order" // older than out_of_order_window allows
	Duplicate    Refusal = "duplicate"    // another value is stored for that time
	TooOld       Refusal = "too_old"      // older than the retention
	TooNew       Refusal = "too_new"      // ahead of the clock
	Invalid      Refusal = "invalid"      // labels or a histogram that Prometheus does not allow
	TooLarge     Refusal = "too_large"    // labels longer than any honest one
	SeriesLimit  Refusal = "max_series"   // a new series, and the limit is reached
	ShareLimit   Refusal = "share"        // a new series, and the share of its writer is used up
	StorageLimit Refusal = "max_bytes"    // max_bytes is reached and nothing can be deleted
	DiskFull     Refusal = "disk_full"    // too little is free on the disk
	WriteFailed  Refusal = "write_failed" // the disk did not take it

	// Problems name the cause of a failed write.
	DiskReadOnly Refusal = "read_only"
	DiskSlow     Refusal = "too_slow" // too much waits for the disk
)

// Refuse counts n refused samples.
func (a *Appended) Refuse(why Refusal, n int) {
	if n == 0 {
		return
	}
	if a.Refused == nil {
		a.Refused = map[Refusal]int{}
	}
	a.Refused[why] += n
}
