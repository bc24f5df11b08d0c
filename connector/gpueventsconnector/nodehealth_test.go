// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// nodeInfo is a point of gpu.node.info of n1, with pairs of an attribute and its value.
func nodeInfo(attrs ...string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	event.PutTexts(rm.Resource().Attributes(), names.K8sClusterName, "c1", names.K8sNodeName, "n1")
	p := names.GPUNodeInfo.Init(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty()
	p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	p.SetIntValue(1)
	event.PutTexts(p.Attributes(), attrs...)
	return md
}

// bootID is a point of gpu.node.info of n1 with the id of a boot.
func bootID(id string, at time.Time) pmetric.Metrics {
	md := nodeInfo(names.GPUNodeBootID, id)
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).SetTimestamp(pcommon.NewTimestampFromTime(at))
	return md
}

// ofNode are a node's own series.
func ofNode(all []pmetric.Metrics) (some []pmetric.Metrics) {
	for _, md := range all {
		own := pmetric.NewMetrics()
		for _, rm := range md.ResourceMetrics().All() {
			if _, device := rm.Resource().Attributes().Get(names.HwID); !device {
				rm.CopyTo(own.ResourceMetrics().AppendEmpty())
			}
		}
		some = append(some, own)
	}
	return some
}

// gpusOf are boards that are well.
func gpusOf(ids ...string) (all []gpu) {
	for _, id := range ids {
		all = append(all, gpu{id: id, values: map[*names.Metric]float64{&names.GPURowRemapFailure: 0}})
	}
	return all
}

// A node of which the type of machine has more boards is failed, five minutes after its
// first page and until it has them, through a restart.
func TestANodeWithTooFewBoards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := newDisk(), &ward{}
		two := func(cfg *Config) { cfg.Health.Expected, cfg.Health.Score = map[string]int{"p5": 2}, true }
		begin := func() *bench { return startInto(t, host{diskID: d}, w, deviceSet, withHealth, two, onDisk) }
		b := begin()
		run := func(n int, p page) (events []string) {
			for range n {
				p.at, p.node = time.Now(), "n1"
				events = append(events, healthEvents(b.feed(nodeInfo(names.HostType, "p5")))...)
				events = append(events, healthEvents(b.feed(scrape(p)))...)
				events = append(events, healthEvents(b.wait(15*time.Second))...)
			}
			return events
		}
		require.Empty(t, run(19, page{gpus: gpusOf(gpuA)}))
		assert.Contains(t, of(&names.GPUNodeStatus, w.taken()), "ok 1")
		b.sink.Reset()
		require.Equal(t, []string{"raised: failed [count] check_mechanics"}, run(2, page{gpus: gpusOf(gpuA)}))
		w.Reset()
		require.Empty(t, run(1, page{gpus: gpusOf(gpuA)}), "once")
		own := seriesOf(ofNode(w.AllMetrics()))
		assert.Equal(t, []string{"gpu.node.status <nil> failed 1", "gpu.health.reason count failed 1"}, own, "its score is 0")
		assert.Equal(t, []string{"ok 1"}, of(&names.HwStatus, w.taken()), "the board itself is well")

		require.Empty(t, run(8, page{down: true}), "nothing is known")
		own = seriesOf(ofNode(w.AllMetrics()))
		assert.Contains(t, own, "gpu.health.reason count failed ends")
		assert.NotContains(t, of(&names.GPUNodeStatus, own[1:]), "failed 1")
		w.Reset()
		b.stop()
		b = begin()
		defer func() { b.stop() }()
		require.Empty(t, run(2, page{gpus: gpusOf(gpuA)}), "it is not raised a second time")
		assert.Contains(t, of(&names.GPUNodeStatus, w.taken()), "failed 1", "it is known again")
		require.Equal(t, []string{"cleared: ok <nil> none"}, run(1, page{gpus: gpusOf(gpuA, gpuB)}))
		assert.Contains(t, of(&names.GPUNodeStatus, w.taken()), "ok 1")
		require.Empty(t, run(30, page{gpus: gpusOf(gpuA, gpuB)}))
	})
}

// Of a node with a board of which nothing is known it is known that it is failed where another
// board is, and not that it is well.
func TestANodeWithAnUnknownBoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &ward{}
		b := startInto(t, componenttest.NewNopHost(), w, deviceSet, withHealth)
		defer b.stop()
		see := func(failed float64) []string {
			w.Reset()
			b.feed(scrape(page{at: time.Now(), node: "n1", gpus: []gpu{
				{id: gpuA, values: map[*names.Metric]float64{&names.GPURowRemapFailure: failed}},
				{id: gpuB, values: map[*names.Metric]float64{&names.HwTemperature: 40}},
			}}))
			b.wait(15 * time.Second)
			return of(&names.GPUNodeStatus, seriesOf(ofNode(w.AllMetrics())))
		}
		assert.Empty(t, see(0))
		assert.Equal(t, []string{"failed 1"}, see(1))
		assert.Equal(t, []string{"ok ends", "degraded ends", "predicted_failure ends", "failed ends"}, see(0))
	})
}

// A node without any board that falls silent is not failed any more: nothing is known.
func TestANodeWithoutBoardsFallsSilent(t *testing.T) {
	withPatient(t, func(p patient, w *ward) {
		for range 25 {
			p.feed(nodeInfo(names.HostType, "p5"))
			p.see(page{})
		}
		require.Equal(t, map[string]string{"n1": "failed"}, live(&names.GPUNodeStatus, w.AllMetrics()))
		p.wait(5 * time.Minute)
		assert.Empty(t, live(&names.GPUNodeStatus, w.AllMetrics()))
	}, func(cfg *Config) { cfg.Health.Expected = map[string]int{"p5": 2} })
}

// What a restart with another configuration leaves is not raised for ever: a number of
// boards that is not expected any more, and a lost board without the event about it.
func TestHealthThatIsNoLongerJudged(t *testing.T) {
	for name, tt := range map[string]struct {
		before, after func(*Config)
		raised        string
		gone          bool // the board, before the restart
	}{
		"count": {func(cfg *Config) { cfg.Health.Expected = map[string]int{"p5": 2} }, func(*Config) {}, "raised: failed [count] check_mechanics", false},
		"lost":  {func(*Config) {}, func(cfg *Config) { cfg.Events[names.EventDeviceLost]["enabled"] = false }, "raised: failed [lost] reboot_node", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, w := newDisk(), &ward{}
				p := patient{startInto(t, host{diskID: d}, w, deviceSet, withHealth, tt.before, onDisk), t}
				var events []string
				for i := range 25 {
					p.feed(nodeInfo(names.HostType, "p5"))
					gpus := gpusOf(gpuA)
					if tt.gone && i > 3 {
						gpus = nil
					}
					events = append(events, p.see(page{gpus: gpus})...)
				}
				require.Equal(t, []string{tt.raised}, events)
				p.stop()
				p = patient{startInto(t, host{diskID: d}, w, deviceSet, withHealth, tt.after, onDisk), t}
				defer func() { p.stop() }()
				assert.Equal(t, []string{clearedOK}, append(p.see(page{gpus: gpusOf(gpuA)}), p.see(page{gpus: gpusOf(gpuA)})...))
				assert.Equal(t, map[string]string{"n1": "ok"}, live(&names.GPUNodeStatus, w.AllMetrics()))
			})
		})
	}
}

// A node without any board is missed too; one with an exporter that does not answer is not.
func TestWhichBoardsAreCounted(t *testing.T) {
	for name, tt := range map[string]struct {
		pages []page
		want  []string
	}{
		"none at all":               {[]page{{}}, []string{"raised: failed [count] check_mechanics"}},
		"one of two exporters down": {[]page{{gpus: gpusOf(gpuA)}, {port: 9401, down: true}}, nil},
		"frozen":                    {[]page{{gpus: gpusOf(gpuA), frozen: true}}, nil},
		"an instance is no board":   {[]page{{gpus: append(gpusOf(gpuA), gpu{id: gpuA + "/1", parent: gpuA})}}, []string{"raised: failed [count] check_mechanics"}},
		"as many, of two exporters": {[]page{{gpus: gpusOf(gpuA)}, {port: 9401, gpus: gpusOf(gpuB)}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, deviceSet, withHealth, func(cfg *Config) { cfg.Health.Expected = map[string]int{"p5": 2} })
				var got []string
				for range 30 {
					for i := range tt.pages {
						tt.pages[i].at, tt.pages[i].node = time.Now(), "n1"
					}
					got = append(got, healthEvents(b.feed(nodeInfo(names.HostType, "p5")))...)
					got = append(got, healthEvents(b.feed(scrape(tt.pages...)))...)
					got = append(got, healthEvents(b.wait(15*time.Second))...)
				}
				assert.Equal(t, tt.want, got)
			})
		})
	}
}

// A person clears what was wrong before a time, of a node or of one board; a flag that
// still stands is not cleared.
func TestAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet, withHealth)
		see := func(xids int64, flag float64) []string {
			var gpus []gpu
			for _, id := range []string{gpuA, gpuB} {
				gpus = append(gpus, gpu{id: id, values: map[*names.Metric]float64{&names.GPURowRemapPending: flag, &names.GPURowRemapFailure: 0}, xids: map[int64]int64{119: xids}})
			}
			happened := b.feed(scrape(page{at: time.Now(), node: "n1", gpus: gpus}))
			return healthEvents(append(happened, b.wait(15*time.Second)...))
		}
		clear := func(value string) []string { return healthEvents(b.feed(nodeInfo(names.GPUHealthCleared, value))) }
		text := func(at time.Time) string { return at.UTC().Format(time.RFC3339) }
		require.Empty(t, see(0, 0))
		before := text(time.Now().Add(-time.Second))
		both := "raised: failed [xid_reset remap_pending] reset_gpu"
		require.Equal(t, []string{both, both}, see(1, 1))
		assert.Empty(t, clear(before), "it happened later")
		assert.Empty(t, clear(text(time.Now().Add(time.Hour))), "in the future")
		assert.Empty(t, clear("yesterday"))
		pending := "raised: degraded [remap_pending] reset_gpu"
		assert.Equal(t, []string{pending}, clear(gpuB+"="+text(time.Now())), "one board")
		assert.Equal(t, []string{pending}, clear("nonsense, "+text(time.Now())), "the other one too")
		assert.Equal(t, []string{"cleared: ok <nil> none", "cleared: ok <nil> none"}, see(1, 0))
		raised := "raised: failed [xid_reset] reset_gpu"
		assert.Equal(t, []string{raised, raised}, see(2, 0))
		assert.Empty(t, clear(text(time.Now().Add(-time.Minute))))
	})
}

// Without Kubernetes the configuration has what a person acknowledges.
func TestAcknowledgedByTheConfiguration(t *testing.T) {
	for name, tt := range map[string]struct {
		key  string
		ago  time.Duration
		want []string
	}{
		"of a board":        {gpuA, -time.Second, []string{"cleared: ok <nil> none"}},
		"of a node":         {"n1", -time.Second, []string{"cleared: ok <nil> none"}},
		"of another board":  {gpuB, -time.Second, nil},
		"before it":         {gpuA, -time.Minute, nil},
		"not before a time": {gpuA, time.Hour, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDisk()
				b := d.boot(t, deviceSet, withHealth)
				see := func(xids int64) []string {
					happened := b.feed(scrape(page{at: time.Now(), node: "n1", gpus: []gpu{{
						id: gpuA, xids: map[int64]int64{119: xids}, values: map[*names.Metric]float64{&names.GPURowRemapFailure: 0},
					}}}))
					return healthEvents(append(happened, b.wait(15*time.Second)...))
				}
				require.Empty(t, see(0))
				require.NotEmpty(t, see(1))
				b.stop()
				at := time.Now().Add(tt.ago)
				b = d.boot(t, deviceSet, withHealth, func(cfg *Config) { cfg.Health.Cleared = Cleared{tt.key: at} })
				defer func() { b.stop() }()
				assert.Equal(t, tt.want, see(1))
				assert.Empty(t, see(1))
			})
		})
	}
}

// Of many reasons the worst are listed; the others are counted.
func TestReasonsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &ward{}
		b := startInto(t, componenttest.NewNopHost(), w, deviceSet, withHealth, func(cfg *Config) { cfg.Health.MaxReasons = 2 })
		defer b.stop()
		b.feed(scrape(page{at: time.Now(), node: "n1", gpus: []gpu{{id: gpuA, values: map[*names.Metric]float64{
			&names.GPURowRemapFailure: 1, &names.GPURowRemapPending: 1, &names.GPUSRAMExceeded: 1,
		}}}}))
		assert.Equal(t, []string{"raised: failed [remap_failed sram_worn] rma"}, healthEvents(b.wait(5*time.Second)))
		assert.Equal(t, []string{"remap_failed failed 1", "sram_worn failed 1"}, of(&names.GPUHealthReason, w.taken()))
		m, err := b.tel.GetMetric("otelcol_gpu_events_health_reasons_left_out")
		require.NoError(t, err)
		assert.EqualValues(t, 1, m.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
	})
}
