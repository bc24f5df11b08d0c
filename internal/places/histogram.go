// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package places

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Bounds are the upper bounds of the buckets of durations, in seconds: 1 s to 24 h.
var Bounds = []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400}

// Histogram is durations of the pods of one place. It is not safe for concurrent use.
type Histogram struct {
	Began  time.Time
	Counts []uint64 // by bucket, one more than Bounds
	Count  uint64
	Sum    float64 // seconds
}

// NewHistogram returns an empty one.
func NewHistogram(began time.Time) *Histogram {
	return &Histogram{Began: began, Counts: make([]uint64, len(Bounds)+1)}
}

// Record adds a duration, which is not negative.
func (h *Histogram) Record(d time.Duration) {
	i, _ := slices.BinarySearch(Bounds, d.Seconds()) // a bound belongs to the bucket below it
	h.Counts[i]++
	h.Count++
	h.Sum += d.Seconds()
}

// Put writes h as it is now, cumulative.
func (h *Histogram) Put(p pmetric.HistogramDataPoint, at Place, now time.Time) {
	p.SetStartTimestamp(pcommon.NewTimestampFromTime(h.Began))
	p.SetTimestamp(pcommon.NewTimestampFromTime(now))
	p.ExplicitBounds().FromRaw(Bounds)
	p.BucketCounts().FromRaw(h.Counts)
	p.SetCount(h.Count)
	p.SetSum(h.Sum)
	at.Put(p.Attributes())
}
