// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A pod that ends gives its devices back, and pages no one; one with a device that goes
// silent is missing. What each kind of evidence makes of a pod with two devices, and of
// its neighbour in the service, which goes on.
func TestOwnerLeaves(t *testing.T) {
	const id = "GPU-0"
	end := func(w *world) { // by gpu_pod
		w.read(reading{pod: "a", device: id, ends: true, fields: map[field]float64{utilization: 0}})
	}
	free := func(w *world) { w.util("", id, 0) }
	report := func(pod string, ends bool) func(*world) {
		return func(w *world) { w.allocate(claimed{pod: pod, container: "main", device: id, ends: ends}) }
	}
	for name, tt := range map[string]struct {
		before, after func(w *world) // of every scrape
		state         string         // of the pod; "": it is gone
	}{
		"silent":                               {nil, func(*world) {}, "missing"},
		"ended and silent":                     {nil, end, "missing"},
		"goes on without a pod":                {nil, free, ""},
		"ended, goes on without a pod":         {nil, func(w *world) { end(w); free(w) }, ""},
		"goes on with another pod":             {nil, func(w *world) { w.util("b", id, 0) }, ""},
		"goes on with one pod more":            {nil, func(w *world) { w.util("a", id, 0.5); w.util("b", id, 0.5) }, "reporting"},
		"its GPU goes on, its instance is not": {nil, func(w *world) { w.util("", "GPU", 0) }, "missing"},

		"allocation: holds it, silent":          {report("a", false), report("a", false), "missing"},
		"allocation: holds it, owner unknown":   {report("a", false), func(w *world) { report("a", false)(w); end(w); free(w) }, "missing"},
		"allocation fell silent, owner unknown": {report("a", false), free, "missing"},
		"allocation: free":                      {report("a", false), func(w *world) { w.allocate(claimed{device: id, zero: true}) }, ""},
		"allocation: another pod":               {report("a", false), func(w *world) { report("b", false)(w) }, ""},
		"allocation: taken back":                {report("a", false), report("a", true), ""},
		"allocation: of one container taken back": {func(w *world) {
			report("a", false)(w)
			w.allocate(claimed{pod: "a", container: "side", device: id})
		}, func(w *world) {
			report("a", true)(w)
			w.allocate(claimed{pod: "a", container: "side", device: id})
		}, "missing"},
		"allocation: another pod, not resolved": {nil, func(w *world) { w.allocate(claimed{pod: "b", device: id, unresolved: true}) }, "missing"},
		"allocation: a value that is no share":  {nil, func(w *world) { w.allocate(claimed{pod: "b", device: id, value: 100}) }, "missing"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.pass(2*time.Minute, func() {
				if tt.before != nil {
					tt.before(w)
				}
				w.util("a", id, 0.5)
				w.util("neighbour", "GPU-1", 0.7)
			})
			w.evaluate().state(t, "a", "reporting")
			w.pass(time.Minute, func() { tt.after(w); w.util("neighbour", "GPU-1", 0.7) })
			got := w.evaluate()
			got.state(t, "neighbour", "reporting")
			if tt.state == "" {
				require.True(t, got.ended[podSeries("a", "reporting")], "it is gone")
				got.has(t, map[string]float64{"pods missing": 0, "partial": 0, "missing_ratio": 0, "devices missing": 0})
				return
			}
			got.state(t, "a", tt.state)
		})
	}
}

// Of a pod with several devices those are gone that went on under another identity.
func TestSomeOfADevicesOwnerLeave(t *testing.T) {
	w := newWorld(t)
	w.pass(2*time.Minute, func() { w.util("a", "GPU-0", 0.5); w.util("a", "GPU-1", 0.7); w.util("a", "GPU-2", 0.9) })
	w.pass(time.Minute, func() { w.util("a", "GPU-0", 0.5); w.util("", "GPU-1", 0) }) // and GPU-2 is silent
	got := w.evaluate()
	got.state(t, "a", "degraded")
	got.has(t, map[string]float64{"utilization": 0.5, "devices reporting": 1, "devices missing": 1})
}

// A replica of a shared device has no row without a pod: only gpu.allocation reports that
// its owner left.
func TestOwnerOfAReplicaLeaves(t *testing.T) {
	w := newWorld(t)
	both := func() {
		for pod, id := range map[string]string{"a": "GPU-0::0", "b": "GPU-0::1"} {
			w.allocate(claimed{pod: pod, device: id})
			w.util(pod, id, 0.5)
		}
		w.util("", "GPU-0", 0.5)
	}
	w.pass(2*time.Minute, both)
	w.evaluate().has(t, map[string]float64{"pods reporting": 2})

	w.pass(time.Minute, func() {
		w.allocate(claimed{pod: "a", device: "GPU-0::0", ends: true})
		w.allocate(claimed{pod: "b", device: "GPU-0::1"})
		w.util("b", "GPU-0::1", 0.5)
		w.util("", "GPU-0", 0.5)
	})
	got := w.evaluate()
	require.True(t, got.ended[podSeries("a", "reporting")])
	got.has(t, map[string]float64{"pods reporting": 1, "pods missing": 0, "partial": 0})
}

// What gpu.allocation reports is not forgotten with the telemetry: a silent pod is missing
// for as long as it holds its devices, and holds those that never reported.
func TestSilentPodIsMissingWhileItHoldsItsDevice(t *testing.T) {
	w := newWorld(t)
	w.holds("a", "GPU-0") // comes before what it is about
	w.util("a", "GPU-0", 0.5)
	w.pass(2*time.Minute, func() { w.holds("a", "GPU-0", "GPU-1"); w.util("a", "GPU-0", 0.5) })
	w.evaluate().state(t, "a", "degraded")

	w.pass(time.Hour, func() { w.holds("a", "GPU-0", "GPU-1"); w.evaluate() })
	got := w.evaluate()
	got.state(t, "a", "missing")
	got.has(t, map[string]float64{"pods missing": 1, "partial": 1, "devices missing": 2})

	// The kubelet falls silent too: after allocation_ttl nothing is known of the pod.
	w.pass(5*time.Minute+15*time.Second, func() { w.evaluate() })
	require.NotContains(t, w.evaluate().values, podSeries("a", "missing"))
}

// The order of a scrape's parts does not matter, and nothing of a device that no pod
// has is kept for longer than a late point could come.
func TestOwnersAreForgotten(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxPods = 3 })
	w.util("", "GPU-0", 0.5)
	w.read(reading{pod: "a", device: "GPU-0", at: w.now.Add(-time.Second), fields: map[field]float64{utilization: 0.5}})
	require.Empty(t, w.evaluate().values, "it has left before it was heard of")

	w.util("", "GPU-1", 0.5)
	w.allocate(claimed{device: "GPU-2", zero: true})
	require.Equal(t, 1, w.util("", "GPU-3", 0.5).Refused[LimitPods])
	w.pass(10*time.Minute+15*time.Second, nil)
	w.evaluate()
	require.Empty(t, w.s.devices)
}
