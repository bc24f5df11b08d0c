// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package places

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func TestHistogram(t *testing.T) {
	start := time.Unix(1000, 0)
	h := NewHistogram(start)
	for _, d := range []time.Duration{0, time.Second, time.Second + 1, time.Minute, 24 * time.Hour, 25 * time.Hour} {
		h.Record(d)
	}
	p := pmetric.NewHistogramDataPoint()
	h.Put(p, Place{"train", "research"}, start.Add(time.Minute))
	require.Equal(t, map[string]any{names.K8sNamespaceName: "train", names.GPUQueueName: "research"}, p.Attributes().AsRaw())
	require.Equal(t, []uint64{2, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1}, p.BucketCounts().AsRaw())
	require.Equal(t, uint64(6), p.Count())
	require.InDelta(t, 2+60+49*3600, p.Sum(), 1e-6)
	require.Equal(t, start, p.StartTimestamp().AsTime().Local())
}

// What is beyond the limit has no place, so that sums stay complete.
func TestPairsBeyondTheLimit(t *testing.T) {
	now, s := time.Unix(1000, 0), New(1)
	require.Equal(t, Place{Namespace: "a"}, s.Admit(Place{Namespace: "a"}, now))
	require.Equal(t, Place{}, s.Admit(Place{Namespace: "b"}, now))
	require.Equal(t, 1, s.Refused())
	require.Zero(t, s.Refused())
	require.Equal(t, []Place{{Namespace: "a"}}, s.Expire(now.Add(25*time.Hour)))
	require.Equal(t, Place{Namespace: "b"}, s.Admit(Place{Namespace: "b"}, now))
}

// Who makes pods invents the names of their queues: that costs no other namespace its own.
func TestQueuesOfOneNamespace(t *testing.T) {
	now, s := time.Unix(1000, 0), New(20)
	admitted := map[Place]bool{}
	for i := range 100 {
		admitted[s.Admit(Place{"a", fmt.Sprint("q", i)}, now)] = true
	}
	require.Equal(t, map[Place]bool{{"a", "q0"}: true, {"a", "q1"}: true, {Namespace: "a"}: true}, admitted)
	require.Equal(t, 98, s.Refused())
	require.Equal(t, Place{"b", "research"}, s.Admit(Place{"b", "research"}, now))
	require.Zero(t, s.Refused())

	// Those that no pod has leave room for others.
	require.Len(t, s.Expire(now.Add(25*time.Hour)), 4)
	require.Empty(t, s.queues)
	require.Equal(t, Place{"a", "q50"}, s.Admit(Place{"a", "q50"}, now))
}
