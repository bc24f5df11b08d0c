// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/metadatatest"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// unsettled is the time of the last two snapshots of run: nothing is credited ahead, and the
// last one is not complete.
const unsettled = 30 * time.Second

// An hour of one GPU of two, which both outputs are given and which counts once.
func TestAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.boot(priced)
		b.run(time.Hour, chat, idle)
		require.NoError(t, b.stop())
		until := (time.Hour - unsettled).Seconds()
		assert.InDelta(t, until, w.sum("gpu.usage.held", "service.name=chat", "gpu.tenant=ml", "hw.model=H100", "k8s.cluster.name=c"), 0)
		assert.InDelta(t, until/2, w.sum("gpu.usage.used"), 0.1)
		assert.InDelta(t, until/3600*2.95, w.sum("gpu.usage.cost", "gpu.cost.currency=USD"), 1e-6)
		assert.InDelta(t, until, w.sum("gpu.capacity.time", "gpu.capacity.state=free"), 0)
		assert.InDelta(t, 2*until, w.sum("gpu.capacity.time"), 0)
		assert.InDelta(t, 300*until, w.sum("gpu.usage.energy", "gpu.energy.basis=board"), 1)
		assert.InDelta(t, 2.95, w.sum("gpu.price", "hw.model=H100"), 0)
		assert.InDelta(t, 2*until, w.rows().Seconds(), 0)
		assert.Empty(t, b.logs.All())
	})
}

// What is emitted was stored before.
func TestStoredFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.boot()
		b.run(3*time.Minute, chat)
		flush := []string{"write", "metrics", "rows"}
		assert.Equal(t, slices.Concat(flush, flush, flush), w.steps)
		b.run(30*time.Second, chat)
		require.NoError(t, b.stop())
		assert.Equal(t, flush, w.steps[9:], "a stop stores and emits what was read")
	})
}

// Killed before any step, and continued from the last write: no counter falls without a new
// start, which metricsSink checks, no time counts twice, and the rows of hours are what the
// counters are.
func TestKilledBetweenTwoSteps(t *testing.T) {
	steps := 1
	for kill := 0; kill < steps; kill++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.kill = kill
			slowly := func(cfg *Config) { cfg.FlushInterval = 4 * time.Minute }
			b := w.boot(priced, slowly)
			began := time.Now()
			for range 8 {
				b.run(11*time.Minute, chat, idle)
				if b.killed {
					_ = b.stop() // what it still does, does not count
					b = w.boot(priced, slowly)
					b.run(time.Minute, chat, idle)
				}
			}
			require.NoError(t, b.stop())
			for b.killed { // in its stop
				b = w.boot(priced, slowly)
				b.run(11*time.Minute, chat, idle)
				require.NoError(t, b.stop())
			}
			steps = len(w.steps)
			until := (time.Since(began) - unsettled).Seconds()
			held, rows := w.sum("gpu.usage.held"), w.rows()
			if kill > 0 { // else there was nothing to continue with
				assert.InDelta(t, until, held, 0, "killed before step %d", kill)
				assert.InDelta(t, 2*until, w.sum("gpu.capacity.time"), 0)
				assert.InDelta(t, until/3600*2.95, w.sum("gpu.usage.cost"), 1e-6)
				assert.InDelta(t, 2*until, rows.Seconds(), 0, "killed before step %d", kill)
			}
			assert.LessOrEqual(t, held, until)
			assert.LessOrEqual(t, rows.Seconds(), 2*until)
			closed := 0
			for _, row := range w.hours {
				if !row.Open {
					closed++
				}
			}
			assert.Equal(t, 2, closed, "the first hour")
		})
	}
	assert.Greater(t, steps, 20)
}

// While nothing can be stored, what is emitted stands still; after ten minutes the status is
// an error until something is stored again.
func TestWritesThatFail(t *testing.T) {
	full := errors.New("disk is full")
	for name, break_ := range map[string]func(*world) (repair func()){
		"fails": func(w *world) func() {
			w.disk = full
			return func() { w.disk = nil }
		},
		"hangs": func(w *world) func() {
			w.hangs = make(chan struct{})
			return func() { close(w.hangs) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				b := w.boot(priced)
				b.run(5*time.Minute, chat)
				before := w.sum("gpu.usage.held")
				require.Positive(t, before)
				repair := break_(w)
				b.run(9*time.Minute, chat)
				assert.Empty(t, w.statuses())
				b.run(3*time.Minute, chat)
				assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError}, w.statuses())
				assert.InDelta(t, before, w.sum("gpu.usage.held"), 0, "it stands still")
				assert.Equal(t, 1, b.logs.FilterMessage("state is not stored").Len())
				assert.Equal(t, "metrics", w.steps[len(w.steps)-1], "it is emitted still, so that its series do not end")
				if name == "fails" {
					assert.Greater(t, b.counter("otelcol_gpu_cost_store_failures"), int64(30))
					assert.LessOrEqual(t, b.logs.FilterMessageSnippet("state cannot be written").Len(), 2, "once in ten minutes")
				}
				assert.Greater(t, b.lag(), 10*time.Minute)

				repair()
				b.run(2*time.Minute, chat)
				assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError, componentstatus.StatusOK}, w.statuses())
				assert.Equal(t, 1, b.logs.FilterMessage("state is written again").Len())
				assert.Less(t, b.lag(), 2*time.Minute)
				require.NoError(t, b.stop())
				assert.InDelta(t, (19*time.Minute - unsettled).Seconds(), w.sum("gpu.usage.held"), 0)
			})
		})
	}
}

// A storage that does not return ends in no hang of the stop.
func TestAStopWhileAWriteHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.boot()
		b.run(5*time.Minute, chat)
		w.hangs = make(chan struct{})
		b.run(2*time.Minute, chat)
		began := time.Now()
		require.ErrorContains(t, b.stop(), "the state is not stored")
		assert.LessOrEqual(t, time.Since(began), drainTime+time.Second)
		close(w.hangs)
	})
}

// What a stop cannot store it does not emit either, and its error says so.
func TestAStopThatCannotStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.boot()
		b.run(5*time.Minute, chat)
		before := w.sum("gpu.usage.held")
		w.disk = errors.New("disk is full")
		b.run(30*time.Second, chat)
		require.ErrorContains(t, b.stop(), "the state is not stored")
		assert.InDelta(t, before, w.sum("gpu.usage.held"), 0)
	})
}

// What the next components refuse comes again; a refusal for good ends that of rows.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.boot()
		busy := errors.New("queue is full")
		w.next = [2]error{busy, busy}
		b.run(80*time.Minute+30*time.Second, chat, idle)
		assert.Empty(t, w.series)
		assert.Empty(t, w.hours)
		require.Error(t, b.stop())
		b = w.boot()
		b.run(90*time.Second, chat, idle)
		w.next = [2]error{}
		b.run(time.Minute, chat, idle)
		assert.Positive(t, b.counter("otelcol_gpu_cost_failures"))
		require.NoError(t, b.stop())
		until := 83*time.Minute - unsettled
		assert.InDelta(t, until.Seconds(), w.sum("gpu.usage.held"), 0)
		assert.InDelta(t, 2*until.Seconds(), w.rows().Seconds(), 0, "the closed hour, across a restart")

		b = w.boot()
		w.next[1] = consumererror.NewPermanent(errors.New("no such thing"))
		b.run(2*time.Minute, chat)
		assert.Equal(t, 1, b.logs.FilterMessageSnippet("rows of hours dropped").Len())
		w.next[1] = nil
		require.NoError(t, b.stop())
	})
}

// A store whose disk does not return keeps the rows waiting, and nothing else.
func TestRowsThatAreNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.boot()
		w.stuck = make(chan struct{})
		b.run(80*time.Minute, chat)
		assert.Empty(t, w.hours)
		assert.InDelta(t, (80*time.Minute - unsettled).Seconds(), w.sum("gpu.usage.held"), 60)
		assert.Positive(t, b.counter("otelcol_gpu_cost_failures"))
		close(w.stuck)
		b.run(2*time.Minute, chat)
		require.NoError(t, b.stop())
		assert.InDelta(t, (82*time.Minute - unsettled).Seconds(), w.rows().Seconds(), 0)
	})
}

// Without prices there is no money, not even 0.
func TestWithoutPrices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.boot()
		b.run(10*time.Minute, chat, idle)
		unpriced, err := b.tel.GetMetric("otelcol_gpu_cost_unpriced")
		assert.Error(t, err, unpriced)
		require.NoError(t, b.stop())
		assert.Positive(t, w.sum("gpu.usage.held"))
		for name := range w.series {
			assert.False(t, strings.Contains(name, "cost") || strings.HasPrefix(name, "gpu.price"), name)
		}
		for _, row := range w.hours {
			assert.Zero(t, row.RatePer)
		}
	})
}

// One model without a price is named, and has no money; the others have.
func TestAModelWithoutAPrice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.boot(priced, func(cfg *Config) { cfg.Prices[0].Match["hw.model"] = "A100" })
		b.run(10*time.Minute, chat)
		stored := (10*time.Minute - unsettled).Seconds()
		metadatatest.AssertEqualGpuCostUnpriced(t, b.tel, []metricdata.DataPoint[float64]{
			{Value: stored, Attributes: attribute.NewSet(attribute.String("hw.model", "H100"))},
		}, metricdatatest.IgnoreTimestamp())
		require.NoError(t, b.stop())
		assert.Zero(t, w.sum("gpu.usage.cost"))
		assert.Zero(t, w.sum("gpu.price"))
	})
}

// Without a storage everything is in memory, which is logged.
func TestWithoutStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.boot(func(cfg *Config) { cfg.Storage = nil })
		b.run(5*time.Minute, chat)
		require.NoError(t, b.stop())
		assert.Positive(t, w.sum("gpu.usage.held"))
		assert.NotContains(t, w.steps, "write")
		assert.Equal(t, 1, b.logs.FilterMessageSnippet("no storage is set").Len())
	})
}

// The price of a gauge is stored with the time at which it was read: a restart leaves no time
// without a price, and a price that is not reported for two hours ends all the same.
func TestPriceOfAGaugeOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const gauge = "node_gpu_hourly_cost"
		w := newWorld(t)
		priced := func(cfg *Config) {
			cfg.Prices = []prices.RuleConfig{{Match: map[string]string{prices.MatchModel: "*"}, PriceMetric: gauge}}
		}
		boot := func() *bench { return w.boot(priced) }
		unpriced := func() float64 { return w.sum("gpu.usage.held") - w.sum("gpu.usage.cost")*3600/2.5 }
		b := boot()
		reported := pmetric.NewMetrics()
		rm := reported.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr(names.K8sClusterName, "c")
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName(gauge)
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		p.SetDoubleValue(2.5)
		p.Attributes().PutStr("node", "n")
		b.read(reported)
		b.run(5*time.Minute, chat)
		require.NoError(t, b.stop())
		b = boot()
		b.run(5*time.Minute, chat)
		require.NoError(t, b.stop())
		assert.InDelta(t, (10*time.Minute - unsettled).Seconds(), w.sum("gpu.usage.held"), 0)
		assert.InDelta(t, 0, unpriced(), 1e-3)

		time.Sleep(3 * time.Hour)
		b = boot()
		b.run(5*time.Minute, chat)
		require.NoError(t, b.stop())
		assert.Greater(t, unpriced(), 200., "it was not reported for three hours")

		w.values[readingsKey] = w.values[readingsKey][1:]
		b = boot()
		assert.Equal(t, 1, b.logs.FilterMessageSnippet("stored values of price_metric").Len())
		assert.Equal(t, int64(1), b.counter("otelcol_gpu_cost_store_failures"))
		require.NoError(t, b.stop())
	})
}

// A state that cannot be used is logged, and replaced by one with a new start.
func TestStateThatCannotBeUsed(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil  func([]byte) []byte
		config func(*Config)
		log    string
	}{
		"damaged":          {spoil: func(b []byte) []byte { b[20] ^= 1; return b }, log: "damaged"},
		"cut off":          {spoil: func(b []byte) []byte { return b[:2] }, log: "damaged"},
		"another currency": {config: func(cfg *Config) { cfg.Currency = "EUR" }, log: "its amounts are in USD, and currency is EUR now"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				b := w.boot()
				b.run(5*time.Minute, chat)
				require.NoError(t, b.stop())
				if tt.spoil != nil {
					w.values[stateKey] = tt.spoil(w.values[stateKey])
				} else {
					tt.spoil = slices.Clone[[]byte]
				}
				b = w.boot(func(cfg *Config) {
					if tt.config != nil {
						tt.config(cfg)
					}
				})
				logs := b.logs.FilterMessageSnippet("stored state cannot be used").All()
				require.Len(t, logs, 1)
				assert.Contains(t, logs[0].ContextMap()["error"], tt.log)
				assert.Equal(t, int64(1), b.counter("otelcol_gpu_cost_store_failures"))
				b.run(5*time.Minute, chat)
				require.NoError(t, b.stop()) // metricsSink compares the starts
				assert.InDelta(t, (5*time.Minute - unsettled).Seconds(), w.sum("gpu.usage.held"), 0)
			})
		})
	}
}

func TestOwnTelemetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.boot()
		_, err := b.tel.GetMetric("otelcol_gpu_cost_lag")
		require.Error(t, err, "without boards")
		b.run(5*time.Minute, chat, idle)
		assert.Equal(t, unsettled, b.lag())
		assert.Equal(t, int64(2), b.counter("otelcol_gpu_cost_rows"))
		b.read(snapshot(time.Now().Add(-10*time.Minute), chat))
		b.read(snapshot(time.Now().Add(time.Hour), chat))
		assert.Equal(t, int64(1), b.counter("otelcol_gpu_cost_late_points"))
		assert.Positive(t, b.counter("otelcol_gpu_cost_refused_points"))
		time.Sleep(20 * time.Minute)
		b.run(5*time.Minute, chat, idle)
		bridged, err := b.tel.GetMetric("otelcol_gpu_cost_bridged")
		require.NoError(t, err)
		assert.InDelta(t, 2*(20*time.Minute).Seconds(), bridged.Data.(metricdata.Sum[float64]).DataPoints[0].Value, 60)
		require.NoError(t, b.stop())
	})
}

// A price list is old once, not with every flush.
func TestOldPrices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.boot(priced, func(cfg *Config) {
			cfg.Prices[0].ValidFrom = time.Now().Add(time.Hour - prices.StaleAfter).Format(time.RFC3339)
		})
		b.run(2*time.Minute, chat)
		assert.Zero(t, b.logs.FilterMessageSnippet("180 days").Len())
		time.Sleep(time.Hour)
		b.run(5*time.Minute, chat)
		assert.Equal(t, 1, b.logs.FilterMessageSnippet("180 days").Len())
		require.NoError(t, b.stop())
	})
}

func TestAnExtensionThatIsNotThere(t *testing.T) {
	w := newWorld(t)
	_, err := w.tryBoot(func(cfg *Config) { id := *cfg.Storage; cfg.Storage = &id; *cfg.Storage = otherID })
	require.ErrorContains(t, err, "there is no extension file_storage/other")
}

// A component that is stopped is stopped once, whatever the order, and a new one of the same
// configuration is another.
func TestOutputsShareOne(t *testing.T) {
	w := newWorld(t)
	b := w.boot()
	require.Same(t, b.ports[0].gpuCost, b.ports[1].gpuCost)
	slices.Reverse(b.ports)
	require.NoError(t, b.stop())
	require.NoError(t, b.ports[0].Shutdown(context.Background()))
	again, err := newPort(b.ports[0].cfg, b.ports[0].set)
	require.NoError(t, err)
	assert.NotSame(t, b.ports[0].gpuCost, again.gpuCost)
	require.NoError(t, again.Shutdown(context.Background()))
}
