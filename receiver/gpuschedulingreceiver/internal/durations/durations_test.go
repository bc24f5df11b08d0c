// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package durations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	corev1 "k8s.io/api/core/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
	"github.com/otelcol-gpu/otelcol-gpu/internal/places"
)

var start = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// pod was created at the start, and is scheduled and up so many seconds later; 0: not yet.
func pod(uid string, scheduled, up int) *gpupods.Pod {
	p := &gpupods.Pod{
		Namespace: "ml", Name: uid, UID: uid, LastRun: -1, Devices: 1, Phase: corev1.PodPending,
		Scheduling: &gpupods.Scheduling{Created: start, Queue: "q"},
	}
	if scheduled != 0 {
		p.Node, p.Scheduling.Scheduled = "a", start.Add(time.Duration(scheduled)*time.Second)
	}
	if up != 0 {
		p.Up, p.Started, p.Phase = true, start.Add(time.Duration(up)*time.Second), corev1.PodRunning
	}
	return p
}

func TestTransitions(t *testing.T) {
	restarted, done := pod("a", 5, 30), pod("a", 5, 0)
	restarted.LastRun = time.Second
	done.Phase = corev1.PodSucceeded
	unknown := pod("a", 5, 0)
	unknown.Scheduling.Scheduled = time.Time{}
	type lists [][]*gpupods.Pod
	one := func(pods ...*gpupods.Pod) (l lists) {
		for _, p := range pods {
			if p == nil {
				l = append(l, nil)
			} else {
				l = append(l, []*gpupods.Pod{p})
			}
		}
		return l
	}
	for name, tt := range map[string]struct {
		lists              lists
		scheduled, started []float64
		want               Seen
	}{
		"watched":                      {one(pod("a", 0, 0), pod("a", 5, 0), pod("a", 5, 30)), []float64{5}, []float64{25}, Seen{}},
		"both at once":                 {one(pod("a", 0, 0), pod("a", 5, 30)), []float64{5}, []float64{25}, Seen{}},
		"created later":                {one(nil, pod("a", 5, 30), pod("a", 5, 30)), []float64{5}, []float64{25}, Seen{}},
		"before the first list":        {one(pod("a", 5, 30), pod("a", 5, 30)), nil, nil, Seen{Missed: [2]int{1, 1}}},
		"scheduled before the list":    {one(pod("a", 5, 0), pod("a", 5, 30)), nil, []float64{25}, Seen{Missed: [2]int{1, 0}}},
		"ran before":                   {one(nil, restarted), []float64{5}, nil, Seen{Missed: [2]int{0, 1}}},
		"ran between two lists":        {one(nil, pod("a", 5, 0), done), []float64{5}, nil, Seen{Missed: [2]int{0, 1}}},
		"no time of the node":          {one(nil, unknown), nil, nil, Seen{Missed: [2]int{1, 0}}},
		"a clock is behind":            {one(nil, pod("a", -5, 0), pod("a", -5, -9)), nil, nil, Seen{Negative: 2}},
		"another pod of the same name": {one(pod("a", 5, 30), pod("b", 7, 9)), []float64{7}, []float64{2}, Seen{Missed: [2]int{1, 1}}},
		"deleted while it waits":       {one(nil, pod("a", 0, 0), nil), nil, nil, Seen{}},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := New(places.New(10))
			var seen Seen
			for i, list := range tt.lists {
				s := tracker.Observe(start.Add(time.Duration(i)*time.Minute), list)
				seen.Negative += s.Negative
				for is, n := range s.Missed {
					seen.Missed[is] += n
				}
			}
			assert.Equal(t, tt.want, seen)
			for is, want := range [NumTransitions][]float64{tt.scheduled, tt.started} {
				h := tracker.records[is][places.Place{Namespace: "ml", Queue: "q"}]
				if len(want) == 0 {
					assert.Nil(t, h)
					continue
				}
				require.NotNil(t, h)
				assert.EqualValues(t, len(want), h.Count)
				assert.Equal(t, want[0], h.Sum)
			}
			assert.LessOrEqual(t, len(tracker.pods), 1)
		})
	}
}

func TestHistogram(t *testing.T) {
	set := places.New(10)
	tracker := New(set)
	tracker.Observe(start, nil)
	now := start.Add(time.Minute)
	tracker.Observe(now, []*gpupods.Pod{pod("a", 1, 0), pod("b", 2, 0), pod("c", 100_000, 0)})
	ms := pmetric.NewMetricSlice()
	tracker.Put(ms, now)
	require.Equal(t, 1, ms.Len())
	assert.Equal(t, "gpu.scheduling.schedule.duration", ms.At(0).Name())
	p := ms.At(0).Histogram().DataPoints().At(0)
	assert.Equal(t, map[string]any{"k8s.namespace.name": "ml", "gpu.queue.name": "q"}, p.Attributes().AsRaw())
	assert.Equal(t, places.Bounds, p.ExplicitBounds().AsRaw())
	assert.Equal(t, []uint64{1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, p.BucketCounts().AsRaw())
	assert.Equal(t, 100_003., p.Sum())
	assert.Equal(t, start, p.StartTimestamp().AsTime())
	assert.Equal(t, now, p.Timestamp().AsTime())

	tracker.Forget(set.Expire(now.Add(25 * time.Hour)))
	ms = pmetric.NewMetricSlice()
	tracker.Put(ms, now)
	assert.Zero(t, ms.Len())
}
