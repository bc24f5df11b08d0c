// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// one is the point of a metric with one attribute.
func one(name, key, value string, histogram bool) (p Point) {
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
	first := one("foo.bar", "a.b", "x", false)
	for _, c := range []struct {
		name      string
		of        Point
		one, same bool
	}{
		{"the same", one("foo.bar", "a.b", "x", false), true, true},
		{"another way to write the name", one("foo_bar", "a.b", "x", false), true, false},
		{"another way to write a label", one("foo.bar", "a_b", "x", false), true, false},
		{"and one more", one("foo.bar", "a.é.b", "x", false), true, false},
		{"another type", one("foo.bar", "a.b", "x", true), true, false},
		{"another value", one("foo.bar", "a.b", "y", false), false, false},
		{"another label", one("foo.bar", "ab", "x", false), false, false},
	} {
		assert.Equal(t, c.one, first.Fingerprint == c.of.Fingerprint, c.name)
		assert.Equal(t, c.same, first.Written == c.of.Written, c.name)
	}
}
