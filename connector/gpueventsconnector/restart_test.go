// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/state"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// TestARestartInEveryState: what is raised is not raised a second time, only a point
// that denies it clears it, once, and what was on its way starts again.
func TestARestartInEveryState(t *testing.T) {
	gauge := func(m *names.Metric, v float64) func(time.Time) pmetric.Metrics {
		return one(gpu{values: map[*names.Metric]float64{m: v}})
	}
	f, gone := newFleet("n1", "n2"), newFleet("n1", "n2")
	gone.silent["n2"] = true
	// undecided is an evaluation that the summary cannot decide yet; ended reports
	// that it did know.
	undecided := func(metric *names.Metric, ended bool, of func(time.Time) pmetric.Metrics) func(time.Time) pmetric.Metrics {
		return func(at time.Time) pmetric.Metrics {
			md := of(at)
			md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().RemoveIf(func(m pmetric.Metric) bool {
				if m.Name() != metric.Name {
					return false
				}
				m.Sum().DataPoints().At(0).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
				return !ended
			})
			return md
		}
	}
	well := func(at time.Time) pmetric.Metrics { return data(at, 0, 2) }
	pageOf := func(p page) func(time.Time) pmetric.Metrics {
		return func(at time.Time) pmetric.Metrics { p.at, p.node = at, "n1"; return scrape(p) }
	}
	silent := func(time.Time) pmetric.Metrics { return pmetric.NewMetrics() }
	idle := func(n int64) func(time.Time) pmetric.Metrics {
		return func(at time.Time) pmetric.Metrics {
			return batch(evaluated{service: chat, at: int(at.Unix()), idle: n})
		}
	}
	type makes = func(time.Time) pmetric.Metrics
	for name, tt := range map[string]struct {
		is, over makes
		unknown  []makes // what denies nothing
		first    makes
		scrapes  int // until it is raised
	}{
		names.EventExporterDown: {is: pageOf(page{down: true}), unknown: []makes{silent}, over: pageOf(page{}), scrapes: 5},
		names.EventExporterDown + " frozen": {
			is: pageOf(page{frozen: true}), unknown: []makes{silent, pageOf(page{undecided: true}), pageOf(page{down: true})}, over: pageOf(page{}), scrapes: 5,
		},
		names.EventExporterDown + " unrecognized": {
			is: pageOf(page{unrecognized: true}), unknown: []makes{silent, pageOf(page{down: true})}, over: pageOf(page{gpus: []gpu{{id: gpuA}}}), scrapes: 5,
		},
		names.EventDeviceLost: {
			first: pageOf(page{gpus: []gpu{{id: gpuA}}}), is: pageOf(page{}), over: pageOf(page{gpus: []gpu{{id: gpuA}}}), scrapes: 3,
			unknown: []makes{pageOf(page{down: true}), pageOf(page{gpus: []gpu{{id: gpuA, blank: true}}}), pageOf(page{gpus: []gpu{{id: gpuA, marker: true}}})},
		},
		names.EventRowRemapFailure: {is: gauge(&names.GPURowRemapFailure, 1), unknown: []makes{one(gpu{})}, over: gauge(&names.GPURowRemapFailure, 0), scrapes: 1},
		names.EventThrottle:        {is: one(gpu{throttle: []string{"hw_thermal"}}), unknown: []makes{one(gpu{})}, over: one(gpu{throttle: []string{}}), scrapes: 9},
		names.EventTemperature:     {is: one(gpu{hot: 95}), unknown: []makes{one(gpu{hbm: 40})}, over: one(gpu{hot: 50}), scrapes: 9},
		names.EventMemoryPressure:  {is: gauge(&names.GPUMemoryUtilization, 0.97), unknown: []makes{one(gpu{})}, over: gauge(&names.GPUMemoryUtilization, 0.5), scrapes: 9},
		names.EventNodeLost:        {first: f.received, is: gone.received, over: f.received, scrapes: 7},
		names.EventServicePartial: {
			is: func(at time.Time) pmetric.Metrics { return data(at, 1, 1) }, over: well, scrapes: 1,
			unknown: []makes{silent, undecided(&names.ServicePartial, false, well), undecided(&names.ServicePartial, true, well)},
		},
		names.EventServiceNoData: {
			is: func(at time.Time) pmetric.Metrics { return data(at, 2, 0) }, over: well, scrapes: 1,
			unknown: []makes{silent, undecided(&names.ServicePartial, true, func(at time.Time) pmetric.Metrics { return data(at, 0, 0) })},
		},
		names.EventIdleHeld: {
			is: idle(1), over: idle(0), scrapes: 1,
			unknown: []makes{silent, undecided(&names.ServiceIdleDevices, false, idle(0)), undecided(&names.ServiceIdleDevices, true, idle(0))},
		},
	} {
		event, _, _ := strings.Cut(name, " ")
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDisk()
				both := func(cfg *Config) { cfg.Rules = []RuleSet{RuleSetDevice, RuleSetService} }
				var b *bench
				feed := func(n int, make func(time.Time) pmetric.Metrics) (got []string) {
					var all []occurred
					for range n {
						all = append(all, b.feed(make(time.Now()))...)
						all = append(all, b.wait(interval)...)
					}
					for _, e := range all {
						if e.record.EventName() == event {
							got = append(got, e.state)
						}
					}
					return got
				}
				// Killed: what was stored until then is all there is.
				kill := func() {
					d = &disk{values: maps.Clone(d.values)}
					old := b
					b = d.boot(t, both)
					t.Cleanup(old.stop)
				}
				b = d.boot(t, both)
				defer func() { b.stop() }()
				if tt.first != nil {
					require.Empty(t, feed(2, tt.first))
				}
				if tt.scrapes > 1 {
					require.Empty(t, feed(tt.scrapes-1, tt.is))
					kill()
					if tt.first != nil {
						require.Empty(t, feed(1, tt.first))
					}
					require.Empty(t, feed(tt.scrapes-1, tt.is), "what was on its way begins anew")
				}
				require.Equal(t, []string{"raised"}, feed(2, tt.is))
				kill()
				require.Empty(t, feed(tt.scrapes+1, tt.is), "it is not raised a second time")
				for i, unknown := range tt.unknown {
					require.Empty(t, feed(tt.scrapes+1, unknown), "nothing denies it: %d", i)
					kill()
					require.Empty(t, feed(tt.scrapes+1, unknown), "nor after the restart: %d", i)
				}
				kill()
				over := feed(9, tt.over)
				require.Equal(t, []string{"cleared"}, over, "it is over")
				kill()
				require.Empty(t, feed(9, tt.over), "it is not cleared a second time")
			})
		})
	}
}

// TestARestartKeepsCounters: what happened meanwhile is reported, what was reported is not.
func TestARestartKeepsCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		b := d.boot(t, deviceSet)
		feed := func(g gpu) (got []string) {
			got = brief(b.feed(one(g)(time.Now())))
			return append(got, brief(b.wait(interval))...)
		}
		restart := func() {
			b.stop()
			time.Sleep(time.Minute)
			b = d.boot(t, deviceSet)
		}
		g := func(ecc int64, code float64, xids map[int64]int64) gpu {
			return gpu{ecc: &ecc, xids: xids, values: map[*names.Metric]float64{&names.GPUXIDLast: code}}
		}
		require.Empty(t, feed(g(3, 31, map[int64]int64{31: 2})))
		restart()
		require.Empty(t, feed(g(3, 31, map[int64]int64{31: 2})))
		restart()
		require.Equal(t, []string{"gpu.xid raised 31", "gpu.xid raised 79", "gpu.ecc.uncorrected raised"},
			feed(g(4, 79, map[int64]int64{31: 3, 79: 1})))
		require.Empty(t, feed(g(5, 79, map[int64]int64{31: 4, 79: 1})), "held back")
		restart()
		require.Equal(t, []string{"gpu.xid raised 31", "gpu.ecc.uncorrected raised"}, feed(g(5, 79, map[int64]int64{31: 4, 79: 1})),
			"what was held back is not lost")
		restart()
		require.Equal(t, []string{"gpu.xid raised 48"}, feed(g(0, 48, nil)), "by the last code alone; a reset is no error")
		b.stop()
	})
}

// A state of the version before is read.
func TestVersion1IsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.values[stateKey] = []byte(`{"version":1,"raised":[{"event":"gpu.service.partial","cluster":"c1","namespace":"ml","service":"chat"}]}`)
		b := d.boot(t)
		defer b.stop()
		require.Equal(t, []string{"cleared"}, states(b.feed(batch(evaluated{service: chat, at: 10}))))
	})
}

// A state that an earlier release wrote is read whole, and written as it was.
func TestVersion2IsRead(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "state-version2.json"))
	require.NoError(t, err)
	old, refused, err := state.Decode(text, 100)
	require.NoError(t, err)
	require.Zero(t, refused)
	cfg := createDefaultConfig().(*Config)
	cfg.Rules = []RuleSet{RuleSetDevice, RuleSetService}
	e := newEngine(cfg)
	e.Restore(old, time.Now())
	require.Equal(t, 12, e.Raised())
	again, _, err := state.Encode(e.Save())
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
}

// What became silent while nothing watched is lost.
func TestLostDuringARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		both := func(cfg *Config) { cfg.Rules = []RuleSet{RuleSetDevice, RuleSetService} }
		b := d.boot(t, both)
		f := newFleet("n1", "n2")
		require.Empty(t, f.run(b, 2))
		b.stop()
		b = d.boot(t, both)
		defer func() { b.stop() }()
		f.silent["n2"] = true
		var got []occurred
		run := func(n int) {
			for range n {
				got = append(got, b.feed(f.received(time.Now()))...)
				got = append(got, b.feed(scrape(page{at: time.Now(), node: "n1", gpus: []gpu{{id: "GPU-0-n1"}}}))...)
				got = append(got, b.wait(interval)...)
			}
		}
		run(11)
		require.Empty(t, got, "an agent may take 160 s to connect again")
		run(2)
		require.Equal(t, []string{"gpu.node.lost raised"}, brief(got))
		require.Equal(t, "Node n2 of cluster c1 is lost: nothing was received from it for 3 minutes. It has 2 GPUs and 1 service (ml/chat).", got[0].body)
		require.Equal(t, []any{"GPU-0-n2", "GPU-1-n2"}, got[0].attrs[names.GPUNodeDevices])
		require.Equal(t, []any{"ml/chat"}, got[0].attrs[names.GPUNodeServices])
	})
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		b := d.boot(t, deviceSet)
		two := page{node: "n1", gpus: []gpu{{id: gpuA}, {id: gpuB}}}
		two.at = time.Now()
		b.feed(scrape(two))
		b.stop()
		b = d.boot(t, deviceSet)
		defer b.stop()
		var got []string
		for range 4 {
			time.Sleep(interval)
			got = append(got, brief(b.feed(scrape(page{at: time.Now(), node: "n1", gpus: []gpu{{id: gpuA}}})))...)
			got = append(got, brief(b.wait(2*time.Second))...)
		}
		require.Equal(t, []string{"gpu.device.lost raised"}, got)
	})
}

// The state is written once a second at most.
func TestWritesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		b := d.boot(t)
		defer b.stop()
		for i := range 1000 {
			b.feed(batch(evaluated{service: chat, at: i, partial: float64(i % 2)}))
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		d.mu.Lock()
		defer d.mu.Unlock()
		require.LessOrEqual(t, d.sets, 11)
		require.GreaterOrEqual(t, d.sets, 9)
	})
}

// After a restart agents come back late, and a cluster that was given another
// name does not come back at all: neither is a lost node.
func TestNothingIsLostByARestart(t *testing.T) {
	other := func(md pmetric.Metrics) pmetric.Metrics {
		for _, rm := range md.ResourceMetrics().All() {
			rm.Resource().Attributes().PutStr(names.K8sClusterName, "renamed")
		}
		return md
	}
	for _, tt := range []struct {
		name     string
		silent   int // intervals
		received func(pmetric.Metrics) pmetric.Metrics
	}{
		{"agents wait before they connect again", 11, func(md pmetric.Metrics) pmetric.Metrics { return md }},
		{"the cluster has another name", 1, other},
		{"nobody reaches it", 100, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDisk()
				b := d.boot(t)
				f := newFleet("n1", "n2", "n3")
				require.Empty(t, f.run(b, 2))
				b.stop()
				b = d.boot(t)
				defer func() { b.stop() }()
				require.Empty(t, b.wait(time.Duration(tt.silent)*interval))
				for range 30 {
					if tt.received != nil {
						require.Empty(t, b.feed(tt.received(f.received(time.Now()))))
					}
					require.Empty(t, b.wait(interval))
				}
			})
		})
	}
}

// A node is started again, and the agent and the exporter with it: the exporter
// counts from nothing, and the GPU falls off the bus once more. The count is what
// it was, and so is the last code.
func TestTheSameXIDAfterANodesRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		b := d.boot(t, deviceSet)
		feed := func(start time.Time, xids map[int64]int64) (got []string) {
			g := gpu{xids: xids, since: start}
			if xids != nil {
				g.values = map[*names.Metric]float64{&names.GPUXIDLast: 79}
			}
			got = brief(b.feed(one(g)(time.Now())))
			return append(got, brief(b.wait(interval))...)
		}
		fell := map[int64]int64{79: 1}
		require.Empty(t, feed(time.Time{}, nil))
		require.Equal(t, []string{"gpu.xid raised 79"}, feed(time.Now().Add(-interval), fell))
		// The agent alone: the first page shows the old count, of which it does not
		// know when it began.
		b.stop()
		time.Sleep(time.Hour)
		b = d.boot(t, deviceSet)
		again := time.Now()
		require.Empty(t, feed(again, fell))
		require.Empty(t, feed(again, fell))
		// The node: a page without it comes first.
		b.stop()
		time.Sleep(time.Hour)
		b = d.boot(t, deviceSet)
		defer func() { b.stop() }()
		require.Empty(t, feed(time.Time{}, nil))
		since := time.Now().Add(-interval)
		require.Equal(t, []string{"gpu.xid raised 79"}, feed(since, fell))
		require.Empty(t, feed(since, fell))
	})
}
