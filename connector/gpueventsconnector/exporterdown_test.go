// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func TestExporterDownStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStory(start(t, deviceSet))
		on := func(p page) func(time.Time) pmetric.Metrics {
			return func(at time.Time) pmetric.Metrics {
				p.at = at
				if p.node == "" {
					p.node = "n1"
				}
				return scrape(p)
			}
		}
		s.narrate("up, then down for 45 seconds and up again")
		s.every(interval, 2, on(page{}))
		s.every(interval, 4, on(page{down: true}))
		s.every(interval, 1, on(page{}))
		s.narrate("down for a minute")
		s.every(interval, 5, on(page{down: true}))
		s.narrate("its pod is replaced: the new one answers, the old one is asked once more")
		s.every(interval, 1, func(at time.Time) pmetric.Metrics {
			return scrape(page{at: at, node: "n1", address: "10.0.0.2"}, page{at: at, node: "n1", down: true})
		})
		s.every(interval, 5, on(page{address: "10.0.0.2"}))
		s.narrate("frozen")
		s.every(interval, 5, on(page{address: "10.0.0.2", frozen: true}))
		s.narrate("frozen turns into down: one condition, and it is raised")
		s.every(interval, 2, on(page{address: "10.0.0.2", down: true}))
		s.every(interval, 1, on(page{address: "10.0.0.2"}))
		s.narrate("a second exporter on the node is another one")
		s.every(interval, 5, on(page{address: "10.0.0.2", port: 9500, down: true}))
		s.golden("exporter_down")
	})
}

// On a host without Kubernetes the address is the exporter's identity.
func TestExportersWithoutNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet)
		var keys []any
		for range 6 {
			now := time.Now()
			b.feed(scrape(page{at: now, address: "gpu-1", down: true}, page{at: now, address: "gpu-2", down: true}, page{at: now, address: "gpu-3"}))
			for _, e := range b.wait(interval) {
				keys = append(keys, e.attrs[names.GPUEventKey])
			}
		}
		require.ElementsMatch(t, []any{"gpu.exporter.down/c1//gpu-1:9400", "gpu.exporter.down/c1//gpu-2:9400"}, keys)
	})
}

// The end of a duration between two scrapes is reported, as long as the last scrape
// covers the time since.
func TestDurationsEndBetweenScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet)
		down := func() { b.feed(scrape(page{at: time.Now(), node: "n1", down: true})) }
		down()
		require.Empty(t, b.wait(30*time.Second))
		down()
		require.Empty(t, b.wait(31*time.Second))
		events := b.wait(2 * time.Second)
		require.Equal(t, []string{"gpu.exporter.down raised down"}, brief(events))
		require.Equal(t, pcommon.NewTimestampFromTime(time.Now().Add(-3*time.Second)), events[0].record.Timestamp(), "when it was due")
	})
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet)
		b.feed(scrape(page{at: time.Now(), node: "n1", down: true}))
		require.Empty(t, b.wait(time.Hour), "one scrape says nothing about the next minute")
	})
}

func TestDeviceLostStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStory(start(t, deviceSet))
		with := func(gpus ...gpu) func(time.Time) pmetric.Metrics {
			return func(at time.Time) pmetric.Metrics { return scrape(page{at: at, node: "n1", gpus: gpus}) }
		}
		a, b := gpu{id: gpuA, pod: "chat-0"}, gpu{id: gpuB, pod: "chat-1"}
		s.every(interval, 3, with(a, b))
		s.narrate("absent for two scrapes, and while the exporter is down")
		s.every(interval, 2, with(a))
		s.every(interval, 3, func(at time.Time) pmetric.Metrics { return scrape(page{at: at, node: "n1", down: true}) })
		s.every(interval, 1, with(a, b))
		s.narrate("the end of a series is no sign of life")
		s.every(interval, 4, with(a, gpu{id: gpuB, pod: "chat-1", marker: true}))
		s.narrate("it comes back, held by another pod")
		s.every(interval, 2, with(a, gpu{id: gpuB, pod: "chat-9"}))
		s.narrate("its exporter prints it and reads nothing from it; it is not there, then there again, and gives values")
		s.every(interval, 4, with(a, gpu{id: gpuB, pod: "chat-9", blank: true}))
		s.every(interval, 4, with(a))
		s.every(interval, 1, with(a, gpu{id: gpuB, pod: "chat-9", blank: true}))
		s.every(interval, 2, with(a, gpu{id: gpuB, pod: "chat-9"}))
		s.golden("device_lost")
	})
}

// A device of which nothing was ever read, as where names are DCGM's own, is not lost for
// that; nor is one while its node's MIG layout is changed, or that misses a few values.
func TestDeviceWithoutValues(t *testing.T) {
	there, blank := gpu{id: gpuA}, gpu{id: gpuA, blank: true}
	profiled := gpu{id: gpuA, blank: true, values: map[*names.Metric]float64{&names.GPUSMActive: 0.3}}
	for name, tt := range map[string]struct {
		pages []gpu
		mig   bool
		want  []string
	}{
		"never had one":       {slices.Repeat([]gpu{blank}, 8), false, nil},
		"two are missing":     {[]gpu{there, blank, blank, there, blank, blank, there}, false, nil},
		"all are missing":     {append([]gpu{there}, slices.Repeat([]gpu{blank}, 8)...), false, []string{"gpu.device.lost raised"}},
		"profiled alone":      {append([]gpu{there}, slices.Repeat([]gpu{profiled}, 8)...), false, nil},
		"MIG is being set up": {append([]gpu{there}, slices.Repeat([]gpu{blank}, 8)...), true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, deviceSet)
				var got []string
				for _, g := range tt.pages {
					if tt.mig {
						b.feed(nodeReport(time.Now(), "n1", map[*names.Metric]float64{&names.GPUNodeMIGReconfiguring: 1}))
					}
					got = append(got, brief(b.feed(one(g)(time.Now())))...)
					got = append(got, brief(b.wait(interval))...)
				}
				require.Equal(t, tt.want, got)
			})
		})
	}
}

// What is raised stays so across restarts, until there are values.
func TestDeviceWithoutValuesOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		b := d.boot(t, deviceSet)
		run := func(n int, g gpu) (all []string) {
			for range n {
				all = append(all, brief(b.feed(one(g)(time.Now())))...)
				all = append(all, brief(b.wait(interval))...)
			}
			return all
		}
		require.Equal(t, []string{"gpu.device.lost raised"}, append(run(1, gpu{}), run(4, gpu{blank: true})...))
		b.stop()
		b = d.boot(t, deviceSet)
		defer func() { b.stop() }()
		require.Empty(t, run(5, gpu{blank: true}))
		require.Equal(t, []string{"gpu.device.lost cleared"}, run(1, gpu{}))
	})
}

// After a restart a device has the time that it has without one: its exporter may
// have been restarted too.
func TestDeviceWithoutValuesAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		b := d.boot(t, deviceSet)
		b.feed(one(gpu{})(time.Now()))
		b.wait(interval)
		b.feed(one(gpu{})(time.Now()))
		b.stop()
		b = d.boot(t, deviceSet)
		defer func() { b.stop() }()
		var got []string
		for i := range 12 {
			got = append(got, brief(b.feed(one(gpu{blank: true})(time.Now())))...)
			got = append(got, brief(b.wait(5*time.Second))...)
			if i < 6 {
				require.Empty(t, got)
			}
		}
		require.Equal(t, []string{"gpu.device.lost raised"}, got)
	})
}

// instance is a MIG instance of gpuA.
func instance(n string) gpu { return gpu{id: gpuA + "/" + n, parent: gpuA, pod: "mig-" + n} }

func TestMIGLayouts(t *testing.T) {
	whole := gpu{id: gpuA}
	feed := func(b *bench, n int, gpus ...gpu) (all []occurred) {
		for range n {
			all = append(all, b.feed(scrape(page{at: time.Now(), node: "n1", gpus: gpus}))...)
			all = append(all, b.wait(interval)...)
		}
		return all
	}
	t.Run("another layout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, deviceSet)
			full := instance("1")
			full.values = map[*names.Metric]float64{&names.GPUMemoryUtilization: 0.99}
			require.Equal(t, []string{"gpu.memory.pressure raised critical"}, brief(feed(b, 8, whole, full, instance("2"))))
			events := feed(b, 4, whole, instance("3"))
			require.Equal(t, []string{"gpu.memory.pressure cleared"}, brief(events))
			require.Equal(t, "MIG instance 1 of GPU 3 on n1 ("+gpuA+"/1) is no part of its GPU's MIG layout any more, and what was raised about it is over.", events[0].body)
			require.Equal(t, 2, b.c.engine.Subjects()["device"], "what is gone is forgotten")
		})
	})
	t.Run("the GPU goes with its instances", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, deviceSet)
			feed(b, 3, whole, instance("1"), instance("2"), gpu{id: gpuB})
			events := feed(b, 5, gpu{id: gpuB})
			require.Equal(t, []string{"gpu.device.lost raised"}, brief(events), "one event, for the GPU")
			require.Equal(t, gpuA, events[0].resource[names.HwID])
			require.Equal(t, []any{gpuA + "/1", gpuA + "/2"}, events[0].attrs[names.GPUDeviceInstances])
			require.Equal(t, []string{"gpu.device.lost cleared"}, brief(feed(b, 2, whole, gpu{id: gpuB})))
		})
	})
	t.Run("while it is reconfigured", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, deviceSet)
			mig := func(v float64) {
				require.Empty(t, b.feed(nodeReport(time.Now(), "n1", map[*names.Metric]float64{&names.GPUNodeMIGReconfiguring: v})))
			}
			feed(b, 3, whole, gpu{id: gpuB})
			for range 8 {
				mig(1)
				require.Empty(t, feed(b, 1, gpu{id: gpuB}))
			}
			mig(0)
			require.Empty(t, feed(b, 2, gpu{id: gpuB}))
			require.Equal(t, []string{"gpu.device.lost raised"}, brief(feed(b, 1, gpu{id: gpuB})), "three scrapes after that")
		})
	})
}

// nodeReport is what gpu_allocation reports about a node.
func nodeReport(at time.Time, node string, values map[*names.Metric]float64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	event.PutTexts(rm.Resource().Attributes(), names.K8sClusterName, "c1", names.K8sNodeName, node)
	ms := rm.ScopeMetrics().AppendEmpty().Metrics()
	for m, v := range values {
		p := m.Init(ms.AppendEmpty()).AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		p.SetIntValue(int64(v))
	}
	return md
}

// A replica of a shared device comes and goes with its owner.
func TestReplicasAreNoDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet)
		replica := gpu{id: gpuA + "::1", parent: gpuA, pod: "a", values: map[*names.Metric]float64{&names.GPUMemoryUtilization: 1}}
		for _, gpus := range [][]gpu{{{id: gpuA}, replica}, {{id: gpuA}}} {
			for range 10 {
				require.Empty(t, b.feed(scrape(page{at: time.Now(), node: "n1", gpus: gpus})))
				require.Empty(t, b.wait(interval))
			}
		}
	})
}

// An exporter's pod is replaced, as by an upgrade: it does not answer for half a
// minute, and then the next one does, at another address. That is no outage of a
// minute, although the old address never answered again.
func TestAReplacedExporterIsNotDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet)
		feed := func(n int, p page) (got []string) {
			for range n {
				p.at, p.node = time.Now(), "n1"
				got = append(got, brief(b.feed(scrape(p)))...)
				got = append(got, brief(b.wait(interval))...)
			}
			return got
		}
		require.Empty(t, feed(2, page{}))
		require.Empty(t, feed(2, page{down: true}))
		time.Sleep(5 * time.Second)
		require.Empty(t, feed(10, page{address: "10.0.0.2"}))
	})
	// Two exporters at one port of a node: the one that is down stays so while the
	// other answers.
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet)
		var got []string
		for range 10 {
			got = append(got, brief(b.feed(scrape(page{at: time.Now(), node: "n1", down: true})))...)
			got = append(got, brief(b.wait(interval/2))...)
			got = append(got, brief(b.feed(scrape(page{at: time.Now(), node: "n1", address: "10.0.0.2"})))...)
			got = append(got, brief(b.wait(interval/2))...)
		}
		require.Equal(t, []string{"gpu.exporter.down raised down"}, got)
	})
}

// A proxy has the pages of several exporters under one address: each scrape has
// the GPUs of one of them, and none is lost by the others' scrapes. One that is
// missing on its own page is.
func TestSeveralPagesUnderOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		b := d.boot(t, deviceSet)
		defer func() { b.stop() }()
		const pages = 10
		run := func(rounds int, lost int) (got []string) {
			for range rounds {
				for i := range pages {
					p := page{at: time.Now(), address: "proxy", gpus: []gpu{{id: fmt.Sprint("GPU-a-", i)}, {id: fmt.Sprint("GPU-b-", i)}}}
					if i == lost {
						p.gpus = p.gpus[:1]
					}
					got = append(got, brief(b.feed(scrape(p)))...)
					got = append(got, brief(b.wait(interval/pages))...)
				}
			}
			return got
		}
		require.Empty(t, run(4, -1))
		b.stop()
		b = d.boot(t, deviceSet)
		require.Empty(t, run(4, -1), "nor after a restart")
		require.Equal(t, []string{"gpu.device.lost raised"}, run(4, 3))
		require.Equal(t, []string{"gpu.device.lost cleared"}, run(2, -1))
	})
}

// Two exporters at one port of a node, each with GPUs of its own: those of the
// one that is down are not lost because the other answers without them.
func TestTwoExportersOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet)
		run := func(rounds int, down bool) (got []string) {
			for range rounds {
				for _, p := range []page{{gpus: []gpu{{id: gpuA}}}, {address: "10.0.0.2", gpus: []gpu{{id: gpuB}}, down: down}} {
					p.at, p.node = time.Now(), "n1"
					got = append(got, brief(b.feed(scrape(p)))...)
					got = append(got, brief(b.wait(interval/2))...)
				}
			}
			return got
		}
		require.Empty(t, run(3, false))
		require.Equal(t, []string{"gpu.exporter.down raised down"}, run(8, true))
		require.Equal(t, []string{"gpu.exporter.down cleared"}, run(3, false))
	})
}
