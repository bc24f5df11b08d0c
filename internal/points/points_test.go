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

			// The marker moves to a metric that is described alike, and gets another one.
			to := pmetric.NewMetric()
			m.SetName("m")
			m.SetUnit("1")
			m.SetDescription("about m")
			m.Metadata().PutStr("key", "value")
			Describe(m, to)
			Move(m, func(_ pcommon.Map, _ pcommon.Timestamp, marker bool) (pmetric.Metric, Fate) {
				if marker {
					return to, Moved
				}
				return to, Stay
			})
			assert.Equal(t, 1, Count(m))
			attrs := pcommon.NewMap()
			attrs.PutStr("name", "end")
			AppendMarker(to, attrs, 9, []float64{1, 2})
			if bounds := Bounds(to); to.Type() == pmetric.MetricTypeHistogram {
				assert.Empty(t, bounds, "of the first marker")
				end := to.Histogram().DataPoints().At(1)
				assert.Equal(t, []float64{1, 2}, end.ExplicitBounds().AsRaw())
				assert.Equal(t, []uint64{0, 0, 0}, end.BucketCounts().AsRaw())
				assert.True(t, end.HasSum())
				CompleteEnds(to)
				assert.True(t, to.Histogram().DataPoints().At(0).HasSum())
			} else {
				assert.Nil(t, bounds)
				CompleteEnds(to)
			}
			got = nil
			Each(to, func(attrs pcommon.Map, ts pcommon.Timestamp, stale bool) {
				got = append(got, seen{Str(attrs, "name"), ts, stale})
			})
			assert.Equal(t, []seen{{"marker", 8, true}, {"end", 9, true}}, got)
			assert.Equal(t, []any{m.Name(), m.Unit(), m.Description(), m.Type(), m.Metadata().AsRaw()},
				[]any{to.Name(), to.Unit(), to.Description(), to.Type(), to.Metadata().AsRaw()})

			rm := pmetric.NewResourceMetrics()
			m.MoveTo(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty())
			m = rm.ScopeMetrics().At(0).Metrics().At(0)
			to.MoveTo(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty())
			assert.Equal(t, Contents{Live: true, Newest: 7, Markers: true}, ContentsOf(rm))
			assert.Equal(t, 1, CountLive(rm))
			Move(m, func(pcommon.Map, pcommon.Timestamp, bool) (pmetric.Metric, Fate) { return pmetric.Metric{}, Dropped })
			RemoveEmpty(rm)
			assert.Equal(t, 1, rm.ScopeMetrics().Len())
			m = rm.ScopeMetrics().At(0).Metrics().At(0)
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

// A series is its metric and its attributes, whatever their order and with their types.
func TestKey(t *testing.T) {
	key := func(metric string, put ...func(pcommon.Map)) uint64 {
		attrs := pcommon.NewMap()
		for _, p := range put {
			p(attrs)
		}
		return Key(metric, attrs)
	}
	a, b := func(m pcommon.Map) { m.PutStr("a", "1") }, func(m pcommon.Map) { m.PutStr("b", "2") }
	assert.Equal(t, key("m", a, b), key("m", b, a))
	different := map[uint64]string{}
	for name, k := range map[string]uint64{
		"none": key("m"), "another metric": key("n", a, b), "two": key("m", a, b), "one": key("m", a),
		"exchanged":     key("m", func(m pcommon.Map) { m.PutStr("a", "2"); m.PutStr("b", "1") }),
		"key and value": key("m", func(m pcommon.Map) { m.PutStr("1", "a"); m.PutStr("2", "b") }),
		"int":           key("m", func(m pcommon.Map) { m.PutInt("a", 1) }),
		"double":        key("m", func(m pcommon.Map) { m.PutDouble("a", 1) }),
		"bool":          key("m", func(m pcommon.Map) { m.PutBool("a", true) }),
		"slice":         key("m", func(m pcommon.Map) { m.PutEmptySlice("a").AppendEmpty().SetStr("1") }),
	} {
		assert.Empty(t, different[k], name)
		different[k] = name
	}
}
