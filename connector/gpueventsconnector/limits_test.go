// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/engine"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/metadatatest"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Absent input, and the end of a series, leave a state unchanged.
func TestSilenceChangesNothing(t *testing.T) {
	hot := one(gpu{hot: 95, throttle: []string{"hw_thermal"}, values: map[*names.Metric]float64{
		&names.GPUMemoryUtilization: 0.99, &names.GPURowRemapFailure: 1}})
	for name, then := range map[string]func(time.Time) pmetric.Metrics{
		"nothing at all":       func(time.Time) pmetric.Metrics { return pmetric.NewMetrics() },
		"the device alone":     one(gpu{}),
		"ends of its series":   one(gpu{marker: true}),
		"not a number":         one(gpu{hot: math.NaN(), values: map[*names.Metric]float64{&names.GPUMemoryUtilization: math.NaN()}}),
		"its exporter is down": func(at time.Time) pmetric.Metrics { return scrape(page{at: at, node: "n1", down: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, deviceSet, func(cfg *Config) {
					cfg.Events["gpu.exporter.down"]["enabled"], cfg.Events["gpu.device.lost"]["enabled"] = false, false
				})
				var raised []string
				for range 10 {
					b.feed(hot(time.Now()))
					raised = append(raised, brief(b.wait(interval))...)
				}
				require.ElementsMatch(t, []string{"gpu.temperature raised critical", "gpu.throttle raised",
					"gpu.memory.pressure raised critical", "gpu.row_remap.failure raised"}, raised)
				for range 100 {
					require.Empty(t, b.feed(then(time.Now())))
					require.Empty(t, b.wait(interval))
				}
			})
		})
	}
}

// Pending is not raised by silence either.
func TestSilenceRaisesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet)
		for range 5 {
			b.feed(one(gpu{hot: 95})(time.Now()))
			require.Empty(t, b.wait(interval))
		}
		require.Empty(t, b.wait(time.Hour))
	})
}

func TestLatePointsAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet)
		begin := time.Now()
		feed := func(at time.Time, failed float64) []string {
			md := scrape2(at, gpu{id: gpuA, values: map[*names.Metric]float64{&names.GPURowRemapFailure: failed}})
			got := brief(b.feed(md))
			return append(got, brief(b.wait(2*time.Second))...)
		}
		require.Empty(t, feed(begin, 0))
		require.Empty(t, feed(begin.Add(-time.Second), 1))
		require.Empty(t, feed(begin, 1), "what is judged is judged")
		m, err := b.tel.GetMetric("otelcol_gpu_events_input_late")
		require.NoError(t, err)
		require.Positive(t, m.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
		// Its clock was set back by an hour: after two minutes that is the time.
		for range 50 {
			require.Empty(t, feed(time.Now().Add(-time.Hour), 1))
		}
		for range 20 {
			if got := feed(time.Now().Add(-time.Hour), 1); len(got) > 0 {
				require.Equal(t, []string{"gpu.row_remap.failure raised"}, got)
				return
			}
		}
		t.Fatal("never believed")
	})
}

// One batch may hold several scrapes, in whatever order the points are.
func TestSeveralScrapesInOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet)
		md := scrape2(time.Now(), gpu{id: gpuA})
		ms := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
		begin := time.Now()
		points := names.HwTemperature.Init(ms.AppendEmpty())
		for _, i := range []int{4, 2, 0, 1, 3, 8, 7, 6, 5} {
			p := points.AppendEmpty()
			p.SetDoubleValue(95)
			p.SetTimestamp(at(float64(i * 15)))
			p.Attributes().PutStr(names.HwSensorLocation, names.SensorGPU)
		}
		ms.At(0).Gauge().DataPoints().At(0).SetTimestamp(at(0))
		b.feed(md)
		require.Equal(t, []string{"gpu.temperature raised critical"}, brief(b.wait(2*time.Second)), begin)
	})
}

func TestSubjectsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(cfg *Config) {
			cfg.Rules, cfg.MaxSubjects = []RuleSet{RuleSetDevice, RuleSetService}, 2
		})
		md := pmetric.NewMetrics()
		for _, n := range []string{"n1", "n2", "n3"} {
			page{at: time.Now(), node: n, gpus: []gpu{{id: "GPU-" + n}}}.add(md)
		}
		require.Empty(t, b.feed(md))
		kind := func(k string) attribute.Set { return attribute.NewSet(attribute.String("kind", k)) }
		metadatatest.AssertEqualGpuEventsSubjects(t, b.tel, []metricdata.DataPoint[int64]{
			{Value: 2, Attributes: kind("device")}, {Value: 2, Attributes: kind("exporter")},
			{Value: 2, Attributes: kind("node")}, {Value: 0, Attributes: kind("service")},
		}, metricdatatest.IgnoreTimestamp())
		require.Equal(t, 1, b.logs.FilterMessageSnippet("limit of watched subjects reached").Len(), "once in ten minutes")
		m, err := b.tel.GetMetric("otelcol_gpu_events_subjects_refused")
		require.NoError(t, err)
		require.Len(t, m.Data.(metricdata.Sum[int64]).DataPoints, 3)
	})
}

// What was not seen for long is forgotten while others are, and what was
// raised about it is over.
func TestSubjectsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(cfg *Config) {
			cfg.Rules, cfg.SubjectTTL = []RuleSet{RuleSetDevice, RuleSetService}, time.Hour
		})
		b.feed(scrape(page{at: time.Now(), node: "n1", gpus: []gpu{{id: gpuA, values: map[*names.Metric]float64{&names.GPURowRemapFailure: 1}}}}))
		require.Equal(t, []string{"gpu.row_remap.failure raised"}, brief(b.wait(time.Minute)))
		require.Equal(t, []string{"gpu.node.lost raised"}, brief(b.wait(3*time.Hour)), "alone it is not forgotten")
		b.feed(scrape(page{at: time.Now(), node: "n2", gpus: []gpu{{id: gpuB}}}))
		events := b.wait(time.Minute)
		require.ElementsMatch(t, []string{"gpu.row_remap.failure cleared", "gpu.node.lost cleared"}, brief(events))
		require.Zero(t, b.c.engine.Raised())
		require.Equal(t, 1, b.c.engine.Subjects()["device"])
		require.Equal(t, 1, b.c.engine.Subjects()["node"])
		require.Equal(t, 1, b.c.engine.Subjects()["exporter"])
	})
}

// Rules that are switched off read nothing and report nothing.
func TestRulesAreSwitchedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet, func(cfg *Config) {
			cfg.Events = Events{names.EventXID: cfg.Events[names.EventXID]}
		})
		for i := range 20 {
			b.feed(scrape(page{at: time.Now(), node: "n1", frozen: true, gpus: []gpu{{id: gpuA, hot: 99, throttle: []string{"hw_thermal"}}}}))
			require.Empty(t, b.wait(interval), i)
		}
	})
}

// Hardware that is no GPU has the generic metrics too.
func TestOtherHardware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet)
		for range 10 {
			md := one(gpu{id: "cpu0", hot: 99})(time.Now())
			md.ResourceMetrics().At(1).Resource().Attributes().PutStr(names.HwType, "cpu")
			require.Empty(t, b.feed(md))
			require.Empty(t, b.wait(interval))
		}
		require.Zero(t, b.c.engine.Subjects()["device"])
	})
}

// Events that nothing accepts do not fill the memory; what is refused is raised
// once there is room.
func TestWaitingEventsAreBounded(t *testing.T) {
	e := newEngine(createDefaultConfig().(*Config))
	now := time.Now()
	e.PutBack(make([]event.Event, engine.MaxWaiting))
	e.Consume(data(now, 1, 1), now)
	require.Equal(t, engine.MaxWaiting, e.Waiting())
	require.Equal(t, map[string]int64{names.EventServicePartial: 1}, e.TakeCounts().Refused)
	require.Zero(t, e.Raised())
	e.Take(nil)
	e.Consume(data(now.Add(interval), 1, 1), now.Add(interval))
	require.Equal(t, 1, e.Waiting())
}
