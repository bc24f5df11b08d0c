// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package series // import "github.com/otelcol-gpu/otelcol-gpu/processor/appguardprocessor/internal/series"

import (
	"hash/maphash"
	"math"
	"slices"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// What the prometheus exporter cannot convert it logs with the metric's name, for
// each point at each scrape: a log line that its sender chooses.

// usable reports whether attributes become labels: each with a letter or digit in
// its name, no two with one name, all texts UTF-8.
func usable(attributes pcommon.Map) bool {
	var labels [maxAttributes]uint64
	n := 0
	var h maphash.Hash
	h.SetSeed(seed)
	for key, v := range attributes.All() {
		if n == len(labels) || !hasLetterOrDigit(key) || v.Type() == pcommon.ValueTypeStr && !utf8.ValidString(v.Str()) {
			return false
		}
		h.Reset()
		writeLabel(&h, key)
		label := h.Sum64()
		if slices.Contains(labels[:n], label) {
			return false
		}
		labels[n] = label
		n++
	}
	return true
}

func hasLetterOrDigit(key string) bool {
	for _, r := range key {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return true
		}
	}
	return false
}

// Scales of native histograms in Prometheus begin here; finer ones are made coarser.
const coarsest = -4

// native reports whether an exponential histogram becomes a native one: of a scale
// that there is, and with as many observations as its buckets have.
func native(p pmetric.ExponentialHistogramDataPoint) bool {
	if p.Scale() < coarsest {
		return false
	}
	sum, ok := p.ZeroCount(), p.ZeroCount() <= math.MaxInt64
	for _, buckets := range []pmetric.ExponentialHistogramDataPointBuckets{p.Positive(), p.Negative()} {
		for _, n := range buckets.BucketCounts().All() {
			ok = ok && n <= math.MaxInt64-min(sum, math.MaxInt64)
			sum += n
		}
	}
	if p.HasSum() && math.IsNaN(p.Sum()) {
		return ok && sum <= p.Count()
	}
	return ok && sum == p.Count()
}
