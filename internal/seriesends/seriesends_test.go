// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package seriesends

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// next takes batches, or refuses them with err. Like a component that changes data, it
// leaves nothing of a batch behind.
type next struct {
	err error
	got []string // the metrics of the last batch: name, with "!" for each point that ends it
}

func (*next) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

func (n *next) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	n.got = nil
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				is := func(p interface{ Flags() pmetric.DataPointFlags }) string {
					if p.Flags().NoRecordedValue() {
						return "!"
					}
					return ""
				}
				text := m.Name()
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					for _, p := range m.Gauge().DataPoints().All() {
						text += is(p)
					}
				case pmetric.MetricTypeSum:
					text += is(m.Sum().DataPoints().At(0)) + m.Sum().AggregationTemporality().String()
				case pmetric.MetricTypeHistogram:
					text += is(m.Histogram().DataPoints().At(0)) + m.Histogram().AggregationTemporality().String()
				case pmetric.MetricTypeExponentialHistogram:
					text += is(m.ExponentialHistogram().DataPoints().At(0))
				case pmetric.MetricTypeSummary:
					text += is(m.Summary().DataPoints().At(0))
				}
				host := ""
				if v, ok := rm.Resource().Attributes().Get("host"); ok {
					host = v.Str()
				}
				n.got = append(n.got, host+"/"+sm.Scope().Name()+"/"+text)
			}
		}
	}
	md.ResourceMetrics().RemoveIf(func(pmetric.ResourceMetrics) bool { return true })
	return n.err
}

// batchOf has a gauge for each name, with one point; of "name!" it ends its series, and
// of "name0" it is 0.
func batchOf(host string, names ...string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("host", host)
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("s")
	for _, name := range names {
		m := sm.Metrics().AppendEmpty()
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetIntValue(1)
		switch last := len(name) - 1; name[last] {
		case '!':
			m.SetName(name[:last])
			p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		case '0':
			m.SetName(name)
			p.SetIntValue(0)
		default:
			m.SetName(name)
		}
	}
	return md
}

var errFull = errors.New("queue is full")

func TestEndsOfRefusedBatchesAreSentAgain(t *testing.T) {
	n := &next{err: errFull}
	s := New(n, 10, func(metric string, p pmetric.NumberDataPoint) bool { return metric == "state0" && p.IntValue() == 0 })
	require.ErrorIs(t, s.ConsumeMetrics(t.Context(), batchOf("a", "x!", "live", "state0", "other0")), errFull)
	require.ErrorIs(t, s.ConsumeMetrics(t.Context(), batchOf("b", "live", "y!")), errFull)
	require.Equal(t, []string{"a/s/x!", "a/s/state0", "b/s/live", "b/s/y!"}, n.got)
	n.err = nil
	require.NoError(t, s.ConsumeMetrics(t.Context(), batchOf("c", "live")))
	require.Equal(t, []string{"a/s/x!", "a/s/state0", "b/s/y!", "c/s/live"}, n.got, "in order, in front, and no live data")
	require.NoError(t, s.ConsumeMetrics(t.Context(), batchOf("c", "live")))
	require.Equal(t, []string{"c/s/live"}, n.got, "once they were taken, never again")
}

func TestEndsOfAllTypesAreKept(t *testing.T) {
	md := pmetric.NewMetrics()
	ms := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	end := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
	add := func(name string) pmetric.Metric {
		m := ms.AppendEmpty()
		m.SetName(name)
		return m
	}
	g := add("gauge").SetEmptyGauge().DataPoints()
	for range 2 {
		g.AppendEmpty().SetFlags(end)
	}
	sum := add("sum").SetEmptySum()
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	sum.DataPoints().AppendEmpty().SetFlags(end)
	h := add("histogram").SetEmptyHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	h.DataPoints().AppendEmpty().SetFlags(end)
	add("exponential").SetEmptyExponentialHistogram().DataPoints().AppendEmpty().SetFlags(end)
	add("summary").SetEmptySummary().DataPoints().AppendEmpty().SetFlags(end)
	add("empty")

	n := &next{err: errFull}
	s := New(n, 10, nil)
	require.Error(t, s.ConsumeMetrics(t.Context(), md))
	require.Error(t, s.ConsumeMetrics(t.Context(), pmetric.NewMetrics()))
	require.Equal(t, []string{"//gauge!", "//gauge!", "//sum!Cumulative", "//histogram!Delta", "//exponential!", "//summary!"}, n.got,
		"each in a metric of its own")
}

func TestKeptEndsAreBounded(t *testing.T) {
	n := &next{err: errFull}
	s := New(n, 3, nil)
	for i := range 10 {
		require.Error(t, s.ConsumeMetrics(t.Context(), batchOf(strconv.Itoa(i), "x!")))
	}
	kept, dropped := s.Kept()
	require.Equal(t, 3, kept)
	require.EqualValues(t, 7, dropped)
	n.err = nil
	require.NoError(t, s.ConsumeMetrics(t.Context(), pmetric.NewMetrics()))
	require.Equal(t, []string{"7/s/x!", "8/s/x!", "9/s/x!"}, n.got, "the newest")
}

func TestAnEndThatIsRefusedForGoodIsTriedOnceMore(t *testing.T) {
	n := &next{err: consumererror.NewPermanent(errFull)}
	s := New(n, 10, nil)
	require.Error(t, s.ConsumeMetrics(t.Context(), batchOf("a", "x!")))
	require.Error(t, s.ConsumeMetrics(t.Context(), batchOf("b", "y!")))
	require.Equal(t, []string{"a/s/x!", "b/s/y!"}, n.got)
	require.Error(t, s.ConsumeMetrics(t.Context(), batchOf("c", "live")))
	require.Equal(t, []string{"b/s/y!", "c/s/live"}, n.got)
	require.Error(t, s.ConsumeMetrics(t.Context(), batchOf("c", "live")))
	require.Equal(t, []string{"c/s/live"}, n.got, "what it may be refused for is not in every batch to come")
}

// order refuses a batch only after another was refused that was sent after it.
type order struct {
	*next
	inner func() error
}

func (o *order) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	if inner := o.inner; inner != nil {
		o.inner = nil
		if err := inner(); err == nil {
			return nil
		}
	}
	return o.next.ConsumeMetrics(ctx, md)
}

func TestEndsAreKeptInTheOrderInWhichTheyWereSent(t *testing.T) {
	o := &order{next: &next{err: errFull}}
	s := New(o, 10, nil)
	o.inner = func() error { return s.ConsumeMetrics(t.Context(), batchOf("second", "x!")) }
	require.Error(t, s.ConsumeMetrics(t.Context(), batchOf("first", "x!")))
	o.err = nil
	require.NoError(t, s.ConsumeMetrics(t.Context(), pmetric.NewMetrics()))
	require.Equal(t, []string{"first/s/x!", "second/s/x!"}, o.got)
}
