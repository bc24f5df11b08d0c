// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// t0 is when the worlds of the tests begin.
var t0 = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// defaults are those of the processor.
func defaults() Config {
	return Config{
		InitialInterval: 15 * time.Second, Warmup: 90 * time.Second, AllocationTTL: 5 * time.Minute, ServiceTTL: 10 * time.Minute,
		PartialThreshold: 0.25, IdleThreshold: 0.05, IdleFor: 15 * time.Minute,
		MaxPods: 200_000, MaxServices: 20_000,
	}
}

// reading is what one device of one pod reports at one moment.
type reading struct {
	cluster, namespace, service, pod, uid string
	node, device                          string
	at                                    time.Time
	fields                                map[field]float64 // NaN: a NaN value
	ends                                  bool              // NoRecordedValue points
}

// fieldMetrics is the metric of each field and the attribute that selects it.
var fieldMetrics = [numSamples]struct {
	metric *names.Metric
	attr   string
	value  string
}{
	utilization:  {&names.GPUUtilization, names.HwGPUTask, "general"},
	smActive:     {&names.GPUSMActive, "", ""},
	dramActive:   {&names.GPUDRAMActive, "", ""},
	tensorActive: {&names.GPUPipeActive, names.GPUPipe, "tensor"},
	fp16Active:   {&names.GPUPipeActive, names.GPUPipe, "fp16"},
	fp32Active:   {&names.GPUPipeActive, names.GPUPipe, "fp32"},
	memoryUsage:  {&names.GPUMemoryUsage, "", ""},
	memoryLimit:  {&names.GPUMemoryLimit, "", ""},
	power:        {&names.HwPower, "", ""},
	suspended:    {&names.GPUDeviceSuspended, "", ""},
}

func putNotEmpty(m pcommon.Map, key, value string) {
	if value != "" {
		m.PutStr(key, value)
	}
}

// appendTo appends the reading as a resource of its own.
func (r reading) appendTo(md pmetric.Metrics) {
	rm := md.ResourceMetrics().AppendEmpty()
	attrs := rm.Resource().Attributes()
	putNotEmpty(attrs, names.K8sClusterName, r.cluster)
	putNotEmpty(attrs, names.K8sNamespaceName, r.namespace)
	putNotEmpty(attrs, names.ServiceName, r.service)
	putNotEmpty(attrs, names.K8sPodName, r.pod)
	putNotEmpty(attrs, names.K8sPodUID, r.uid)
	putNotEmpty(attrs, names.K8sNodeName, r.node)
	ms := rm.ScopeMetrics().AppendEmpty().Metrics()
	for f := range numSamples {
		v, ok := r.fields[f]
		if !ok {
			continue
		}
		fm := fieldMetrics[f]
		dp := fm.metric.Init(ms.AppendEmpty()).AppendEmpty()
		putNotEmpty(dp.Attributes(), names.HwID, r.device)
		putNotEmpty(dp.Attributes(), fm.attr, fm.value)
		if !r.at.IsZero() {
			dp.SetTimestamp(pcommon.NewTimestampFromTime(r.at))
		}
		if r.ends {
			dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		} else {
			dp.SetDoubleValue(v)
		}
	}
}

// stillAt is what an exporter reports of itself with a scrape of that time.
func stillAt(at time.Time, node string, frozen float64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	putNotEmpty(rm.Resource().Attributes(), names.K8sNodeName, node)
	dp := names.ExporterFrozen.Init(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty()
	dp.SetTimestamp(pcommon.NewTimestampFromTime(at))
	dp.SetIntValue(int64(frozen))
	return md
}

// world is a state machine and its time.
type world struct {
	t   *testing.T
	s   *Summary
	now time.Time
}

func newWorld(t *testing.T, change ...func(*Config)) *world {
	cfg := defaults()
	for _, c := range change {
		c(&cfg)
	}
	w := &world{t: t, s: New(cfg, t0), now: t0}
	if cfg.Expected == Seen {
		w.s.Restore(nil) // nothing was there before
	}
	return w
}

// read takes one reading in, of service shop/api and of this moment where the
// reading does not set it.
func (w *world) read(r reading) Tally {
	if r.namespace == "" {
		r.namespace = "shop"
	}
	if r.service == "" {
		r.service = "api"
	}
	if r.at.IsZero() {
		r.at = w.now
	}
	md := pmetric.NewMetrics()
	r.appendTo(md)
	md.MarkReadOnly() // a write would panic
	return w.s.Observe(md, w.now)
}

// util is a reading of utilization alone.
func (w *world) util(pod, device string, v float64) Tally {
	return w.read(reading{pod: pod, device: device, fields: map[field]float64{utilization: v}})
}

// pass lets d go by in steps of 15 s, and calls feed after each.
func (w *world) pass(d time.Duration, feed func()) {
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(min(15*time.Second, end.Sub(w.now)))
		if feed != nil {
			feed()
		}
	}
}

// reported is what an evaluation reported, by "namespace/service[/pod] metric [attribute]".
type reported struct {
	values map[string]float64
	ended  map[string]bool
}

// evaluate returns what is reported now, and checks what holds for every evaluation:
// one timestamp, identity on resource and points, no end beside a live point, no
// series twice.
func (w *world) evaluate() reported {
	e := w.s.Evaluate(w.now)
	return flatten(w.t, e.Metrics("1.2.3"), w.now)
}

func flatten(t *testing.T, md pmetric.Metrics, at time.Time) reported {
	out := reported{values: map[string]float64{}, ended: map[string]bool{}}
	for _, rm := range md.ResourceMetrics().All() {
		res := rm.Resource().Attributes()
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			points, ok := numbers(m)
			require.True(t, ok)
			ends := 0
			for _, dp := range points.All() {
				require.Equal(t, pcommon.NewTimestampFromTime(at), dp.Timestamp())
				for k, v := range res.All() {
					pv, ok := dp.Attributes().Get(k)
					require.True(t, ok && pv.Equal(v), "%s: %s of the resource is on the point", m.Name(), k)
				}
				key := seriesKey(m.Name(), dp.Attributes())
				require.NotContains(t, out.values, key)
				require.NotContains(t, out.ended, key)
				switch {
				case dp.Flags().NoRecordedValue():
					out.ended[key] = true
					ends++
				case dp.ValueType() == pmetric.NumberDataPointValueTypeInt:
					out.values[key] = float64(dp.IntValue())
				default:
					out.values[key] = dp.DoubleValue()
				}
			}
			require.True(t, ends == 0 || ends == points.Len(), "%s: ends travel alone", m.Name())
		}
	}
	return out
}

func seriesKey(metric string, attrs pcommon.Map) string {
	get := func(k string) string {
		v, _ := attrs.Get(k)
		return v.AsString()
	}
	key := get(names.K8sNamespaceName) + "/" + get(names.ServiceName)
	if c, ok := attrs.Get(names.K8sClusterName); ok {
		key = c.Str() + ":" + key
	}
	if p, ok := attrs.Get(names.K8sPodName); ok {
		key += "/" + p.Str()
	}
	key += " " + metric
	for _, k := range []string{names.GPUPodState, names.GPUDeviceState, names.GPUPipe} {
		if v, ok := attrs.Get(k); ok {
			key += " " + v.Str()
		}
	}
	return key
}

// has asserts values of service shop/api, by metric without "gpu.service.".
func (s reported) has(t *testing.T, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		got, ok := s.values["shop/api gpu.service."+name]
		require.True(t, ok, "%s is absent", name)
		require.InDelta(t, v, got, 1e-9*math.Max(1, math.Abs(v)), name)
	}
}

// lacks asserts that series of service shop/api are absent.
func (s reported) lacks(t *testing.T, absent ...string) {
	t.Helper()
	for _, name := range absent {
		require.NotContains(t, s.values, "shop/api gpu.service."+name)
	}
}

// state asserts that the pod is in this state and no other.
func (s reported) state(t *testing.T, pod, state string) {
	t.Helper()
	for st := range numPodStates {
		if v, ok := s.values[podSeries(pod, podStateNames[st])]; ok && v == 1 {
			require.Equal(t, state, podStateNames[st], pod)
			state = ""
		}
	}
	require.Empty(t, state, "%s has no state", pod)
}

func podSeries(pod, state string) string {
	return fmt.Sprintf("shop/api/%s gpu.pod.state %s", pod, state)
}

// averages are the series that are absent where nothing can be averaged.
var averages = []string{
	"utilization", "sm.active", "dram.active", "pipe.active tensor", "pipe.active fp16", "pipe.active fp32",
	"pod.memory.usage", "pod.memory.limit", "pod.power", "memory.usage", "memory.limit", "power",
	"utilization.min", "utilization.max", "utilization.devices", "data.age",
}
