// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package firstuse

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func TestHistogram(t *testing.T) {
	start := time.Unix(1000, 0)
	s := newHistogram(2)
	md := pmetric.NewMetricSlice()
	s.write(md, names.SchedulingStart, "east", start, start)
	require.Zero(t, md.Len())

	train, chat := place{"train", "research"}, place{Namespace: "chat"}
	for _, d := range []time.Duration{0, time.Second, time.Second + 1, 24 * time.Hour, 25 * time.Hour} {
		require.True(t, s.record(train, d))
	}
	require.True(t, s.know(chat))
	require.False(t, s.record(place{Namespace: "more"}, time.Second))
	require.True(t, s.record(train, time.Minute))

	s.write(md, names.SchedulingStart, "east", start, start.Add(time.Minute))
	points := md.At(0).Histogram().DataPoints()
	require.Equal(t, 2, points.Len())
	none, some := points.At(0), points.At(1)
	require.Equal(t, map[string]any{names.K8sClusterName: "east", names.K8sNamespaceName: "chat"}, none.Attributes().AsRaw())
	require.Zero(t, none.Count())
	require.Equal(t, map[string]any{names.K8sClusterName: "east", names.K8sNamespaceName: "train", names.GPUQueueName: "research"}, some.Attributes().AsRaw())
	require.Equal(t, []uint64{2, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1}, some.BucketCounts().AsRaw())
	require.Equal(t, uint64(6), some.Count())
	require.InDelta(t, 2+60+49*3600, some.Sum(), 1e-6)
	require.Equal(t, start, some.StartTimestamp().AsTime().Local())
}
