// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const gib = 1 << 30

func TestPartialIsStrictlyAboveThreshold(t *testing.T) {
	for _, tt := range []struct {
		missing, settled int
		partial          float64
	}{
		{0, 4, 0},
		{1, 4, 0}, // exactly a quarter
		{1, 3, 1},
		{2, 8, 0}, // exactly a quarter
		{3, 8, 1},
		{1, 2, 1},
		{0, 1, 0},
	} {
		t.Run(fmt.Sprintf("%d of %d", tt.missing, tt.settled), func(t *testing.T) {
			w := newWorld(t)
			feed := func(from int) func() {
				return func() {
					for i := from; i < tt.settled; i++ {
						w.util(fmt.Sprint("pod-", i), fmt.Sprint("GPU-", i), 0.5)
					}
				}
			}
			w.pass(2*time.Minute, feed(0))
			w.pass(time.Minute, feed(tt.missing))
			got := w.evaluate()
			got.has(t, map[string]float64{
				"partial":           tt.partial,
				"missing_ratio":     float64(tt.missing) / float64(tt.settled),
				"pods missing":      float64(tt.missing),
				"pods reporting":    float64(tt.settled - tt.missing),
				"devices missing":   float64(tt.missing),
				"devices reporting": float64(tt.settled - tt.missing),
				"utilization":       0.5, // missing pods are left out, the others still averaged
			})
			for i := range tt.settled {
				want := "reporting"
				if i < tt.missing {
					want = "missing"
				}
				got.state(t, fmt.Sprint("pod-", i), want)
			}
		})
	}
}

func TestThresholdIsConfigurable(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.PartialThreshold = 0.5 })
	w.pass(2*time.Minute, func() { w.util("a", "GPU-a", 0.5); w.util("b", "GPU-b", 0.5) })
	w.pass(time.Minute, func() { w.util("a", "GPU-a", 0.5) })
	w.evaluate().has(t, map[string]float64{"missing_ratio": 0.5, "partial": 0})
}

func TestAllMissingIsPartialWithoutAverages(t *testing.T) {
	w := newWorld(t)
	w.pass(2*time.Minute, func() { w.util("a", "GPU-a", 0.5) })
	w.evaluate().has(t, map[string]float64{"utilization": 0.5, "partial": 0})

	w.pass(time.Minute, nil)
	got := w.evaluate()
	got.has(t, map[string]float64{"partial": 1, "missing_ratio": 1, "pods missing": 1, "devices missing": 1, "devices reporting": 0})
	got.lacks(t, averages...)
	for _, name := range []string{"utilization", "utilization.min", "utilization.max", "utilization.devices", "data.age"} {
		require.True(t, got.ended["shop/api gpu.service."+name], "%s ends: its last value must not be read on", name)
	}
	require.Len(t, got.ended, 5, "nothing else ends")

	w.pass(15*time.Second, nil)
	require.Empty(t, w.evaluate().ended, "an end is said once")

	w.pass(15*time.Second, func() { w.util("a", "GPU-a", 0.7) })
	w.evaluate().has(t, map[string]float64{"utilization": 0.7, "partial": 0})
}

func TestOnlyWarmingIsNotPartialAndHasNoAverages(t *testing.T) {
	w := newWorld(t)
	w.pass(time.Minute, func() { w.util("a", "GPU-a", 0.5) })
	got := w.evaluate()
	got.has(t, map[string]float64{
		"partial": 0, "pods warming": 1, "pods reporting": 0, "pods degraded": 0, "pods missing": 0, "pods not_running": 0,
		"devices reporting": 1, "devices missing": 0, "idle_devices": 0,
	})
	got.lacks(t, averages...)
	got.lacks(t, "missing_ratio") // of no settled pod there is no ratio
	got.state(t, "a", "warming")
}

func TestWarmingPodIsNeverMissing(t *testing.T) {
	w := newWorld(t)
	w.pass(2*time.Minute, func() { w.util("old", "GPU-1", 0.5) })
	w.util("new", "GPU-2", 0.9)
	w.pass(75*time.Second, func() { w.util("old", "GPU-1", 0.5) })
	got := w.evaluate() // the new pod's only point is 75 s old
	got.state(t, "new", "warming")
	got.has(t, map[string]float64{"missing_ratio": 0, "utilization": 0.5, "devices missing": 0, "pods warming": 1})

	w.pass(15*time.Second, func() { w.util("old", "GPU-1", 0.5) })
	got = w.evaluate()
	got.state(t, "new", "missing")
	got.has(t, map[string]float64{"missing_ratio": 0.5, "partial": 1})
}

func TestSettledAfterWarmupAndStaleness(t *testing.T) {
	for _, tt := range []struct {
		name              string
		warmup, staleness time.Duration
		settled           time.Duration
	}{
		{"warmup is longer", 90 * time.Second, 0, 90 * time.Second},
		{"computed staleness is longer", 10 * time.Second, 0, 45 * time.Second},
		{"configured staleness is longer", 90 * time.Second, 2 * time.Minute, 2 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Warmup, c.Staleness = tt.warmup, tt.staleness })
			w.pass(5*time.Minute, nil)
			w.util("a", "GPU-a", 0.5)
			seen := w.now
			w.pass(tt.settled-time.Second, func() { w.util("a", "GPU-a", 0.5) })
			w.evaluate().state(t, "a", "warming")
			w.now = seen.Add(tt.settled)
			w.evaluate().state(t, "a", "reporting")
		})
	}
}

func TestFreshUntilStaleness(t *testing.T) {
	w := newWorld(t)
	w.pass(2*time.Minute, func() { w.util("a", "GPU-a", 0.5) })
	last := w.now
	w.now = last.Add(45 * time.Second)
	got := w.evaluate()
	got.state(t, "a", "reporting")
	got.has(t, map[string]float64{"data.age": 45})
	w.now = last.Add(45*time.Second + 1)
	w.evaluate().state(t, "a", "missing")
}

func TestFreshByItsOwnTimestampNotItsArrival(t *testing.T) {
	w := newWorld(t)
	w.pass(2*time.Minute, func() {
		w.read(reading{pod: "a", device: "GPU-a", at: w.now.Add(-time.Minute), fields: map[field]float64{utilization: 0.5}})
	})
	w.evaluate().state(t, "a", "missing")
}

func TestPodOfEightDevices(t *testing.T) {
	w := newWorld(t)
	w.pass(2*time.Minute, func() {
		for i := range 8 {
			w.read(reading{pod: "big", device: fmt.Sprint("GPU-", i), fields: map[field]float64{
				utilization: float64(i) / 10, memoryUsage: 10 * gib, memoryLimit: 80 * gib, power: 100,
			}})
		}
		w.read(reading{pod: "small", device: "GPU-8", fields: map[field]float64{
			utilization: 0.95, memoryUsage: 20 * gib, memoryLimit: 80 * gib, power: 300,
		}})
	})
	w.evaluate().has(t, map[string]float64{
		"utilization":     (0.35 + 0.95) / 2, // one vote a pod, not one a device
		"utilization.min": 0.35, "utilization.max": 0.95,
		"pod.memory.usage": 50 * gib, "memory.usage": 100 * gib, // 80 and 20
		"pod.memory.limit": 360 * gib, "memory.limit": 720 * gib,
		"pod.power": 550, "power": 1100, // 800 and 300
		"devices reporting": 9, "pods reporting": 2,
	})
}

func TestDegradedPodIsAveragedOverWhatItHas(t *testing.T) {
	w := newWorld(t)
	all := map[field]float64{utilization: 0.8, memoryUsage: 10 * gib, memoryLimit: 80 * gib}
	w.pass(2*time.Minute, func() {
		w.read(reading{pod: "a", device: "GPU-0", fields: all})
		w.read(reading{pod: "a", device: "GPU-1", fields: map[field]float64{utilization: 0.2, memoryUsage: gib, memoryLimit: 40 * gib}})
	})
	w.pass(time.Minute, func() {
		w.read(reading{pod: "a", device: "GPU-0", fields: all})
		// The second device still reports its memory, but not its utilization.
		w.read(reading{pod: "a", device: "GPU-1", fields: map[field]float64{memoryUsage: gib, memoryLimit: 40 * gib}})
	})
	got := w.evaluate()
	got.state(t, "a", "reporting")
	got.has(t, map[string]float64{
		"pods reporting": 1, "partial": 0, "utilization": 0.8, "utilization.devices": 1,
		"memory.usage": 11 * gib, "memory.limit": 120 * gib, "devices reporting": 2, "devices missing": 0,
	})

	w.pass(time.Minute, func() { w.read(reading{pod: "a", device: "GPU-0", fields: all}) })
	got = w.evaluate()
	got.state(t, "a", "degraded")
	got.has(t, map[string]float64{
		"pods degraded": 1, "pods reporting": 0, "pods missing": 0, "missing_ratio": 0, "partial": 0,
		"utilization": 0.8, "memory.usage": 10 * gib, "memory.limit": 80 * gib,
		"devices reporting": 1, "devices missing": 1,
	})
}

func TestEachFieldOverThePodsThatHaveIt(t *testing.T) {
	w := newWorld(t)
	w.pass(2*time.Minute, func() {
		w.read(reading{pod: "h100", device: "GPU-0", fields: map[field]float64{
			utilization: 0.9, fp16Active: 0.6, fp32Active: 0.1, tensorActive: 0.4, smActive: 0.7, dramActive: 0.5, power: 600,
		}})
		w.read(reading{pod: "mig", device: "GPU-1/7", fields: map[field]float64{ // no power: that is the board's
			utilization: 0.5, fp16Active: 0.2, tensorActive: 0.2,
		}})
		w.read(reading{pod: "t4", device: "GPU-2", fields: map[field]float64{utilization: 0.1, power: 60}}) // no profiling
	})
	got := w.evaluate()
	got.has(t, map[string]float64{
		"utilization": 0.5, "pipe.active fp16": 0.4, "pipe.active tensor": 0.3, "pipe.active fp32": 0.1,
		"sm.active": 0.7, "dram.active": 0.5, "pod.power": 330, "power": 660,
	})
	got.lacks(t, "memory.usage", "pod.memory.usage", "memory.limit", "pod.memory.limit")
}

func TestStaleFieldOfFreshDeviceIsLeftOut(t *testing.T) {
	w := newWorld(t)
	w.pass(2*time.Minute, func() {
		w.read(reading{pod: "a", device: "GPU-0", fields: map[field]float64{utilization: 0.5, power: 300}})
	})
	w.pass(time.Minute, func() { w.util("a", "GPU-0", 0.5) })
	got := w.evaluate()
	got.has(t, map[string]float64{"utilization": 0.5, "data.age": 0})
	got.lacks(t, "power", "pod.power")
}

func TestStartGate(t *testing.T) {
	for name, staleness := range map[string]time.Duration{"computed": 0, "configured": 2 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Staleness = staleness })
			gate := max(staleness, 45*time.Second)
			// Points kept while the Collector was down: the pod has long been there.
			w.read(reading{pod: "a", device: "GPU-a", at: t0.Add(-5 * time.Minute), fields: map[field]float64{utilization: 0}})
			w.pass(gate-time.Second, func() { w.util("b", "GPU-b", 0.5) })
			got := w.evaluate()
			got.lacks(t, averages...)
			got.lacks(t, "partial", "missing_ratio", "idle_devices")
			got.has(t, map[string]float64{"pods warming": 2, "pods missing": 0, "pods reporting": 0})
			w.now = t0.Add(gate)
			require.Contains(t, w.evaluate().values, "shop/api gpu.service.partial")
		})
	}
}

func TestStateLeftIsZeroOnce(t *testing.T) {
	w := newWorld(t)
	w.pass(60*time.Second, func() { w.util("a", "GPU-a", 0.5) })
	got := w.evaluate()
	got.state(t, "a", "warming")
	for _, other := range []string{"reporting", "degraded", "missing", "not_running"} {
		v, reported := got.values[podSeries("a", other)]
		require.True(t, reported && v == 0, "it may have been %s before the start", other)
	}
	require.NotContains(t, w.evaluate().values, podSeries("a", "reporting"), "once is enough")

	w.pass(time.Minute, func() { w.util("a", "GPU-a", 0.5) })
	got = w.evaluate()
	require.Equal(t, 1., got.values[podSeries("a", "reporting")])
	require.Equal(t, 0., got.values[podSeries("a", "warming")])

	w.pass(15*time.Second, func() { w.util("a", "GPU-a", 0.5) })
	got = w.evaluate()
	require.Equal(t, 1., got.values[podSeries("a", "reporting")])
	require.NotContains(t, got.values, podSeries("a", "warming"), "once is enough")
}

func TestClustersAndNamespacesAreApart(t *testing.T) {
	w := newWorld(t)
	w.pass(2*time.Minute, func() {
		for i, r := range []reading{{cluster: "east"}, {cluster: "west"}, {namespace: "test"}, {}} {
			// The same names throughout; in one cluster the devices differ.
			r.pod, r.device = "a", fmt.Sprint("GPU-", i)
			r.fields = map[field]float64{utilization: float64(i) / 10}
			w.read(r)
		}
	})
	got := w.evaluate()
	for i, key := range []string{"east:shop/api", "west:shop/api", "test/api", "shop/api"} {
		require.Equal(t, float64(i)/10, got.values[key+" gpu.service.utilization"], key)
	}
}

func TestIdleDevices(t *testing.T) {
	busyUntil := 5 * time.Minute
	for _, tt := range []struct {
		name   string
		change func(*Config)
		idle   func(w *world) // from busyUntil on, 15m to go
		want   float64
	}{
		{"below the threshold for idle_for", nil, func(w *world) {
			w.pass(15*time.Minute, func() { w.util("a", "GPU-0", 0.049) })
		}, 1},
		{"not yet", nil, func(w *world) {
			w.pass(15*time.Minute-time.Second, func() { w.util("a", "GPU-0", 0) })
		}, 0},
		{"at the threshold is not below", nil, func(w *world) {
			w.pass(20*time.Minute, func() { w.util("a", "GPU-0", 0.05) })
		}, 0},
		{"one busy point starts it anew", nil, func(w *world) {
			w.pass(10*time.Minute, func() { w.util("a", "GPU-0", 0) })
			w.util("a", "GPU-0", 0.5)
			w.pass(10*time.Minute, func() { w.util("a", "GPU-0", 0) })
		}, 0},
		{"time without data is not idle time", nil, func(w *world) {
			w.pass(10*time.Minute, func() { w.util("a", "GPU-0", 0) })
			w.pass(2*time.Minute, func() { w.evaluate() })
			w.pass(10*time.Minute, func() { w.util("a", "GPU-0", 0) })
		}, 0},
		{"a device without data is not idle", nil, func(w *world) {
			w.pass(16*time.Minute, func() { w.util("a", "GPU-0", 0) })
			w.pass(time.Minute, func() { w.util("a", "GPU-1", 0.5) })
		}, 0},
		{"configured", func(c *Config) { c.IdleFor, c.IdleThreshold = time.Minute, 0.3 }, func(w *world) {
			w.pass(time.Minute, func() { w.util("a", "GPU-0", 0.29) })
		}, 1},
		{"threshold 0 finds nothing idle", func(c *Config) { c.IdleThreshold = 0 }, func(w *world) {
			w.pass(20*time.Minute, func() { w.util("a", "GPU-0", 0) })
		}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) {
				if tt.change != nil {
					tt.change(c)
				}
			})
			w.pass(busyUntil, func() { w.util("a", "GPU-0", 0.5); w.util("a", "GPU-1", 0.5) })
			tt.idle(w)
			w.util("a", "GPU-1", 0.5)
			w.evaluate().has(t, map[string]float64{"idle_devices": tt.want})
		})
	}
}

// A device that does nothing since the start may have been idle before.
func TestIdleForStartsAgainWithTheProcess(t *testing.T) {
	w := newWorld(t)
	w.read(reading{pod: "a", device: "GPU-0", at: t0.Add(-9 * time.Minute), fields: map[field]float64{utilization: 0}})
	w.pass(15*time.Minute-time.Second, func() { w.util("a", "GPU-0", 0) })
	w.evaluate().lacks(t, "idle_devices")
	w.now = t0.Add(15 * time.Minute)
	w.evaluate().has(t, map[string]float64{"idle_devices": 1})
	w.util("a", "GPU-0", 0.5)
	w.evaluate().has(t, map[string]float64{"idle_devices": 0})
}

func TestIdleNeedsASettledPod(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.IdleFor = 30 * time.Second })
	w.pass(time.Minute, func() { w.util("a", "GPU-0", 0) })
	w.evaluate().has(t, map[string]float64{"idle_devices": 0, "pods warming": 1})
	w.pass(time.Minute, func() { w.util("a", "GPU-0", 0) })
	w.evaluate().has(t, map[string]float64{"idle_devices": 1})
}
