// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// trainer is a service of two pods with two devices each, on a node each. change
// reports what is wrong with devices 2 and 3, those of the second pod.
func trainer(w *world, s svc, change func(g *gpu, i int)) {
	s.cluster, s.namespace, s.name = "c1", "ml", "trainer"
	w.service(s)
	for i := range 4 {
		node, pod := fmt.Sprintf("n%d", i/2), fmt.Sprintf("trainer-%d", i/2)
		g := gpu{tags: device(node, fmt.Sprint(uuid, i), i%2, held("ml", "trainer", pod)), values: busy(0.5)}
		change(&g, i)
		w.gpu(g)
	}
	w.exporter("n0", 1, 0)
	w.exporter("n1", 1, 0)
}

func coverage(devices, of int) *consoleapi.Coverage {
	return &consoleapi.Coverage{Devices: devices, Of: of}
}

// What is known of a part of the devices alone reports it: in the service, its pods,
// their nodes and the fleet alike, and capacity does not go with what is silent.
func TestFiguresOverPartOfTheDevices(t *testing.T) {
	full := svc{pods: pods{reporting: 2}, devices: 4, figures: averages(0.5)}
	for name, test := range map[string]struct {
		summary svc
		change  func(w *world, g *gpu, i int)
		after   func(w *world)
		// of the service and the fleet
		utilization, used *consoleapi.Coverage
		busy, silent      int
		// of the second pod
		pod        *consoleapi.Coverage
		stale      bool
		age        float64
		value      *float64 // its memory
		node       consoleapi.NodeState
		attention  []consoleapi.Attention
		lost, held int
	}{
		"all": {
			summary: full, change: func(*world, *gpu, int) {}, utilization: coverage(4, 4), used: coverage(4, 4), busy: 4,
			pod: coverage(2, 2), value: pointer(80.0 * gib), node: consoleapi.NodeOK, attention: []consoleapi.Attention{}, held: 4,
		},
		"a page with holes": { // the store still remembers what was there two minutes ago
			summary: full,
			change: func(w *world, g *gpu, i int) {
				if i > 1 {
					w.gpu(gpu{tags: g.tags, values: map[string]float64{"used": 40 * gib, "total": 80 * gib, "power": 400}, until: 2 * time.Minute})
					g.values = map[string]float64{"utilization": 0.5}
				}
			},
			utilization: coverage(4, 4), used: coverage(2, 4), busy: 4,
			pod: coverage(0, 2), node: consoleapi.NodeDegraded, attention: []consoleapi.Attention{consoleapi.MissingValues}, held: 4,
		},
		"a page without memory": { // neither has the summary any
			summary: svc{pods: pods{reporting: 2}, devices: 4, figures: map[string]float64{queries.ServiceUtilization: 0.5}},
			change: func(w *world, g *gpu, i int) {
				w.gpu(gpu{tags: g.tags, values: map[string]float64{"used": 40 * gib, "total": 80 * gib, "power": 400}, until: 2 * time.Minute})
				g.values = map[string]float64{"utilization": 0.5}
			},
			utilization: coverage(4, 4), used: coverage(0, 4), busy: 4,
			pod: coverage(0, 2), node: consoleapi.NodeDegraded, attention: []consoleapi.Attention{consoleapi.MissingValues}, held: 4,
		},
		"a lost device": {
			summary: svc{pods: pods{reporting: 1, degraded: 1}, devices: 3, silent: 1, figures: averages(0.5)},
			change: func(_ *world, g *gpu, i int) {
				if i == 3 {
					g.until = 3 * time.Minute
				}
			},
			utilization: coverage(3, 4), used: coverage(3, 4), busy: 3, silent: 1,
			pod: coverage(1, 2), value: pointer(40.0 * gib), node: consoleapi.NodeDegraded, attention: []consoleapi.Attention{consoleapi.LostDevice, consoleapi.DegradedPods}, lost: 1, held: 3,
		},
		"a frozen exporter": {
			summary: full, change: func(*world, *gpu, int) {},
			after: func(w *world) {
				w.write(queries.Frozen, tags{queries.Cluster: "c1", queries.Node: "n1", queries.Address: "10.0.0.1", queries.Port: "9400"}, 20*time.Minute, 0,
					func(i int) float64 { return float64(i / 60) }) // for five minutes
			},
			utilization: coverage(2, 4), used: coverage(2, 4), busy: 2,
			pod: coverage(0, 2), stale: true, age: 300, value: pointer(80.0 * gib), node: consoleapi.NodeExporterFrozen,
			attention: []consoleapi.Attention{consoleapi.FrozenExporter}, held: 4,
		},
		"a missing pod": { // by the summary's word, long before stale_after
			summary: svc{pods: pods{reporting: 1, missing: 1}, devices: 2, silent: 2, ratio: 0.5, partial: 1, figures: averages(0.5), states: map[string]string{"trainer-1": "missing"}},
			change: func(_ *world, g *gpu, i int) {
				if i > 1 {
					g.until = interval
				}
			},
			utilization: coverage(2, 4), used: coverage(2, 4), busy: 2, silent: 2,
			pod: coverage(0, 2), stale: true, age: 15, value: pointer(80.0 * gib), node: consoleapi.NodeOK,
			attention: []consoleapi.Attention{consoleapi.Partial, consoleapi.MissingPods}, held: 4,
		},
		"a device that the averages leave out": {
			summary: svc{pods: pods{reporting: 1, degraded: 1}, devices: 3, silent: 1, figures: averages(0.5)},
			change: func(_ *world, g *gpu, i int) {
				if i == 3 {
					g.until = interval
				}
			},
			utilization: coverage(3, 4), used: coverage(3, 4), busy: 3, silent: 1,
			pod: coverage(1, 2), value: pointer(40.0 * gib), node: consoleapi.NodeOK, attention: []consoleapi.Attention{consoleapi.DegradedPods}, held: 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			trainer(w, test.summary, func(g *gpu, i int) { test.change(w, g, i) })
			if test.after != nil {
				test.after(w)
			}
			c := serveAPI(t, w.store, w.now, nil)
			q := values("cluster", "c1", "namespace", "ml", "service", "trainer")

			s := ok[consoleapi.ServiceAnswer](c, "service", q).Service
			assert.Equal(t, test.utilization, s.Coverage.Utilization)
			assert.Equal(t, test.used, s.Coverage.MemoryUsed)
			assert.Equal(t, 320.0*gib, *s.Totals.MemoryTotal)
			assert.Equal(t, 160.0*gib, *s.Values.MemoryTotal, "of a pod")
			assert.Equal(t, test.busy, *s.Devices.Busy)
			assert.Equal(t, test.silent, *s.Devices.Missing)
			assert.LessOrEqual(t, test.busy+test.silent, *s.Devices.Held)
			assert.Equal(t, test.attention, s.Attention)

			all := ok[consoleapi.ServicesAnswer](c, "services", nil)
			require.Len(t, all.Services, 1)
			assert.Equal(t, test.used, all.Services[0].Coverage.MemoryUsed)
			assert.Nil(t, all.Services[0].Coverage.Tensor)
			assert.Equal(t, test.utilization, all.Summary.Coverage.Utilization)
			assert.Equal(t, test.used, all.Summary.Coverage.Power)
			assert.Equal(t, 320.0*gib, *all.Summary.MemoryTotal)
			assert.Equal(t, test.used.Devices == 0, all.Summary.MemoryUsed == nil, "no data is not zero")
			if test.used.Devices > 0 {
				assert.Equal(t, float64(test.used.Devices)*40*gib, *all.Summary.MemoryUsed)
			}
			assert.Equal(t, test.busy, *all.Summary.DevicesBusy)
			assert.Equal(t, test.lost, *all.Summary.DevicesLost)
			assert.Equal(t, test.held, *all.Summary.DevicesHeld)

			var pod consoleapi.Pod
			for _, one := range ok[consoleapi.PodsAnswer](c, "pods", q).Pods {
				if one.Pod == "trainer-1" {
					pod = one
				}
			}
			assert.Equal(t, test.pod, pod.Coverage.MemoryUsed)
			assert.Equal(t, test.value, pod.Values.MemoryUsed)
			assert.Equal(t, 160.0*gib, *pod.Values.MemoryTotal)
			assert.Equal(t, test.stale, pod.Stale)
			assert.InDelta(t, test.age, *pod.DataAge, 61)
			for _, d := range pod.Devices {
				assert.Equal(t, d.Stale, test.stale || d.ID == fmt.Sprint(uuid, 3) && test.silent == 1, d.ID)
			}
			// A line ends where its exporter froze; another pod's goes on.
			r := ok[consoleapi.RangeAnswer](c, "range", values("cluster", "c1", "namespace", "ml", "service", "trainer", "window", "30m", "by", "pod"))
			of := ok[consoleapi.DeviceRangeAnswer](c, "device_range", values("cluster", "c1", "node", "n1", "window", "30m"))
			for _, s := range append(r.Charts.Utilization.Series, of.Charts.Utilization.Series...) {
				if test.node == consoleapi.NodeExporterFrozen && s.Name != "trainer-0" {
					assert.Nil(t, s.Values[len(s.Values)-1], s.Name)
					assert.NotNil(t, s.Values[len(s.Values)-1-25], s.Name)
				} else if test.silent == 0 {
					assert.NotNil(t, s.Values[len(s.Values)-1], s.Name)
				}
			}
			for _, n := range ok[consoleapi.NodesAnswer](c, "nodes", nil).Nodes {
				if n.Node == "n1" {
					assert.Equal(t, test.node, n.State)
					assert.Equal(t, test.pod, n.Coverage.MemoryUsed)
					assert.Equal(t, 160.0*gib, *n.Values.MemoryTotal)
				}
			}
		})
	}
}

// Services that ended while the summary was down are gone, neither well nor stale,
// once their devices report without them; those that fell silent are not.
func TestServicesThatEndedDuringARestart(t *testing.T) {
	for name, test := range map[string]struct {
		down      time.Duration // ago, when the collector ended
		overdue   bool          // nothing was evaluated since
		devices   bool          // its devices report since
		attention []consoleapi.Attention
		there     bool
	}{
		"just now":                       {down: 30 * time.Second, devices: true},
		"some minutes ago":               {down: 3 * time.Minute, devices: true},
		"and there is no other service":  {down: 3 * time.Minute, overdue: true, devices: true},
		"the next evaluation is not due": {down: 30 * time.Second, overdue: true, devices: true, there: true, attention: []consoleapi.Attention{}},
		"its devices are silent":         {down: 3 * time.Minute, there: true, attention: []consoleapi.Attention{consoleapi.Stale, consoleapi.LostNode}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.service(svc{cluster: "c1", namespace: "ml", name: "ended", pods: pods{reporting: 1}, devices: 1, figures: averages(0.5), until: test.down})
			w.gpu(gpu{tags: device("n", uuid+"0", 0, held("ml", "ended", "ended-0")), values: busy(0.5), until: test.down})
			if test.devices {
				w.gpu(gpu{tags: device("n", uuid+"0", 0, nil), values: busy(0), from: test.down - interval})
			}
			if !test.overdue {
				w.service(svc{cluster: "c1", namespace: "ml", name: "other", pods: pods{reporting: 1}, devices: 1, figures: averages(0.5)})
			}
			c := serveAPI(t, w.store, w.now, nil)
			found := false
			for _, s := range ok[consoleapi.ServicesAnswer](c, "services", nil).Services {
				if s.Service == "ended" {
					found = true
					assert.Equal(t, test.attention, s.Attention)
				}
			}
			assert.Equal(t, test.there, found)
			assert.Equal(t, test.there, c.get("service", values("cluster", "c1", "namespace", "ml", "service", "ended")).status == 200)
		})
	}
}
