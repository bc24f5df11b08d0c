// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuschedulingreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/places"
	"github.com/otelcol-gpu/otelcol-gpu/internal/seriesends/endstest"
)

// The end of a histogram reaches the series of its buckets too.
func TestEndsReachAStore(t *testing.T) {
	start := time.Unix(1000, 0)
	before, now := pmetric.NewMetrics(), pmetric.NewMetrics()
	metrics := before.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	h := places.NewHistogram(start)
	h.Record(time.Minute)
	h.Put(names.SchedulingSchedule.InitHistogram(metrics.AppendEmpty()).AppendEmpty(), places.Place{Namespace: "ml"}, start)
	p := names.SchedulingPendingPods.Init(metrics.AppendEmpty()).AppendEmpty()
	p.SetTimestamp(pcommon.NewTimestampFromTime(start))
	p.SetIntValue(1)
	ends := now.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	end(metrics, ends, pcommon.NewTimestampFromTime(start.Add(time.Minute)))
	assert.Equal(t, 2, ends.Len())
	endstest.Ended(t, before, now)
}
