// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"maps"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// host has extensions.
type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// world writes samples of a fleet into a store. Its time is that of the last one.
type world struct {
	t     testing.TB
	store store.Store
	now   time.Time
}

const interval = 15 * time.Second

func newWorld(t testing.TB) *world {
	return &world{t: t, store: newStore(t), now: time.Now().Truncate(2 * time.Minute)} // on every grid
}

type tags map[string]string

func (l tags) with(more tags) tags {
	out := maps.Clone(l)
	maps.Copy(out, more)
	return out
}

var stale = math.Float64frombits(value.StaleNaN)

// write stores a series with a sample every interval, from and until so long
// before now. The last sample is at until.
func (w *world) write(metric string, l tags, from, until time.Duration, value func(i int) float64) {
	w.t.Helper()
	var samples []store.Sample
	for i, ago := 0, from; ago >= until; i, ago = i+1, ago-interval {
		samples = append(samples, store.Sample{Time: w.now.Add(-ago).UnixMilli(), Value: value(i)})
	}
	w.append(metric, l, samples...)
}

func (w *world) append(metric string, l tags, samples ...store.Sample) {
	w.t.Helper()
	named := map[string]string{model.MetricNameLabel: metric}
	for k, v := range l {
		if v != "" {
			named[k] = v
		}
	}
	a, err := w.store.Append(w.t.Context(), []store.Series{{Labels: labels.FromMap(named), Samples: samples}})
	require.NoError(w.t, err)
	require.Empty(w.t, a.Refused, "%s %v", metric, l)
}

// end ends a series, so long before now.
func (w *world) end(metric string, l tags, ago time.Duration) {
	w.t.Helper()
	w.append(metric, l, store.Sample{Time: w.now.Add(-ago).UnixMilli(), Value: stale})
}

func constant(v float64) func(int) float64 { return func(int) float64 { return v } }

// gpu is a device and what it measures; a missing figure is not written.
type gpu struct {
	tags   tags
	values map[string]float64 // by utilization, used, total, tensor, sm, dram, fp16, fp32, power
	from   time.Duration
	until  time.Duration
}

// device are the labels of a device.
func device(node, id string, index int, more tags) tags {
	return tags{queries.Node: node, queries.Cluster: "c1", queries.Device: id, queries.Index: strconv.Itoa(index), queries.Model: "NVIDIA H100"}.with(more)
}

// held are the labels of an owner.
func held(namespace, service, pod string) tags {
	return tags{queries.Namespace: namespace, queries.Service: service, queries.Pod: pod, queries.Container: "main"}
}

func (w *world) gpu(g gpu) {
	w.t.Helper()
	if g.from == 0 {
		g.from = 20 * time.Minute
	}
	for name, v := range g.values {
		metric, more := figure(name)
		w.write(metric, g.tags.with(more), g.from, g.until, constant(v))
	}
}

func figure(name string) (string, tags) {
	switch name {
	case "utilization":
		return queries.Utilization, tags{queries.Task: "general"}
	case "used":
		return queries.MemoryUsage, nil
	case "total":
		return queries.MemoryLimit, nil
	case "tensor", "fp16", "fp32":
		return queries.PipeActive, tags{queries.Pipe: name}
	case "sm":
		return queries.SMActive, nil
	case "dram":
		return queries.DRAMActive, nil
	case "power":
		return queries.Power, tags{"hw_type": "gpu"}
	case "temperature":
		return queries.Temperature, tags{queries.Sensor: "gpu", "hw_type": "gpu"}
	default:
		return name, nil
	}
}

// pods are the pods of a service by state.
type pods struct{ reporting, degraded, missing, warming, notRunning, pending int }

// svc is a service and its metrics of gpu_summary.
type svc struct {
	cluster, namespace, name string
	pods                     pods
	states                   map[string]string // of pods by name
	figures                  map[string]float64
	partial, ratio           float64
	unknown                  bool // just started: no partial, no ratio, no averages
	devices, silent, idle    int
	age                      float64
	from, until              time.Duration
}

func (s svc) tags() tags {
	return tags{queries.Cluster: s.cluster, queries.Namespace: s.namespace, queries.Service: s.name}
}

func (w *world) service(s svc) {
	w.t.Helper()
	if s.from == 0 {
		s.from = 20 * time.Minute
	}
	put := func(metric string, v float64, more tags) {
		w.t.Helper()
		w.write(metric, s.tags().with(more), s.from, s.until, constant(v))
	}
	for state, n := range map[string]int{"reporting": s.pods.reporting, "degraded": s.pods.degraded, "missing": s.pods.missing, "warming": s.pods.warming, "not_running": s.pods.notRunning} {
		put(queries.ServicePods, float64(n), tags{queries.StateOfPod: state})
	}
	put(queries.ServicePending, float64(s.pods.pending), nil)
	put(queries.ServiceDevices, float64(s.devices), tags{queries.StateOfDevice: "reporting"})
	put(queries.ServiceDevices, float64(s.silent), tags{queries.StateOfDevice: "missing"})
	put(queries.ServiceIdle, float64(s.idle), nil)
	if !s.unknown {
		put(queries.ServicePartial, s.partial, nil)
		if s.pods.reporting+s.pods.degraded+s.pods.missing > 0 {
			put(queries.ServiceMissingRatio, s.ratio, nil)
		}
	}
	for name, v := range s.figures {
		put(name, v, nil)
	}
	if len(s.figures) > 0 {
		put(queries.ServiceDataAge, s.age, nil)
	}
	for pod, state := range s.states {
		w.write(queries.PodState, s.tags().with(tags{queries.Pod: pod, queries.StateOfPod: state}), s.from, s.until, constant(1))
	}
}

// ask asks PromQL, to compare.
func (w *world) ask(query string) float64 {
	w.t.Helper()
	r, err := w.store.Instant(w.t.Context(), query, w.now)
	require.NoError(w.t, err, query)
	v := r.Value.(model.Vector)
	require.Len(w.t, v, 1, query)
	return float64(v[0].Value)
}
