// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// t0 is a restart: c and d of four pods have been silent for an hour, and the GPU of a
// has been idle for as long. Neither is taken back, and then both are reported.
func TestAStartTakesNothingBack(t *testing.T) {
	pods := []string{"a", "b", "c", "d"}
	old := t0.Add(-time.Hour)
	before := newWorld(t) // of which the next one knows
	before.s.start = old.UnixNano()
	before.now = old
	before.pass(10*time.Minute, func() {
		for _, p := range pods {
			before.util(p, "GPU-"+p, 0.5)
		}
	})
	var seen []SeenPod
	for _, p := range before.s.Seen() {
		p.Last = t0.Add(-9 * time.Minute).UnixNano()
		seen = append(seen, p)
	}
	announce := func(w *world, now time.Duration) {
		for i, p := range pods {
			if now >= time.Duration(i)*40*time.Second { // agents come back one after the other
				w.holds(p, "GPU-"+p)
			}
		}
	}
	for name, tt := range map[string]struct {
		source  func(*Config)
		begin   func(*world)
		feed    func(*world, time.Duration)
		partial time.Duration // when it is known at last
	}{
		"allocation": {fromAllocation, nil, announce, 210 * time.Second},
		"kubernetes": {fromKubernetes, func(w *world) {
			list := &Pods{}
			for _, p := range pods {
				list.List = append(list.List, running(p, old))
			}
			w.s.SetPods(list, w.now)
		}, announce, 120 * time.Second},
		"kubernetes, of another cluster": {fromKubernetes, func(w *world) { w.s.SetPods(&Pods{}, w.now) }, announce, 210 * time.Second},
		"seen, with storage":             {nil, func(w *world) { w.s.Restore(seen) }, nil, 150 * time.Second},
		"seen, without":                  {nil, func(w *world) { w.s.restored = false }, nil, math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) {
				c.ReconnectGrace = 150 * time.Second
				if tt.source != nil {
					tt.source(c)
				}
			})
			if tt.begin != nil {
				tt.begin(w)
			}
			idle := false
			w.pass(20*time.Minute, func() {
				since := w.now.Sub(t0)
				if tt.feed != nil {
					tt.feed(w, since)
				}
				w.util("a", "GPU-a", 0)
				w.util("b", "GPU-b", 0.5)
				got := w.evaluate()
				if v, reported := got.values["shop/api gpu.service.partial"]; since < min(tt.partial, 10*time.Minute) {
					require.False(t, reported, "at %s it is %v", since, v)
					got.lacks(t, "missing_ratio")
				} else if tt.partial != math.MaxInt64 && since < 10*time.Minute {
					got.has(t, map[string]float64{"partial": 1, "missing_ratio": 0.5, "pods missing": 2, "devices missing": 2})
				}
				if n, reported := got.values["shop/api gpu.service.idle_devices"]; reported {
					require.Equal(t, 1., n, "at %s", since)
					idle = true
				}
			})
			require.True(t, idle)
		})
	}
}

// Without storage, telemetry alone does not report whether pods were silent before the
// start; what falls silent after it is known, and so is its end.
func TestPartialSinceTheStartIsAFact(t *testing.T) {
	w := newWorld(t)
	w.s.restored = false
	both := func() { w.util("a", "GPU-a", 0.5); w.util("b", "GPU-b", 0.5) }
	w.pass(2*time.Minute, both)
	w.evaluate().lacks(t, "partial")
	w.pass(time.Minute, func() { w.util("a", "GPU-a", 0.5) })
	w.evaluate().has(t, map[string]float64{"partial": 1, "missing_ratio": 0.5})
	both()
	w.evaluate().has(t, map[string]float64{"partial": 0, "missing_ratio": 0})
}

// A pod that was known before the start and holds its device no more is gone, not missing.
func TestAPodThatLeftDuringTheRestartIsGone(t *testing.T) {
	w := newWorld(t)
	last := t0.Add(-time.Minute).UnixNano()
	require.Zero(t, w.s.Restore([]SeenPod{
		{Namespace: "shop", Service: "api", Name: "a", First: last, Last: last, Devices: []SeenDevice{{"GPU-a", last}}},
		{Namespace: "shop", Service: "api", Name: "b", First: last, Last: last, Devices: []SeenDevice{{"GPU-b", last}, {"", last}}},
		{Namespace: "shop", Service: "api", Name: "b", First: last, Last: last}, {Name: "no namespace"},
	}))
	w.pass(2*time.Minute, func() { w.util("next", "GPU-a", 0.5) })
	got := w.evaluate()
	got.state(t, "b", "missing")
	require.NotContains(t, got.values, podSeries("a", "missing"))
	w.pass(11*time.Minute, func() { w.util("next", "GPU-a", 0.5) })
	require.Contains(t, w.evaluate().ended, podSeries("b", "missing"), "after service_ttl")
}

func TestRestoredPodsAreLimited(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxPods = 1 })
	last := t0.UnixNano()
	require.Equal(t, 1, w.s.Restore([]SeenPod{
		{Namespace: "shop", Service: "api", Name: "a", First: last, Last: last}, {Namespace: "shop", Service: "api", Name: "b", First: last, Last: last},
	}))
}

// A node of which nothing came is named, and its pods are missing: that no agent runs
// there may be a mistake.
func TestSilentNodesAreNamed(t *testing.T) {
	w := newWorld(t, fromKubernetes, func(c *Config) { c.ReconnectGrace = 150 * time.Second })
	pods := &Pods{}
	for pod, node := range map[string]string{"a": "gpu-1", "b": "virtual", "c": "virtual", "d": "gpu-2", "e": ""} {
		p := running(pod, t0.Add(-time.Hour))
		p.Node, p.Running = node, node != ""
		pods.List = append(pods.List, p)
	}
	w.s.SetPods(pods, w.now)
	w.pass(time.Minute, func() {
		w.read(reading{pod: "a", device: "GPU-a", node: "gpu-1", fields: map[field]float64{utilization: 0.5}})
		w.s.Observe(stillAt(w.now, "gpu-2", 0), w.now) // an agent runs there
	})
	require.Empty(t, w.s.Evaluate(w.now).SilentNodes, "agents may still come back")
	w.now = t0.Add(150 * time.Second)
	e := w.s.Evaluate(w.now)
	require.Equal(t, []string{"virtual"}, e.SilentNodes)
	got := flatten(t, e.Metrics(""), w.now)
	got.state(t, "b", "missing")
	got.has(t, map[string]float64{"partial": 1})
}

// What was not running for a while knows as much as after a start: that nothing arrived meanwhile
// makes no pod missing, and what stays silent is missing once all agents had the time to be back.
func TestAPauseMakesNoPodMissing(t *testing.T) {
	pods := []string{"a", "b", "c", "d"}
	for name, source := range map[string]func(*Config){"seen": func(*Config) {}, "allocation": fromAllocation, "kubernetes": fromKubernetes} {
		for course, silentBefore := range map[string]bool{"all report": false, "two are missing": true} {
			t.Run(name+"/"+course, func(t *testing.T) {
				w := newWorld(t, source, func(c *Config) { c.ReconnectGrace = 150 * time.Second })
				if name == "kubernetes" {
					list := &Pods{}
					for _, p := range pods {
						list.List = append(list.List, running(p, t0.Add(-time.Hour)))
					}
					w.s.SetPods(list, w.now)
				}
				announce := func(pods ...string) {
					for _, p := range pods {
						w.holds(p, "GPU-"+p)
					}
				}
				report := func(pods ...string) {
					for _, p := range pods {
						w.util(p, "GPU-"+p, 0.5)
					}
				}
				w.pass(5*time.Minute, func() { announce(pods...); report(pods...); w.evaluate() })
				w.evaluate().has(t, map[string]float64{"partial": 0, "pods reporting": 4})
				if silentBefore {
					w.pass(2*time.Minute, func() { announce(pods...); report("a", "b"); w.evaluate() })
					w.evaluate().has(t, map[string]float64{"partial": 1, "pods missing": 2})
				}

				w.now = w.now.Add(75 * time.Second)
				w.s.Resume(w.now)
				got := w.evaluate()
				got.has(t, map[string]float64{"pods missing": 0, "pods warming": 4})
				got.lacks(t, "partial", "missing_ratio", "devices missing")
				require.True(t, got.ended["shop/api gpu.service.partial"])
				began := w.now
				w.pass(4*time.Minute, func() { // one agent after the other comes back
					since := w.now.Sub(began)
					announce("a")
					report("a")
					if since >= 140*time.Second {
						announce(pods...)
						report("b")
					}
					got := w.evaluate()
					if since < 150*time.Second {
						got.has(t, map[string]float64{"pods missing": 0})
						require.NotEqual(t, 1., got.values["shop/api gpu.service.partial"], "after %s", since)
					}
				})
				w.evaluate().has(t, map[string]float64{"partial": 1, "pods missing": 2, "pods reporting": 2})
				report(pods...)
				w.evaluate().has(t, map[string]float64{"partial": 0, "missing_ratio": 0})
			})
		}
	}
}
