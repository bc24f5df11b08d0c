// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package firstuse

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// bounds are those of the buckets, in seconds: from 1 s to 24 h.
var bounds = []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400}

// place is what durations are counted by.
type place struct {
	Namespace, Queue string // Queue is "" for none
}

// histogram is durations since it was made. It is not safe for concurrent use.
type histogram struct {
	limit int
	all   map[place]*counts
}

type counts struct {
	buckets []uint64
	n       uint64
	sum     float64
}

// newHistogram returns an empty histogram of at most limit keys.
func newHistogram(limit int) *histogram { return &histogram{limit: limit, all: map[place]*counts{}} }

// know makes a key part of the set, without a duration where it has none; false where the
// limit is reached.
func (s *histogram) know(k place) bool {
	if s.all[k] != nil {
		return true
	}
	if len(s.all) >= s.limit {
		return false
	}
	s.all[k] = &counts{buckets: make([]uint64, len(bounds)+1)}
	return true
}

// record counts a duration, which must not be negative; false where the limit is reached.
func (s *histogram) record(k place, d time.Duration) bool {
	if !s.know(k) {
		return false
	}
	c, seconds := s.all[k], d.Seconds()
	i, _ := slices.BinarySearch(bounds, seconds) // a bound belongs to the bucket below it
	c.buckets[i]++
	c.n++
	c.sum += seconds
	return true
}

// places are those of the set, sorted.
func (s *histogram) places() []place {
	keys := make([]place, 0, len(s.all))
	for k := range s.all {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Queue, b.Queue))
	})
	return keys
}

// put writes the key's attributes, and the cluster's where it has a name.
func (k place) put(attrs pcommon.Map, cluster string) {
	if cluster != "" {
		attrs.PutStr(names.K8sClusterName, cluster)
	}
	attrs.PutStr(names.K8sNamespaceName, k.Namespace)
	if k.Queue != "" {
		attrs.PutStr(names.GPUQueueName, k.Queue)
	}
}

// write appends the set as a cumulative histogram since start; nothing where it is empty.
func (s *histogram) write(to pmetric.MetricSlice, as names.Metric, cluster string, start, now time.Time) {
	if len(s.all) == 0 {
		return
	}
	points := as.InitHistogram(to.AppendEmpty())
	for _, k := range s.places() {
		c, p := s.all[k], points.AppendEmpty()
		k.put(p.Attributes(), cluster)
		p.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
		p.SetTimestamp(pcommon.NewTimestampFromTime(now))
		p.SetCount(c.n)
		p.SetSum(c.sum)
		p.ExplicitBounds().FromRaw(bounds)
		p.BucketCounts().FromRaw(c.buckets)
	}
}
