// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package points

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

type fields interface {
	Attributes() pcommon.Map
	SetTimestamp(pcommon.Timestamp)
	SetFlags(pmetric.DataPointFlags)
}

// Every type of metric has a point and a stale marker after it.
func TestEveryType(t *testing.T) {
	tests := []struct {
		name   string
		add    func(pmetric.Metric) func() fields
		number bool
	}{
		{"gauge", func(m pmetric.Metric) func() fields {
			s := m.SetEmptyGauge().DataPoints()
			return func() fields { return s.AppendEmpty() }
		}, true},
		{"sum", func(m pmetric.Metric) func() fields {
			s := m.SetEmptySum().DataPoints()
			return func() fields { return s.AppendEmpty() }
		}, true},
		{"histogram", func(m pmetric.Metric) func() fields {
			s := m.SetEmptyHistogram().DataPoints()
			return func() fields { return s.AppendEmpty() }
		}, false},
		{"exponential histogram", func(m pmetric.Metric) func() fields {
			s := m.SetEmptyExponentialHistogram().DataPoints()
			return func() fields { return s.AppendEmpty() }
		}, false},
		{"summary", func(m pmetric.Metric) func() fields {
			s := m.SetEmptySummary().DataPoints()
			return func() fields { return s.AppendEmpty() }
		}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := pmetric.NewMetric()
			next := test.add(m)
			first, marker := next(), next()
			first.Attributes().PutStr("name", "first")
			first.SetTimestamp(7)
			marker.Attributes().PutStr("name", "marker")
			marker.SetTimestamp(8)
			marker.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))

			type seen struct {
				name  string
				ts    pcommon.Timestamp
				stale bool
			}
			var got []seen
			Each(m, func(attrs pcommon.Map, ts pcommon.Timestamp, stale bool) {
				got = append(got, seen{Str(attrs, "name"), ts, stale})
			})
			assert.Equal(t, []seen{{"first", 7, false}, {"marker", 8, true}}, got)
			assert.Equal(t, 2, Count(m))
			numbers, ok := Numbers(m)
			assert.Equal(t, test.number, ok)
			if ok {
				assert.Equal(t, 2, numbers.Len())
			}
		})
	}
	assert.Zero(t, Count(pmetric.NewMetric()), "a metric without a type")
	Each(pmetric.NewMetric(), func(pcommon.Map, pcommon.Timestamp, bool) { t.Error("a metric without a type has no points") })
}

func TestIsDelta(t *testing.T) {
	m := pmetric.NewMetric()
	assert.False(t, IsDelta(m))
	m.SetEmptyGauge()
	assert.False(t, IsDelta(m))
	m.SetEmptySum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	assert.False(t, IsDelta(m))
	m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	assert.True(t, IsDelta(m))
}

func TestValue(t *testing.T) {
	p := pmetric.NewNumberDataPoint()
	assert.True(t, math.IsNaN(Value(p)), "no value")
	p.SetIntValue(3)
	assert.Equal(t, 3.0, Value(p))
	p.SetDoubleValue(0.5)
	assert.Equal(t, 0.5, Value(p))
	p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	assert.True(t, math.IsNaN(Value(p)), "a stale marker has no value")
}

func TestStr(t *testing.T) {
	attrs := pcommon.NewMap()
	attrs.PutStr("text", "a")
	attrs.PutInt("number", 1)
	assert.Equal(t, "a", Str(attrs, "text"))
	assert.Empty(t, Str(attrs, "number"))
	assert.Empty(t, Str(attrs, "absent"))
}
