// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/lapse"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/metadatatest"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

// Whether the process was stopped, its machine was suspended or its clock was set: that nothing
// arrived meanwhile makes no pod missing. What is shorter than the time for which points are fresh
// changes nothing.
func TestLapses(t *testing.T) {
	const s = time.Second
	for name, tt := range map[string]struct {
		wall, monotonic time.Duration // that pass
		lapsed          bool
		steps           int64
	}{
		"a process that is stopped":            {75 * s, 75 * s, true, 0},
		"a process that is stopped for a day":  {24 * time.Hour, 24 * time.Hour, true, 0},
		"a machine that is suspended":          {75 * s, s, true, 1},
		"a clock that is set back":             {-time.Hour, s, true, 1},
		"a clock that is set forward":          {2 * time.Hour, s, true, 1},
		"a process that is stopped for a tick": {15 * s, 15 * s, false, 0},
		"a clock that is set by ten seconds":   {11 * s, s, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			tel := componenttest.NewTelemetry()
			defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
			cfg := createDefaultConfig().(*Config)
			next := &recorder{}
			p, err := newProcessor(metadatatest.NewSettings(tel), cfg, next)
			require.NoError(t, err)
			defer func() { require.NoError(t, p.Shutdown(context.Background())) }()
			wall, monotonic := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), time.Duration(0)
			p.clock, p.watch = func() (time.Time, time.Duration) { return wall, monotonic }, lapse.Watch{}
			p.state = summary.New(cfg.summary(), wall)

			evaluate := func() reported {
				next.summaries = nil
				p.evaluate(t.Context())
				require.Len(t, next.summaries, 1)
				got := flatten(t, next.summaries[0].md, wall)
				require.Zero(t, got.values["shop/api gpu.service.partial"])
				got.has(t, map[string]float64{"pods missing": 0})
				return got
			}
			live := func(d time.Duration) (got reported) {
				for range d / (15 * s) {
					wall, monotonic = wall.Add(15*s), monotonic+15*s
					require.NoError(t, p.ConsumeMetrics(t.Context(), utilBatchAt(wall, "a")))
					got = evaluate()
				}
				return got
			}
			well := map[string]float64{"pods reporting": 1, "utilization": 0.5, "partial": 0}
			live(12*time.Minute).has(t, well)
			wall, monotonic = wall.Add(tt.wall), monotonic+tt.monotonic
			got := evaluate() // before anything arrives
			if tt.lapsed {
				got.has(t, map[string]float64{"pods warming": 1})
				got.lacks(t, "partial", "utilization")
			} else {
				got.has(t, well)
			}
			live(time.Minute).has(t, well)
			if tt.steps > 0 {
				metadatatest.AssertEqualGpuSummaryClockSteps(t, tel, []metricdata.DataPoint[int64]{{Value: tt.steps}}, metricdatatest.IgnoreTimestamp())
			}
		})
	}
}

// A GPU that nvml leaves alone for two minutes at a time, so that it can be suspended, is idle and
// not missing.
func TestRestingIsNotMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &recorder{}
		p := start(t, processortest.NewNopSettings(metadata.Type), createDefaultConfig().(*Config), next)
		time.Sleep(time.Second)
		for i := range 4 * 20 {
			batch := restingBatch(time.Now(), "a", "b", "c")
			if i%12 < 4 {
				batch = utilBatch("a", "b", "c")
			}
			require.NoError(t, p.ConsumeMetrics(t.Context(), batch))
			time.Sleep(15 * time.Second)
		}
		synctest.Wait()
		require.NotEmpty(t, next.summaries)
		for _, c := range next.summaries {
			require.NotEqual(t, 1.0, flatten(t, c.md, c.at).values["shop/api gpu.service.partial"])
		}
	})
}
