// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// pointOf is the point of a metric with one attribute.
func pointOf(name, key, value string, histogram bool) (p Point) {
	m := pmetric.NewMetric()
	m.SetName(name)
	var attributes pcommon.Map
	if histogram {
		attributes = m.SetEmptyHistogram().DataPoints().AppendEmpty().Attributes()
	} else {
		attributes = m.SetEmptyGauge().DataPoints().AppendEmpty().Attributes()
	}
	attributes.PutStr(key, value)
	Of(pcommon.NewMap()).RemoveIf(m, "foo_bar", func(pcommon.Map) {}, func(judged Point) bool { p = judged; return false })
	return p
}

// Whether two points are one series for Prometheus, and whether they were written
// in the same way.
func TestSameSeries(t *testing.T) {
	first := pointOf("foo.bar", "a.b", "x", false)
	for _, c := range []struct {
		name      string
		of        Point
		one, same bool
	}{
		{"the same", pointOf("foo.bar", "a.b", "x", false), true, true},
		{"another way to write the name", pointOf("foo_bar", "a.b", "x", false), true, false},
		{"another way to write a label", pointOf("foo.bar", "a_b", "x", false), true, false},
		{"and one more", pointOf("foo.bar", "a.é.b", "x", false), true, false},
		{"another type", pointOf("foo.bar", "a.b", "x", true), true, false},
		{"another value", pointOf("foo.bar", "a.b", "y", false), false, false},
		{"another label", pointOf("foo.bar", "ab", "x", false), false, false},
	} {
		assert.Equal(t, c.one, first.Fingerprint == c.of.Fingerprint, c.name)
		assert.Equal(t, c.same, first.Written == c.of.Written, c.name)
	}
}

// A point that the prometheus exporter would refuse.
func TestUsable(t *testing.T) {
	for name, set := range map[string]func(pcommon.Map){
		"underscores":    func(a pcommon.Map) { a.PutStr("__", "x") },
		"no letter":      func(a pcommon.Map) { a.PutStr("é", "x") },
		"one label":      func(a pcommon.Map) { a.PutStr("a.b", "x"); a.PutStr("a_b", "y") },
		"no UTF-8":       func(a pcommon.Map) { a.PutStr("a", "\xff") },
		"no name at all": func(a pcommon.Map) { a.PutStr("", "x") },
	} {
		a := pcommon.NewMap()
		assert.True(t, usable(a), name)
		a.PutStr("route", "/é")
		a.PutInt("9", 1)
		assert.True(t, usable(a), name)
		set(a)
		assert.False(t, usable(a), name)
	}
}

func TestNativeHistograms(t *testing.T) {
	for _, c := range []struct {
		name        string
		scale       int32
		count, zero uint64
		buckets     []uint64
		sum         float64
		want        bool
	}{
		{"sound", 0, 6, 1, []uint64{2, 3}, 1, true},
		{"too coarse", -5, 6, 1, []uint64{2, 3}, 1, false},
		{"more observations", 0, 7, 1, []uint64{2, 3}, 1, false},
		{"more observations, of which some are none", 0, 7, 1, []uint64{2, 3}, math.NaN(), true},
		{"fewer observations", 0, 5, 1, []uint64{2, 3}, math.NaN(), false},
		{"overflow", 0, 1, 0, []uint64{math.MaxInt64, math.MaxInt64, 3}, 1, false},
		{"none", 3, 0, 0, nil, 0, true},
	} {
		p := pmetric.NewExponentialHistogramDataPoint()
		p.SetScale(c.scale)
		p.SetCount(c.count)
		p.SetZeroCount(c.zero)
		p.SetSum(c.sum)
		p.Positive().BucketCounts().FromRaw(c.buckets)
		assert.Equal(t, c.want, native(p), c.name)
	}
}
