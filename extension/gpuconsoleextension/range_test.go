// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// at is the value of a line that long ago.
func at[T any](r consoleapi.RangeAnswer, line []*T, ago time.Duration) *T {
	i := len(line) - 1 - int(ago.Seconds()/r.Step)
	return line[i]
}

func TestRangeOfAService(t *testing.T) {
	w := newWorld(t)
	id := tags{queries.Cluster: "c1", queries.Namespace: "ml", queries.Service: "chat"}
	for name, v := range map[string]float64{queries.ServiceUtilization: 0.5, queries.ServicePodMemory: 3 * gib, queries.ServicePodLimit: 8 * gib, queries.ServicePodPower: 300} {
		w.write(name, id, 50*time.Minute, 20*time.Minute, constant(v))
		w.write(name, id, 10*time.Minute, 0, constant(v/2))
	}
	w.write(queries.ServicePipe, id.with(tags{queries.Pipe: "tensor"}), 50*time.Minute, 0, constant(0))
	w.write(queries.ServicePods, id.with(tags{queries.StateOfPod: "reporting"}), 50*time.Minute, 0, constant(3))
	w.write(queries.ServicePods, id.with(tags{queries.StateOfPod: "degraded"}), 50*time.Minute, 0, constant(1))
	w.write(queries.ServicePods, id.with(tags{queries.StateOfPod: "missing"}), 50*time.Minute, 0, constant(9))
	c := serveAPI(t, w.store, w.now, nil)
	for window, steps := range map[string]struct {
		step   float64
		points int
	}{"5m": {5, 61}, "30m": {15, 121}, "1h": {15, 241}, "24h": {120, 721}} {
		r := ok[consoleapi.RangeAnswer](c, "range", values("cluster", "c1", "namespace", "ml", "service", "chat", "window", window))
		assert.Equal(t, steps.step, r.Step)
		assert.Equal(t, steps.points, r.Points)
		assert.Equal(t, w.now.UTC(), r.End)
		assert.Equal(t, r.End, r.Start.Add(time.Duration(r.Step*float64(r.Points-1))*time.Second))
		for name, chart := range map[string]consoleapi.Chart{"utilization": r.Charts.Utilization, "memory": r.Charts.Memory, "tensor": r.Charts.Tensor, "power": r.Charts.Power} {
			require.Len(t, chart.Series, 1, name)
			assert.Equal(t, "chat", chart.Series[0].Name)
			assert.Len(t, chart.Series[0].Values, r.Points)
			assert.Len(t, chart.Series[0].Pods, r.Points)
			assert.Equal(t, 4, *chart.Series[0].Pods[r.Points-1])
			assert.Equal(t, name == "memory", chart.Limit != nil)
		}
		assert.Equal(t, 0.25, *at(r, r.Charts.Utilization.Series[0].Values, 0))
		assert.Equal(t, 4.0*gib, *at(r, r.Charts.Memory.Limit, 0))
		assert.Zero(t, *at(r, r.Charts.Tensor.Series[0].Values, 0))
		assert.Equal(t, w.now.UTC(), *r.Freshness.DataTime)
	}
	// A gap is a gap, though the store looks back for five minutes.
	r := ok[consoleapi.RangeAnswer](c, "range", values("cluster", "c1", "namespace", "ml", "service", "chat", "window", "1h", "by", "service"))
	line := r.Charts.Utilization.Series[0].Values
	assert.Equal(t, 0.5, *at(r, line, 20*time.Minute))
	assert.Nil(t, at(r, line, 19*time.Minute))
	assert.Nil(t, at(r, line, 10*time.Minute+15*time.Second))
	assert.Equal(t, 0.25, *at(r, line, 10*time.Minute))
	assert.Nil(t, at(r, line, 51*time.Minute), "before it began")
	r = ok[consoleapi.RangeAnswer](c, "range", values("cluster", "c1", "namespace", "ml", "service", "chat", "window", "24h"))
	assert.Nil(t, at(r, r.Charts.Utilization.Series[0].Values, 16*time.Minute))

	none := ok[consoleapi.RangeAnswer](c, "range", values("namespace", "ml", "service", "chat", "window", "5m"))
	assert.Empty(t, none.Charts.Utilization.Series)
	assert.Nil(t, none.Charts.Memory.Limit)
	assert.Nil(t, none.Freshness.DataTime)
}

// When the last pod fell silent there is no mean any more, and no zero either.
func TestRangeOfAServiceWithoutPodsInTheMean(t *testing.T) {
	w := newWorld(t)
	id := tags{queries.Namespace: "ml", queries.Service: "chat"}
	w.write(queries.ServiceUtilization, id, 20*time.Minute, 30*time.Second, constant(0))
	w.write(queries.ServicePods, id.with(tags{queries.StateOfPod: "reporting"}), 20*time.Minute, 0, func(i int) float64 { return max(0, min(1, float64(79-i))) })
	c := serveAPI(t, w.store, w.now, nil)
	for window, last := range map[string]time.Duration{"5m": 30 * time.Second, "1h": 30 * time.Second, "24h": 0} {
		r := ok[consoleapi.RangeAnswer](c, "range", values("namespace", "ml", "service", "chat", "window", window))
		line := r.Charts.Utilization.Series[0]
		assert.NotNil(t, at(r, line.Values, last), window)
		assert.Equal(t, 1, *at(r, line.Pods, last), window)
		for ago := min(last, 15*time.Second); ago >= 0 && last > 0; ago -= time.Duration(r.Step) * time.Second {
			assert.Nil(t, at(r, line.Values, ago), window)
			assert.Zero(t, *at(r, line.Pods, ago), window)
		}
	}
}

func TestRangeByPod(t *testing.T) {
	w := newWorld(t)
	for i := range 4 {
		pod := held("ml", "chat", fmt.Sprintf("chat-%d", i))
		for g := range 2 {
			w.gpu(gpu{tags: device("n", fmt.Sprintf("GPU-%d-%d", i, g), g, pod), values: busy(0.1 * float64(i+1+g)), until: time.Duration(i%2) * 10 * time.Minute})
		}
	}
	c := serveAPI(t, w.store, w.now, func(c *Config) { c.MaxSeriesPerRange = 3 })
	r := ok[consoleapi.RangeAnswer](c, "range", values("cluster", "c1", "namespace", "ml", "service", "chat", "window", "30m", "by", "pod"))
	assert.Equal(t, 1, r.Truncated)
	for _, chart := range []consoleapi.Chart{r.Charts.Utilization, r.Charts.Memory, r.Charts.Tensor, r.Charts.Power} {
		require.Len(t, chart.Series, 3)
		for i, name := range []string{"chat-3", "chat-2", "chat-1"} {
			assert.Equal(t, name, chart.Series[i].Name)
			assert.Len(t, chart.Series[i].Values, r.Points)
			assert.Nil(t, chart.Series[i].Pods)
		}
		assert.Nil(t, chart.Limit)
	}
	line := r.Charts.Utilization.Series
	assert.InDelta(t, 0.35, *at(r, line[1].Values, 0), 1e-12, "the mean over its devices")
	assert.Nil(t, at(r, line[0].Values, 0), "it was silent then")
	assert.InDelta(t, 0.45, *at(r, line[0].Values, 10*time.Minute), 1e-12)
	assert.Equal(t, 80.0*gib, *at(r, r.Charts.Memory.Series[1].Values, 0), "the sum over its devices")
	assert.InDelta(t, 100+180+100+240, *at(r, r.Charts.Power.Series[1].Values, 0), 1e-9)
}

func TestRangeKeepsMaxPoints(t *testing.T) {
	w := newWorld(t)
	c := serveAPI(t, w.store, w.now, func(c *Config) { c.MaxPointsPerSeries = 10 })
	for _, window := range []string{"5m", "30m", "1h", "24h"} {
		r := ok[consoleapi.RangeAnswer](c, "range", values("namespace", "ml", "service", "chat", "window", window))
		assert.LessOrEqual(t, r.Points, 10)
		assert.GreaterOrEqual(t, r.Step, 1.0)
	}
}

func TestTrend(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		w.service(svc{cluster: "c1", namespace: "ml", name: fmt.Sprintf("s-%d", i), pods: pods{reporting: 1}, figures: averages(0.25 * float64(i+1))})
	}
	c := serveAPI(t, w.store, w.now, nil)
	got := ok[consoleapi.ServicesAnswer](c, "services", values("trend", "true", "limit", "2"))
	require.Len(t, got.Services, 2)
	require.Equal(t, 31, got.Trend.Points)
	for i, s := range got.Services {
		require.Len(t, s.Trend, 31)
		assert.Equal(t, 0.25*float64(i+1), *s.Trend[30])
		assert.Nil(t, s.Trend[0])
	}
}
