// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package seriesend

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/internal/seriesends/endstest"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
)

// Whatever points of devices arrive, in any order, under any owner and limit, what is
// counted is what is remembered, and all of it is forgotten in the end.
func TestCountsWhatItRemembers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		now := time.Unix(1000, 0)
		tracker := NewTracker(1+r.IntN(20), false, 45*time.Second)
		for step := range 30 {
			rm := pmetric.NewResourceMetrics()
			id := fmt.Sprintf("GPU-%d", r.IntN(3))
			who := owner.Owner{Namespace: "n", Pod: fmt.Sprintf("p%d", r.IntN(2))}
			rm.Resource().Attributes().PutStr(names.HwID, id)
			rm.Resource().Attributes().PutInt(names.GPUIndex, int64(r.IntN(2)))
			for range r.IntN(5) {
				m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
				m.SetName(fmt.Sprintf("m%d", r.IntN(3)))
				for range 1 + r.IntN(4) {
					p := m.SetEmptyGauge().DataPoints().AppendEmpty()
					p.SetTimestamp(pcommon.Timestamp((step - r.IntN(3)) * 1e9))
					p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(r.IntN(5) == 0))
					p.Attributes().PutInt("k", int64(r.IntN(3)))
				}
			}
			out := pmetric.NewResourceMetricsSlice()
			from := identity.Source(r.IntN(int(identity.SourceCount)))
			tracker.Observe(id, who, from, nil, rm, points.ContentsOf(rm), now, out)
			tracker.PutSuperseded(out)
			tracker.require(t)
			now = now.Add(time.Duration(r.IntN(30)) * time.Second)
			tracker.Sweep(now)
			tracker.require(t)
		}
		tracker.Sweep(now.Add(ownership.MaxSilence + sweepInterval))
		tracker.require(t)
		require.Empty(t, tracker.devices)
		require.Zero(t, tracker.Series())
	}
}

// The end of a histogram reaches the series of its buckets too.
func TestEndsReachAStore(t *testing.T) {
	tracker := NewTracker(10, false, 45*time.Second)
	now := time.Unix(1000, 0)
	var batches []pmetric.Metrics
	for i, pod := range []string{"before", "after"} {
		who := owner.Owner{Namespace: "n", Pod: pod}
		md, ends := pmetric.NewMetrics(), pmetric.NewMetrics()
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr(names.HwID, "GPU-1")
		rm.Resource().Attributes().PutStr(names.K8sPodName, pod)
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("latency")
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p := m.Histogram().DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(now.Add(time.Duration(i) * time.Minute)))
		p.ExplicitBounds().FromRaw([]float64{0.1, 1})
		p.BucketCounts().FromRaw([]uint64{1, 1, 1})
		p.SetCount(3)
		p.SetSum(5)
		tracker.Observe("GPU-1", who, identity.SourceResource, nil, rm, points.ContentsOf(rm), now, ends.ResourceMetrics())
		if i == 0 {
			batches = append(batches, md)
		}
		batches = append(batches, ends)
	}
	require.Equal(t, 1, batches[2].DataPointCount())
	endstest.Ended(t, batches...)
}

func (t *Tracker) require(tt *testing.T) {
	series, devices := 0, 0
	for _, d := range t.devices {
		series += len(d.series)
		require.LessOrEqual(tt, len(d.order), len(d.series))
		for _, s := range d.order {
			require.Same(tt, s, d.series[points.Key(s.family.name, s.attrs)])
		}
	}
	for _, n := range t.Devices() {
		devices += n
	}
	require.Equal(tt, series, t.Series())
	require.LessOrEqual(tt, series, t.maxSeries)
	require.Equal(tt, len(t.devices), devices)
}
