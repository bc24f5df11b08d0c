// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package firstuse

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/places"
)

var t0 = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func at(seconds int) time.Time { return t0.Add(time.Duration(seconds) * time.Second) }

// running is a pod of the queue research that started then.
func running(name, uid string, started int) *gpupods.Pod {
	return &gpupods.Pod{
		Namespace: "train", Name: name, UID: uid, Phase: corev1.PodRunning, Up: true, Started: at(started), LastRun: -1, Devices: 1,
		Scheduling: &gpupods.Scheduling{Queue: "research"},
	}
}

func with(p *gpupods.Pod, change func(*gpupods.Pod)) *gpupods.Pod {
	change(p)
	return p
}

// again is a pod with a container that ran before.
func again(p *gpupods.Pod) *gpupods.Pod {
	p.LastRun = time.Hour
	return p
}

// waits is a pod that has not started.
func waits(p *gpupods.Pod) *gpupods.Pod {
	p.Phase, p.Up, p.Started = corev1.PodPending, false, time.Time{}
	return p
}

func utilization(cluster, pod, uid string, seconds int, v float64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	for k, v := range map[string]string{names.K8sClusterName: cluster, names.K8sNamespaceName: "train", names.K8sPodName: pod, names.K8sPodUID: uid} {
		if v != "" {
			rm.Resource().Attributes().PutStr(k, v)
		}
	}
	dp := names.GPUUtilization.Init(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty()
	dp.Attributes().PutStr(names.HwGPUTask, "general")
	dp.SetTimestamp(pcommon.NewTimestampFromTime(at(seconds)))
	dp.SetDoubleValue(v)
	return md
}

// measured is how many pods were used, after how many seconds in all, and how many never.
type measured struct {
	used  uint64
	sum   float64
	never int64
}

func (t *Tracker) measured(at time.Time) (got measured) {
	md := pmetric.NewMetrics()
	t.Write(md, func(pcommon.InstrumentationScope) {}, at)
	if md.ResourceMetrics().Len() == 0 {
		return got
	}
	ms := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	for _, p := range ms.At(0).Histogram().DataPoints().All() {
		got.used += p.Count()
		got.sum += p.Sum()
	}
	for _, p := range ms.At(1).Sum().DataPoints().All() {
		got.never += p.IntValue()
	}
	return got
}

// Pods of places beyond the limit are counted without one, and are reported.
func TestFirstUseInTooManyPlaces(t *testing.T) {
	tr := New("east", 0.01, t0)
	var pods []*gpupods.Pod
	for i := range maxPlaces + 3 {
		pods = append(pods, with(running(fmt.Sprint(i), "1", 10), func(p *gpupods.Pod) { p.Namespace = fmt.Sprint("ns", i) }))
	}
	tr.SetPods(&gpupods.Snapshot{Pods: pods}, at(10))
	tr.SetPods(&gpupods.Snapshot{}, at(20))
	require.Equal(t, measured{never: maxPlaces + 3}, tr.measured(at(500)))
	require.Equal(t, 3, tr.Refused())
	require.Equal(t, int64(3), tr.used[places.Place{}].never)
}

func TestFirstUse(t *testing.T) {
	type step struct {
		at     int
		pods   []*gpupods.Pod // with sets
		sets   bool
		points []pmetric.Metrics
	}
	one := func(at int, pods ...*gpupods.Pod) step { return step{at: at, pods: pods, sets: true} }
	seen := func(at int, points ...pmetric.Metrics) step { return step{at: at, points: points} }
	for name, tt := range map[string]struct {
		steps []step
		want  measured
	}{
		"used":                                 {[]step{one(10, running("a", "1", 10)), seen(40, utilization("east", "a", "1", 30, 0.5)), seen(60, utilization("east", "a", "1", 60, 0.9))}, measured{used: 1, sum: 20}},
		"below the threshold":                  {[]step{one(10, running("a", "1", 10)), seen(40, utilization("east", "a", "", 30, 0.005)), seen(60, utilization("east", "a", "", 60, 0.01))}, measured{used: 1, sum: 50}},
		"waits":                                {[]step{one(10, running("a", "1", 10)), one(400, running("a", "1", 10))}, measured{}},
		"started before":                       {[]step{one(0, running("a", "1", -1)), seen(40, utilization("east", "a", "1", 30, 0.5)), one(50)}, measured{}},
		"a point from before":                  {[]step{one(40, running("a", "1", 30)), seen(41, utilization("east", "a", "", 29, 0.5))}, measured{}},
		"of another uid":                       {[]step{one(10, running("a", "1", 10)), seen(30, utilization("east", "a", "0", 20, 0.5))}, measured{}},
		"of another cluster":                   {[]step{one(10, running("a", "1", 10)), seen(30, utilization("west", "a", "1", 20, 0.5))}, measured{}},
		"from the future":                      {[]step{one(10, running("a", "1", 10)), seen(30, utilization("east", "a", "1", 61, 0.5))}, measured{}},
		"never used":                           {[]step{one(10, running("a", "1", 10)), one(100)}, measured{never: 1}},
		"ended":                                {[]step{one(10, running("a", "1", 10)), one(100, with(running("a", "1", 10), func(p *gpupods.Pod) { p.Phase, p.Up = corev1.PodFailed, false }))}, measured{never: 1}},
		"its points come late":                 {[]step{one(10, running("a", "1", 10)), one(20), seen(30, utilization("east", "a", "1", 18, 0.5))}, measured{used: 1, sum: 8}},
		"another pod of its name":              {[]step{one(10, running("a", "1", 10)), one(30, running("a", "2", 30)), seen(50, utilization("east", "a", "2", 45, 1))}, measured{used: 1, sum: 15, never: 1}},
		"a container starts again":             {[]step{one(10, running("a", "1", 10)), one(40, running("a", "1", 40)), seen(50, utilization("east", "a", "1", 45, 1)), one(60, running("a", "1", 60)), seen(90, utilization("east", "a", "1", 80, 1))}, measured{used: 1, sum: 35}},
		"not up":                               {[]step{one(10, with(running("a", "1", 10), func(p *gpupods.Pod) { p.Up = false })), one(20)}, measured{}},
		"without devices that stay":            {[]step{one(10, with(running("a", "1", 10), func(p *gpupods.Pod) { p.Devices = 0 })), one(20)}, measured{}},
		"a container of long ago starts again": {[]step{one(0, running("a", "1", -24*3600)), one(61, again(running("a", "1", 60))), one(70)}, measured{}},
		"one that was never seen running":      {[]step{one(10, again(running("a", "1", 5))), seen(20, utilization("east", "a", "1", 15, 1)), one(30)}, measured{}},
		"one that crashed at once":             {[]step{one(10, waits(running("a", "1", 0))), one(20, again(running("a", "1", 15))), seen(30, utilization("east", "a", "1", 25, 1))}, measured{used: 1, sum: 10}},
		"one that crashes as the start comes":  {[]step{one(10, with(running("a", "1", 0), func(p *gpupods.Pod) { p.Up = false })), one(20, again(running("a", "1", 15))), one(30)}, measured{}},
		"not in one snapshot":                  {[]step{one(10, running("a", "1", 10)), one(20), one(21, running("a", "1", 10)), one(400, running("a", "1", 10))}, measured{}},
		"its claim is not known for a while":   {[]step{one(10, running("a", "1", 10)), one(20, with(running("a", "1", 10), func(p *gpupods.Pod) { p.Devices = 0 })), one(400, running("a", "1", 10))}, measured{}},
		"used, and away for minutes":           {[]step{one(10, running("a", "1", 10)), seen(40, utilization("east", "a", "1", 30, 0.5)), one(50), seen(150), one(200, running("a", "1", 10)), seen(210, utilization("east", "a", "1", 205, 0.5)), one(300)}, measured{used: 1, sum: 20}},
		"used before the clock says":           {[]step{one(10, running("a", "1", 20)), seen(25, utilization("east", "a", "1", 20, 1))}, measured{used: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			tr := New("east", 0.01, t0)
			for _, s := range tt.steps {
				if s.sets {
					tr.SetPods(&gpupods.Snapshot{Pods: s.pods}, at(s.at))
				}
				for _, md := range s.points {
					tr.Observe(md, at(s.at))
				}
				tr.measured(at(s.at))
			}
			require.Equal(t, tt.want, tr.measured(at(500)))
			tr.Shift(time.Hour)
			require.Equal(t, tt.want, tr.measured(at(500+3600)))
		})
	}
}

// What was not used within a minute after its end never was.
func TestGrace(t *testing.T) {
	tr := New("", 0.01, t0)
	tr.SetPods(&gpupods.Snapshot{Pods: []*gpupods.Pod{running("a", "1", 10)}}, at(10))
	tr.SetPods(&gpupods.Snapshot{}, at(100))
	require.Zero(t, tr.measured(at(159)))
	require.Equal(t, measured{never: 1}, tr.measured(at(160)))
	require.Zero(t, tr.waits)
	require.Equal(t, measured{never: 1}, tr.measured(at(699)))
	require.Len(t, tr.pods, 1, "it may come back")
	require.Equal(t, measured{never: 1}, tr.measured(at(700)))
	require.Empty(t, tr.pods)
}

// The series of a place begin with 0, while its first pod is waited for: what begins with 1 has
// no increase in Prometheus.
func TestSeriesBeginWithZero(t *testing.T) {
	for name, tt := range map[string]struct {
		pod  *gpupods.Pod
		want bool
	}{
		"waits for a node": {waits(running("a", "1", 0)), true},
		"runs":             {running("a", "1", 5), true},
		"ran before":       {running("a", "1", -5), false},
	} {
		t.Run(name, func(t *testing.T) {
			tr := New("east", 0.01, t0)
			tr.SetPods(&gpupods.Snapshot{Pods: []*gpupods.Pod{tt.pod}}, at(10))
			md := pmetric.NewMetrics()
			tr.Write(md, func(pcommon.InstrumentationScope) {}, at(15))
			if !tt.want {
				require.Zero(t, md.ResourceMetrics().Len())
				return
			}
			ms := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
			used, never := ms.At(0).Histogram().DataPoints().At(0), ms.At(1).Sum().DataPoints().At(0)
			want := map[string]any{names.K8sClusterName: "east", names.K8sNamespaceName: "train", names.GPUQueueName: "research"}
			require.Equal(t, want, used.Attributes().AsRaw())
			require.Equal(t, want, never.Attributes().AsRaw())
			require.Zero(t, used.Count())
			require.Zero(t, never.IntValue())
		})
	}
}
