// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// running is a pod of service shop/api with one device, up since then.
func running(name string, since time.Time) Pod {
	return Pod{
		Namespace: "shop", Name: name, Node: "node-1", Service: "api",
		Running: true, Up: true, Started: since, LastRun: -1, Devices: 1,
	}
}

// inCluster is a world at t0 plus an hour, with pods known since t0.
func inCluster(t *testing.T, pods ...Pod) *world {
	w := newWorld(t, fromKubernetes)
	w.s.SetPods(&Pods{List: pods}, w.now)
	w.now = t0.Add(time.Hour)
	return w
}

func TestStateThatTheClusterReports(t *testing.T) {
	const s = time.Second
	now := t0.Add(time.Hour)
	for name, tt := range map[string]struct {
		change  func(p *Pod)
		state   string
		pending float64
	}{
		"settled":                     {func(p *Pod) {}, "missing", 0},
		"started warmup ago":          {func(p *Pod) { p.Started = now.Add(-90 * s) }, "missing", 0},
		"started a moment later":      {func(p *Pod) { p.Started = now.Add(-90*s + 1) }, "warming", 0},
		"starts in the future":        {func(p *Pod) { p.Started = now.Add(5 * s) }, "warming", 0},
		"being deleted":               {func(p *Pod) { p.Deleted = true }, "not_running", 0},
		"no node has accepted it":     {func(p *Pod) { p.Running, p.Up, p.Node, p.Started = false, false, "", time.Time{} }, "not_running", 1},
		"image pull":                  {func(p *Pod) { p.Running, p.Up, p.Started = false, false, time.Time{} }, "not_running", 0},
		"back-off":                    {func(p *Pod) { p.Up = false }, "not_running", 0},
		"completed":                   {func(p *Pod) { p.Running, p.Up = false, false }, "not_running", 0},
		"crashes again and again":     {func(p *Pod) { p.Started, p.LastRun = now.Add(-60*s), 10*s }, "not_running", 0},
		"the run before was as long":  {func(p *Pod) { p.Started, p.LastRun = now.Add(-60*s), 90*s }, "warming", 0},
		"crashed again, but got over": {func(p *Pod) { p.Started, p.LastRun = now.Add(-90*s), 10*s }, "missing", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := running("a", t0)
			tt.change(&p)
			got := inCluster(t, p).evaluate()
			got.state(t, "a", tt.state)
			missing := 0.
			if tt.state == "missing" {
				missing = 1
				got.has(t, map[string]float64{"missing_ratio": 1})
			} else {
				got.lacks(t, "missing_ratio")
			}
			got.has(t, map[string]float64{
				"pods.pending": tt.pending, "pods missing": missing, "pods " + tt.state: 1, "partial": missing, "devices missing": missing,
			})
			got.lacks(t, averages...)
		})
	}
}

// A gateway that was away for minutes: the agent of a has come back, that of b has
// not, and that of c never will.
func TestReconnectGrace(t *testing.T) {
	w := newWorld(t, fromKubernetes, func(c *Config) { c.ReconnectGrace = 150 * time.Second })
	old := t0.Add(-time.Hour)
	w.s.SetPods(&Pods{List: []Pod{running("a", old), running("b", old), running("c", old)}}, w.now)
	w.now = t0.Add(60 * time.Second) // the gate is open
	w.allocate(claimed{pod: "a", device: "GPU-a"})
	got := w.evaluate()
	got.state(t, "a", "missing") // its agent reported that it owns a device, without telemetry
	got.state(t, "b", "warming")
	got.has(t, map[string]float64{"pods warming": 2, "pods missing": 1})
	got.lacks(t, "missing_ratio", "partial", "devices missing") // the others may report

	w.now = t0.Add(150*time.Second - 1)
	w.allocate(claimed{pod: "b", device: "GPU-b"})
	got = w.evaluate()
	got.state(t, "b", "missing")
	got.state(t, "c", "warming")
	w.now = t0.Add(150 * time.Second)
	got = w.evaluate()
	got.state(t, "c", "missing")
	got.has(t, map[string]float64{"missing_ratio": 1, "partial": 1})
}

// settled needs max(warmup, staleness).
func TestStalenessDelaysSettling(t *testing.T) {
	w := newWorld(t, fromKubernetes, func(c *Config) { c.Staleness = 2 * time.Minute })
	now := t0.Add(time.Hour)
	w.s.SetPods(&Pods{List: []Pod{running("a", now.Add(-2*time.Minute)), running("b", now.Add(-2*time.Minute+1))}}, w.now)
	w.now = now
	got := w.evaluate()
	got.state(t, "a", "missing")
	got.state(t, "b", "warming")
}

// Nothing is known until one staleness has passed with the source in sync.
func TestStartGateWaitsForTheCluster(t *testing.T) {
	w := newWorld(t, fromKubernetes)
	feed := func() { w.holds("a", "GPU-0"); w.util("a", "GPU-0", 0.5) }
	w.pass(10*time.Minute, feed)
	got := w.evaluate() // announced alone: the cluster has not answered yet
	got.state(t, "a", "warming")
	got.lacks(t, "partial", "missing_ratio", "pods.pending")
	got.lacks(t, averages...)

	w.s.SetPods(&Pods{List: []Pod{running("a", t0.Add(-time.Hour)), running("b", t0.Add(-time.Hour))}}, w.now)
	w.pass(45*time.Second-1, feed)
	got = w.evaluate()
	got.lacks(t, "partial", "missing_ratio")
	got.state(t, "b", "warming")
	w.now = w.now.Add(1)
	got = w.evaluate()
	got.has(t, map[string]float64{"partial": 1, "missing_ratio": 0.5, "utilization": 0.5})
	got.state(t, "a", "reporting")
	got.state(t, "b", "missing")
}

// A gateway that is killed and started again raises and clears nothing.
func TestRestartReportsNothingFalse(t *testing.T) {
	for name, silent := range map[string]bool{"all report": false, "half is missing": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fromKubernetes)
			w.s.SetPods(&Pods{List: []Pod{running("a", t0.Add(-time.Hour)), running("b", t0.Add(-time.Hour))}}, w.now)
			w.pass(10*time.Minute, func() {
				w.util("a", "GPU-0", 0.5)
				if !silent {
					w.util("b", "GPU-1", 0.5)
				}
				want := 0.
				if silent {
					want = 1
				}
				if v, reported := w.evaluate().values["shop/api gpu.service.partial"]; reported {
					require.Equal(t, want, v)
				}
			})
			require.Contains(t, w.evaluate().values, "shop/api gpu.service.partial")
		})
	}
}

func TestUnionOfClusterAndAllocation(t *testing.T) {
	w := inCluster(t, running("a", t0))
	w.pass(2*time.Minute, func() {
		w.util("a", "GPU-0", 0.5)
		w.holds("elsewhere", "GPU-1") // in a namespace that is not read
	})
	got := w.evaluate()
	got.state(t, "a", "reporting")
	got.state(t, "elsewhere", "missing")

	// A pod that the cluster had and has no longer is gone, whatever was announced before.
	w.s.SetPods(&Pods{List: []Pod{running("a", t0), running("b", t0)}}, w.now)
	w.holds("b", "GPU-2")
	w.evaluate().state(t, "b", "missing")
	w.now = w.now.Add(time.Second)
	w.s.SetPods(&Pods{List: []Pod{running("a", t0)}}, w.now)
	require.True(t, w.evaluate().ended[podSeries("b", "missing")])
	w.now = w.now.Add(time.Second)
	w.holds("b", "GPU-2") // but the kubelet still has it
	w.evaluate().state(t, "b", "warming")
}

func TestServiceOfAPodThatWasNeverSeen(t *testing.T) {
	p := running("a", t0)
	w := inCluster(t, p)
	w.evaluate().state(t, "a", "missing")
	p.Service = "computed"
	w.s.SetPods(&Pods{List: []Pod{p}}, w.now)
	require.Equal(t, 1., w.evaluate().values["shop/computed/a gpu.pod.state missing"])

	w.util("a", "GPU-0", 0.5) // telemetry reports api
	w.evaluate().state(t, "a", "reporting")
	p.Service = "other"
	w.s.SetPods(&Pods{List: []Pod{p}}, w.now)
	w.evaluate().state(t, "a", "reporting")
}

// A StatefulSet makes a pod of the same name.
func TestNextPodOfTheSameName(t *testing.T) {
	p := running("db-0", t0)
	p.UID = "uid-1"
	w := inCluster(t, p)
	w.pass(2*time.Minute, func() { w.util("db-0", "GPU-0", 0.5) })
	w.evaluate().state(t, "db-0", "reporting")

	p.UID, p.Started = "uid-2", w.now
	w.s.SetPods(&Pods{List: []Pod{p}}, w.now)
	got := w.evaluate()
	got.state(t, "db-0", "warming")
	got.has(t, map[string]float64{"devices reporting": 0}) // nothing of its predecessor's
	old := reading{pod: "db-0", uid: "uid-1", device: "GPU-0", fields: map[field]float64{utilization: 0.5}}
	old.at = w.now.Add(-time.Second)
	require.Equal(t, 1, w.read(old).Refused[late])

	w.pass(2*time.Minute, func() {
		w.read(reading{pod: "db-0", uid: "uid-2", device: "GPU-1", fields: map[field]float64{utilization: 0.5}})
	})
	w.evaluate().state(t, "db-0", "reporting")

	// Telemetry may know the next one first. What the cluster reports is of another pod then.
	w.now = w.now.Add(time.Second)
	w.read(reading{pod: "db-0", uid: "uid-3", device: "GPU-1", fields: map[field]float64{utilization: 0.5}})
	require.True(t, w.evaluate().ended[podSeries("db-0", "reporting")])
	w.s.SetPods(&Pods{List: []Pod{p, running("x", t0)}}, w.now) // it still reports it
	require.NotContains(t, w.evaluate().values, podSeries("db-0", "reporting"))
	p.UID = "uid-3"
	w.s.SetPods(&Pods{List: []Pod{p}}, w.now)
	w.evaluate().state(t, "db-0", "reporting")
}

func TestSameNamesInOtherNamespacesAndClusters(t *testing.T) {
	w := newWorld(t, fromKubernetes)
	other := running("a", t0)
	other.Namespace = "test"
	w.s.SetPods(&Pods{Cluster: "east", List: []Pod{running("a", t0), other}}, w.now)
	w.now = t0.Add(time.Hour)
	w.read(reading{cluster: "east", pod: "a", device: "GPU-0", fields: map[field]float64{utilization: 0.5}})
	w.read(reading{cluster: "west", pod: "a", device: "GPU-0", fields: map[field]float64{utilization: 0.9}})
	got := w.evaluate()
	require.Equal(t, 0.5, got.values["east:shop/api gpu.service.utilization"])
	require.Equal(t, 1., got.values["east:test/api gpu.service.pods missing"])
	require.NotContains(t, got.values, "west:shop/api gpu.service.utilization", "of another cluster nothing is known")
}

func TestPodsOfTheClusterAreLimited(t *testing.T) {
	w := newWorld(t, fromKubernetes, func(c *Config) { c.MaxPods, c.MaxServices = 3, 2 })
	b := running("b", t0)
	b.Service = "s2"
	c := running("c", t0)
	c.Service = "s3"
	pods := &Pods{List: []Pod{running("a", t0), b, c, running("d", t0), running("e", t0)}}
	got := w.s.SetPods(pods, w.now)
	require.True(t, got.Any())
	require.Equal(t, 1, got.Refused[limitServices])
	require.Equal(t, 1, got.Refused[LimitPods])
	require.Equal(t, "e", got.Examples[LimitPods].Pod)
	w.now = t0.Add(time.Hour)
	require.Equal(t, 2., w.evaluate().values["shop/api gpu.service.pods missing"])

	// Room comes with the next that go, once nothing can announce them any more.
	pods = &Pods{List: []Pod{running("d", t0), running("e", t0)}}
	w.s.SetPods(pods, w.now)
	w.now = w.now.Add(5*time.Minute + 1)
	w.evaluate()
	got = w.s.SetPods(pods, w.now)
	require.False(t, got.Any())
}

func TestAsManyPodsAsThereMayBeAndOneMore(t *testing.T) {
	w := newWorld(t, fromKubernetes)
	pods := &Pods{}
	for i := range w.s.cfg.MaxPods + 1 {
		p := running(fmt.Sprint("pod-", i), t0)
		p.Service = fmt.Sprint("svc-", i/100)
		pods.List = append(pods.List, p)
	}
	got := w.s.SetPods(pods, w.now)
	require.Equal(t, 1, got.Refused[LimitPods])
	require.Equal(t, "pod-200000", got.Examples[LimitPods].Pod)
	n, _ := w.s.Tracked()
	require.Equal(t, 200_000, n)
	w.now = t0.Add(time.Hour)
	w.s.Evaluate(w.now)
	require.Equal(t, 200_000, w.s.Expected())
}

func TestClockThatIsSetChangesNoState(t *testing.T) {
	w := inCluster(t, running("a", t0.Add(-time.Hour*2)), running("b", t0.Add(-time.Hour*2)))
	w.pass(2*time.Minute, func() { w.holds("a", "GPU-0"); w.util("a", "GPU-0", 0.01); w.holds("c", "GPU-3") })
	w.evaluate() // it reports which states the pods are not in
	before := w.evaluate()
	before.has(t, map[string]float64{"pods reporting": 1, "pods missing": 2})
	w.s.Shift(-time.Hour)
	w.now = w.now.Add(-time.Hour)
	require.Equal(t, before, w.evaluate())
}

// Pods that come and go leave nothing behind.
func TestNothingIsKeptOfPodsThatAreGone(t *testing.T) {
	w := newWorld(t, fromKubernetes)
	for i := range 200 {
		w.now = w.now.Add(15 * time.Second)
		name := fmt.Sprint("job-", i)
		p := running(name, w.now)
		p.Service = fmt.Sprint("svc-", i)
		w.s.SetPods(&Pods{List: []Pod{p}}, w.now)
		w.allocate(claimed{service: p.Service, pod: name, device: "GPU-0"})
		w.read(reading{service: p.Service, pod: name, device: "GPU-0", fields: map[field]float64{utilization: 0.5}})
		w.evaluate()
	}
	w.s.SetPods(&Pods{}, w.now)
	w.pass(22*time.Minute, func() { w.evaluate() })
	pods, services := w.s.Tracked()
	require.Equal(t, []int{0, 0}, []int{pods, services})
	require.Empty(t, w.s.devices)
}

// An announcement that comes late, of a pod that is gone, does not bring it back.
func TestLateAnnouncementOfAPodThatIsGone(t *testing.T) {
	w := inCluster(t, running("a", t0))
	before := w.now
	w.now = w.now.Add(time.Second)
	w.s.SetPods(&Pods{}, w.now)
	gone := w.now
	w.now = w.now.Add(15 * time.Second)
	w.evaluate()
	w.allocate(claimed{pod: "a", device: "GPU-0", at: before})
	w.allocate(claimed{pod: "a", device: "GPU-0", at: gone})
	require.NotContains(t, w.evaluate().values, podSeries("a", "warming"))

	w.allocate(claimed{pod: "a", device: "GPU-0", at: gone.Add(1)})
	w.evaluate().state(t, "a", "warming")
}

// The time without announcements is no part of "announced for at least warmup".
func TestAnnouncedAgainWarmsUpAgain(t *testing.T) {
	w := newWorld(t, fromAllocation)
	w.pass(10*time.Minute, func() { w.holds("a", "GPU-0") })
	w.evaluate().state(t, "a", "missing")
	w.pass(6*time.Minute, func() { w.evaluate() })
	w.now = w.now.Add(14 * time.Second) // the last evaluation was before
	w.holds("a", "GPU-0")
	w.pass(90*time.Second-1, nil)
	w.evaluate().state(t, "a", "warming")
	w.now = w.now.Add(1)
	w.evaluate().state(t, "a", "missing")
}

// A new pod of the same name that was never seen has the service that is computed
// from it, not its predecessor's.
func TestServiceOfTheNextPodThatWasNeverSeen(t *testing.T) {
	first := running("db-0", t0)
	first.UID = "uid-1"
	w := inCluster(t, first)
	w.read(reading{service: "old", pod: "db-0", uid: "uid-1", device: "GPU-0", fields: map[field]float64{utilization: 0.5}})
	require.Contains(t, w.evaluate().values, "shop/old/db-0 gpu.pod.state reporting")

	next := first
	next.UID = "uid-2"
	w.s.SetPods(&Pods{List: []Pod{next}}, w.now.Add(time.Second))
	w.now = w.now.Add(time.Second)
	got := w.evaluate()
	require.True(t, got.ended["shop/old/db-0 gpu.pod.state reporting"])
	require.Equal(t, 1., got.values["shop/api/db-0 gpu.pod.state missing"])
}
