// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The values of an exporter that is frozen are none of now: they are in no average, and
// the pods are degraded, and not missing.
func TestFrozenExporter(t *testing.T) {
	frozen := func(w *world, node string, value float64) {
		w.s.Observe(stillAt(w.now, node, value), w.now)
	}
	for name, tt := range map[string]struct {
		node    string // of the exporter; the pods' is n1
		value   float64
		without bool // the device names no node
		state   string
	}{
		"frozen":              {"n1", 1, false, "degraded"},
		"no node is known":    {"", 1, true, "degraded"},
		"the exporter's only": {"n1", 1, true, "degraded"},
		"the device's only":   {"", 1, false, "degraded"},
		"another node's":      {"n2", 1, false, "reporting"},
		"not frozen":          {"n1", 0, false, "reporting"},
	} {
		for source, cfg := range map[string]func(*Config){"seen": func(*Config) {}, "allocation": fromAllocation} {
			t.Run(name+"/"+source, func(t *testing.T) {
				w := newWorld(t, cfg)
				page := func(values map[string]float64) {
					for pod, v := range values {
						device := "GPU-" + pod
						node := map[bool]string{false: "n1"}[tt.without]
						w.holds(pod, device)
						w.read(reading{node: node, pod: pod, device: device, fields: map[field]float64{utilization: v, power: 100}})
					}
				}
				all := map[string]float64{"a": 0.5, "b": 0.7}
				w.pass(2*time.Minute, func() { page(all) })
				w.evaluate().has(t, map[string]float64{"utilization": 0.6})

				w.pass(15*time.Second, func() { page(map[string]float64{"a": 0.5}); frozen(w, tt.node, tt.value) })
				w.now = w.now.Add(time.Nanosecond)
				page(map[string]float64{"b": 0.9}) // of another exporter
				got := w.evaluate()
				got.state(t, "a", tt.state)
				got.state(t, "b", "reporting")
				if tt.state == "reporting" {
					return
				}
				got.has(t, map[string]float64{
					"utilization": 0.9, "power": 100, "pods degraded": 1, "pods missing": 0, "partial": 0,
					"devices reporting": 1, "devices missing": 1,
				})

				// All of it is frozen: there is nothing to average, and nothing is missing.
				w.pass(15*time.Second, func() { page(all); frozen(w, tt.node, tt.value) })
				w.evaluate()
				before := w.evaluate()
				before.lacks(t, averages...)
				before.has(t, map[string]float64{"pods degraded": 2, "missing_ratio": 0, "partial": 0})

				w.s.Shift(time.Hour)
				w.now = w.now.Add(time.Hour)
				again := w.evaluate()
				require.Equal(t, before.values, again.values, "the clock was set")

				w.pass(15*time.Second, func() { page(all) })
				w.evaluate().has(t, map[string]float64{"utilization": 0.6, "pods reporting": 2, "devices missing": 0})
				w.pass(time.Hour, func() { page(all) })
				w.evaluate()
				require.Empty(t, w.s.frozen)
			})
		}
	}
}

// A frozen device among others that it is only counted with.
func TestFrozenDeviceThatIsCounted(t *testing.T) {
	for name, tt := range map[string]struct {
		devices map[string]float64
		state   string
	}{
		"alone":          {map[string]float64{"GPU-0": 0.5}, "degraded"},
		"beside another": {map[string]float64{"GPU-0": 0.5, "GPU-1": 0.5}, "degraded"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fromAllocation)
			feed := func() {
				for id := range tt.devices {
					w.allocate(claimed{pod: "a", device: "n1/" + id, unresolved: true})
					w.util("a", id, 0.5)
				}
				w.s.Observe(stillAt(w.now, "", 1), w.now)
			}
			w.pass(2*time.Minute, feed)
			got := w.evaluate()
			got.state(t, "a", tt.state)
			got.lacks(t, averages...)
		})
	}
}
