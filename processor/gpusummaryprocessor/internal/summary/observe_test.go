// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/otlpseeds"
)

// batch returns one utilization point of pod shop/a, changed by change.
func batch(at time.Time, change func(rm pmetric.ResourceMetrics, m pmetric.Metric, dp pmetric.NumberDataPoint)) pmetric.Metrics {
	md := pmetric.NewMetrics()
	reading{
		namespace: "shop", service: "api", pod: "a", device: "GPU-0", at: at,
		fields: map[field]float64{utilization: 0.5},
	}.appendTo(md)
	rm := md.ResourceMetrics().At(0)
	m := rm.ScopeMetrics().At(0).Metrics().At(0)
	change(rm, m, m.Gauge().DataPoints().At(0))
	return md
}

func TestPointsThatAreRefused(t *testing.T) {
	now := t0.Add(time.Hour)
	type change = func(pmetric.ResourceMetrics, pmetric.Metric, pmetric.NumberDataPoint)
	for _, tt := range []struct {
		name   string
		change change
		want   Reason
	}{
		{"nothing wrong", func(pmetric.ResourceMetrics, pmetric.Metric, pmetric.NumberDataPoint) {}, accepted},
		{"device on the resource alone", func(rm pmetric.ResourceMetrics, _ pmetric.Metric, dp pmetric.NumberDataPoint) {
			dp.Attributes().Remove(names.HwID)
			rm.Resource().Attributes().PutStr(names.HwID, "GPU-0")
		}, accepted},
		{"a sum", func(_ pmetric.ResourceMetrics, m pmetric.Metric, dp pmetric.NumberDataPoint) {
			c := pmetric.NewNumberDataPoint()
			dp.CopyTo(c)
			s := m.SetEmptySum()
			s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			c.CopyTo(s.DataPoints().AppendEmpty())
		}, accepted},
		{"an integer", func(_ pmetric.ResourceMetrics, _ pmetric.Metric, dp pmetric.NumberDataPoint) { dp.SetIntValue(1) }, accepted},
		{"a little above 1", func(_ pmetric.ResourceMetrics, _ pmetric.Metric, dp pmetric.NumberDataPoint) {
			dp.SetDoubleValue(1.004)
		}, accepted},
		{"as old as service_ttl", func(_ pmetric.ResourceMetrics, _ pmetric.Metric, dp pmetric.NumberDataPoint) {
			dp.SetTimestamp(pcommon.NewTimestampFromTime(now.Add(-10 * time.Minute)))
		}, accepted},

		{"no namespace", func(rm pmetric.ResourceMetrics, _ pmetric.Metric, _ pmetric.NumberDataPoint) {
			rm.Resource().Attributes().Remove(names.K8sNamespaceName)
		}, noNamespace},
		{"no service", func(rm pmetric.ResourceMetrics, _ pmetric.Metric, _ pmetric.NumberDataPoint) {
			rm.Resource().Attributes().Remove(names.ServiceName)
		}, noService},
		{"no device", func(_ pmetric.ResourceMetrics, _ pmetric.Metric, dp pmetric.NumberDataPoint) {
			dp.Attributes().Remove(names.HwID)
		}, noDevice},
		{"device is no string", func(_ pmetric.ResourceMetrics, _ pmetric.Metric, dp pmetric.NumberDataPoint) {
			dp.Attributes().PutInt(names.HwID, 0)
		}, noDevice},
		{"no timestamp", func(_ pmetric.ResourceMetrics, _ pmetric.Metric, dp pmetric.NumberDataPoint) { dp.SetTimestamp(0) }, noTimestamp},
		{"percent", func(_ pmetric.ResourceMetrics, m pmetric.Metric, _ pmetric.NumberDataPoint) { m.SetUnit("%") }, wrongUnit},
		{"no unit", func(_ pmetric.ResourceMetrics, m pmetric.Metric, _ pmetric.NumberDataPoint) { m.SetUnit("") }, wrongUnit},
		{"a histogram", func(_ pmetric.ResourceMetrics, m pmetric.Metric, _ pmetric.NumberDataPoint) {
			m.SetEmptyHistogram().DataPoints().AppendEmpty()
		}, wrongKind},
		{"nothing at all", func(_ pmetric.ResourceMetrics, m pmetric.Metric, _ pmetric.NumberDataPoint) {
			empty := pmetric.NewMetric()
			empty.SetName(m.Name())
			empty.CopyTo(m)
		}, wrongKind},
		{"a delta", func(_ pmetric.ResourceMetrics, m pmetric.Metric, _ pmetric.NumberDataPoint) {
			s := m.SetEmptySum()
			s.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			s.DataPoints().AppendEmpty()
		}, wrongKind},
		{"negative", func(_ pmetric.ResourceMetrics, _ pmetric.Metric, dp pmetric.NumberDataPoint) { dp.SetDoubleValue(-0.1) }, outOfRange},
		{"infinite", func(_ pmetric.ResourceMetrics, _ pmetric.Metric, dp pmetric.NumberDataPoint) {
			dp.SetDoubleValue(math.Inf(1))
		}, outOfRange},
		{"a percentage that says it is a ratio", func(_ pmetric.ResourceMetrics, _ pmetric.Metric, dp pmetric.NumberDataPoint) {
			dp.SetDoubleValue(57)
		}, outOfRange},
		{"older than service_ttl", func(_ pmetric.ResourceMetrics, _ pmetric.Metric, dp pmetric.NumberDataPoint) {
			dp.SetTimestamp(pcommon.NewTimestampFromTime(now.Add(-10*time.Minute - 1)))
		}, tooOld},
		{"1970", func(_ pmetric.ResourceMetrics, _ pmetric.Metric, dp pmetric.NumberDataPoint) { dp.SetTimestamp(1) }, tooOld},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(defaults(), t0)
			want := Tally{Accepted: 1}
			if tt.want != accepted {
				want = Tally{}
				want.Refused[tt.want] = 1
				want.Examples = new([NumReasons]Example)
				want.Examples[tt.want] = Example{"", "shop", "a", names.GPUUtilization.Name}
				if tt.want == noNamespace {
					want.Examples[tt.want].Namespace = ""
				}
			}
			require.Equal(t, want, s.Observe(batch(now, tt.change), now))
			if tt.want != accepted {
				require.Empty(t, s.pods, "a refused point leaves no trace")
			}
		})
	}
}

func TestWhatIsNoInputIsNotCounted(t *testing.T) {
	for name, change := range map[string]func(pmetric.ResourceMetrics, pmetric.Metric, pmetric.NumberDataPoint){
		"a free device": func(rm pmetric.ResourceMetrics, _ pmetric.Metric, _ pmetric.NumberDataPoint) {
			rm.Resource().Attributes().Remove(names.K8sPodName)
		},
		"the encoder": func(_ pmetric.ResourceMetrics, _ pmetric.Metric, dp pmetric.NumberDataPoint) {
			dp.Attributes().PutStr(names.HwGPUTask, "encoder")
		},
		"no task": func(_ pmetric.ResourceMetrics, _ pmetric.Metric, dp pmetric.NumberDataPoint) {
			dp.Attributes().Remove(names.HwGPUTask)
		},
		"another metric": func(_ pmetric.ResourceMetrics, m pmetric.Metric, _ pmetric.NumberDataPoint) {
			m.SetName(names.HwTemperature.Name)
		},
		"our own summary": func(_ pmetric.ResourceMetrics, m pmetric.Metric, _ pmetric.NumberDataPoint) {
			m.SetName(names.ServiceUtilization.Name)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(defaults(), t0)
			require.Equal(t, Tally{}, s.Observe(batch(t0, change), t0))
			require.Empty(t, s.pods)
		})
	}
}

func TestNewestPointStays(t *testing.T) {
	w := newWorld(t)
	w.pass(2*time.Minute, func() { w.util("a", "GPU-0", 0.5) })
	at := func(d time.Duration, v float64) Tally {
		return w.read(reading{pod: "a", device: "GPU-0", at: w.now.Add(d), fields: map[field]float64{utilization: v}})
	}
	require.Equal(t, 1, at(-time.Second, 0.1).Refused[late])
	require.Equal(t, 1, at(0, 0.3).Refused[duplicate])
	w.evaluate().has(t, map[string]float64{"utilization": 0.5})
	require.Equal(t, 1, at(0, 0.6).Refused[duplicate], "of two at one time the greater stays, whichever came first")
	w.evaluate().has(t, map[string]float64{"utilization": 0.6})
	require.Equal(t, 1, at(time.Second, 0.2).Accepted)
	w.evaluate().has(t, map[string]float64{"utilization": 0.2})
}

func TestEndOfSeries(t *testing.T) {
	for name, end := range map[string]func(w *world, f field, at time.Time) Tally{
		"NoRecordedValue": func(w *world, f field, at time.Time) Tally {
			return w.read(reading{pod: "a", device: "GPU-0", at: at, ends: true, fields: map[field]float64{f: 0}})
		},
		"NaN": func(w *world, f field, at time.Time) Tally {
			return w.read(reading{pod: "a", device: "GPU-0", at: at, fields: map[field]float64{f: math.NaN()}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			feed := func() {
				w.read(reading{pod: "a", device: "GPU-0", fields: map[field]float64{utilization: 0.5, power: 300}})
				w.util("b", "GPU-1", 0.7)
			}
			w.pass(2*time.Minute, feed)
			require.Equal(t, 1, end(w, power, w.now.Add(time.Second)).Accepted)
			got := w.evaluate()
			got.has(t, map[string]float64{"utilization": 0.6, "pods reporting": 2})
			got.lacks(t, "power", "pod.power")

			require.Equal(t, 1, end(w, utilization, w.now.Add(time.Second)).Accepted)
			got = w.evaluate()
			got.state(t, "a", "missing") // at once, 44 s before it would be stale
			got.has(t, map[string]float64{"utilization": 0.7, "partial": 1})

			require.Equal(t, 1, w.util("a", "GPU-0", 0.9).Refused[late], "older than the end")
		})
	}
}

// gpu_pod ends the series of one container at the time at which the pod's next
// container has its first point: the pod has been seen all along.
func TestValueWinsOverEndOfTheSameTime(t *testing.T) {
	end := reading{pod: "a", device: "GPU-0", ends: true, fields: map[field]float64{utilization: 0}}
	for name, last := range map[string]func(w *world){
		"value first": func(w *world) { w.util("a", "GPU-0", 0.9); w.read(end) },
		"end first":   func(w *world) { w.read(end); w.util("a", "GPU-0", 0.9) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.pass(2*time.Minute, func() { w.util("a", "GPU-0", 0.5) })
			w.now = w.now.Add(15 * time.Second)
			last(w)
			got := w.evaluate()
			got.state(t, "a", "reporting")
			got.has(t, map[string]float64{"utilization": 0.9, "partial": 0})
		})
	}
}

func TestEndCreatesNothing(t *testing.T) {
	end := reading{pod: "a", device: "GPU-0", ends: true, fields: map[field]float64{utilization: 0}}
	w := newWorld(t)
	w.read(end)
	require.Empty(t, w.evaluate().values)
	require.Empty(t, w.s.pods)
	require.Empty(t, w.s.services)
	require.Empty(t, w.s.devices)
}

func TestPointsFromTheFuture(t *testing.T) {
	w := newWorld(t)
	at := func(d time.Duration) Tally {
		return w.read(reading{pod: "a", device: "GPU-0", at: w.now.Add(d), fields: map[field]float64{utilization: 0.5}})
	}
	require.Equal(t, Tally{Accepted: 1}, at(30*time.Second), "within the skew, its own time")

	w = newWorld(t)
	require.Equal(t, Tally{Accepted: 1, Future: 1}, at(30*time.Second+1))
	w.pass(2*time.Minute, func() { require.Equal(t, Tally{Accepted: 1, Future: 1}, at(time.Hour)) })
	w.evaluate().has(t, map[string]float64{"data.age": 0, "pods reporting": 1})
	// A clock that is ahead cannot keep a pod alive: its points count from their arrival.
	w.pass(46*time.Second, nil)
	w.evaluate().state(t, "a", "missing")

	w.s.Observe(batch(w.now, func(_ pmetric.ResourceMetrics, _ pmetric.Metric, dp pmetric.NumberDataPoint) {
		dp.SetTimestamp(math.MaxUint64)
	}), w.now)
	w.evaluate().state(t, "a", "reporting")
}

// FuzzObserve feeds whatever decodes as OTLP: nothing may panic, and no evaluation
// may report what cannot be.
func FuzzObserve(f *testing.F) {
	marshal := pmetric.ProtoMarshaler{}
	add := func(change func(pmetric.ResourceMetrics, pmetric.Metric, pmetric.NumberDataPoint)) {
		b, err := marshal.MarshalMetrics(batch(t0, change))
		require.NoError(f, err)
		f.Add(b)
	}
	add(func(pmetric.ResourceMetrics, pmetric.Metric, pmetric.NumberDataPoint) {})
	add(func(_ pmetric.ResourceMetrics, _ pmetric.Metric, dp pmetric.NumberDataPoint) {
		dp.SetTimestamp(math.MaxUint64)
	})
	add(func(_ pmetric.ResourceMetrics, _ pmetric.Metric, dp pmetric.NumberDataPoint) {
		dp.SetDoubleValue(math.NaN())
	})
	add(func(_ pmetric.ResourceMetrics, m pmetric.Metric, _ pmetric.NumberDataPoint) { m.SetEmptySummary() })
	b, err := marshal.MarshalMetrics(claimed{namespace: "shop", service: "api", pod: "a", device: "GPU-0", value: 1, at: t0}.batch())
	require.NoError(f, err)
	f.Add(b)
	for _, odd := range otlpseeds.Metrics(t0) {
		f.Add(odd)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(data)
		if err != nil {
			t.Skip("no OTLP: another package's parser refuses it")
		}
		md.MarkReadOnly()
		for _, source := range []Source{Seen, Allocation, Kubernetes} {
			cfg := defaults()
			cfg.Warmup, cfg.Expected = 0, source
			s := New(cfg, t0.Add(-time.Hour))
			s.SetPods(&Pods{List: []Pod{running("a", t0)}}, t0)
			for i := range 4 {
				now := t0.Add(time.Duration(i) * 50 * time.Second)
				s.Observe(md, now)
				e := s.Evaluate(now)
				for _, svc := range e.services {
					for ser, v := range svc.values {
						require.False(t, math.IsNaN(v) || math.IsInf(v, 0) || v < 0, "%s = %v", outputs[ser].metric.Name, v)
					}
				}
				_ = e.Metrics("")
			}
		}
	})
}
