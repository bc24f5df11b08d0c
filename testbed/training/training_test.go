// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package training

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gputrainingprocessor"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/trainsim"
)

// number is an environment variable that is a number.
func number(t *testing.T, variable string, preset uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return preset
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, variable)
	return n
}

// TestRuns has gpu_training follow RUNS random runs, and compares every figure of every evaluation
// with what follows from the steps of the run.
func TestRuns(t *testing.T) {
	runs, seed := number(t, "RUNS", 60), number(t, "SEED", 1)
	differences, figures := 0, 0
	for i := range runs {
		synctest.Test(t, func(t *testing.T) {
			f, d := follow(t, seed, i, 20-differences)
			figures += f
			differences += d
		})
	}
	t.Logf("%d figures compared", figures)
	fmt.Printf("runs %d, differences %d\n", runs, differences)
	assert.Zero(t, differences)
	assert.Positive(t, figures)
}

// follow runs one of them and returns how many figures were compared, and how many differ; it
// prints at most some of those.
func follow(t *testing.T, seed, i uint64, print int) (figures, differences int) {
	rng := rand.New(rand.NewPCG(seed, i))
	fault := trainsim.Faults[i%uint64(len(trainsim.Faults))]
	start := time.Now().Add(time.Duration(rng.IntN(300)) * time.Second)
	run, peak := trainsim.Random(rng, fault, start)
	every := []time.Duration{15 * time.Second, 30 * time.Second, 60 * time.Second}[rng.IntN(3)]

	var latest atomic.Pointer[map[string]float64]
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		if figures := figuresOf(md); len(figures) > 0 {
			latest.Store(&figures)
		}
		return nil
	})
	require.NoError(t, err)
	factory := gputrainingprocessor.NewFactory()
	p, err := factory.CreateMetrics(t.Context(), processortest.NewNopSettings(factory.Type()), factory.CreateDefaultConfig(), next)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, p.Shutdown(t.Context())) }()

	o := &oracle{run: run, peak: peak, held: time.Now()}
	export := time.Now()
	for run.End().After(time.Now()) {
		require.NoError(t, p.ConsumeMetrics(t.Context(), run.Held(time.Now())))
		if !time.Now().Before(export) {
			export = export.Add(every)
			if md := run.Export(time.Now()); md.ResourceMetrics().Len() > 0 {
				o.export(time.Now())
				require.NoError(t, p.ConsumeMetrics(t.Context(), md))
			}
		}
		latest.Store(nil)
		// The evaluation comes after 15 s, this a moment later.
		time.Sleep(15*time.Second - time.Millisecond)
		synctest.Wait()
		now := time.Now()
		if latest.Load() == nil {
			time.Sleep(time.Millisecond)
			synctest.Wait()
			now = time.Now()
		}
		var got map[string]float64
		if figures := latest.Load(); figures != nil {
			got = *figures
		}
		want := o.figures(now)
		names := slices.Sorted(maps.Keys(want))
		for name := range got {
			if _, known := want[name]; !known {
				names = append(names, name)
			}
		}
		for _, name := range names {
			figures++
			w, wanted := want[name]
			g, is := got[name]
			if wanted == is && math.Abs(w-g) <= 1e-9*math.Max(math.Abs(w), 1e-3) {
				continue
			}
			if differences++; differences <= print {
				fmt.Printf("seed %d, run %d, %s, %v after its start: %s is %v (%t), want %v (%t)\n", seed, i, fault, now.Sub(start), name, g, is, w, wanted)
			}
		}
	}
	return figures, differences
}

// figuresOf are the values that gpu_training adds, by metric and what distinguishes its points.
func figuresOf(md pmetric.Metrics) map[string]float64 {
	found := map[string]float64{}
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				var dps pmetric.NumberDataPointSlice
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					dps = m.Gauge().DataPoints()
				case pmetric.MetricTypeSum:
					dps = m.Sum().DataPoints()
				default:
					continue
				}
				for _, dp := range dps.All() {
					if _, ok := dp.Attributes().Get("training.run.id"); !ok || dp.Flags().NoRecordedValue() || len(m.Name()) < 13 || m.Name()[:13] != "gpu.training." {
						continue
					}
					name := m.Name()
					for _, key := range []string{"gpu.training.basis", "gpu.training.window"} {
						if v, ok := dp.Attributes().Get(key); ok {
							name += " " + v.Str()
						}
					}
					if name == "gpu.training.goodput 1h" {
						continue
					}
					v := dp.DoubleValue()
					if dp.ValueType() == pmetric.NumberDataPointValueTypeInt {
						v = float64(dp.IntValue())
					}
					found[name] = v
				}
			}
		}
	}
	return found
}
