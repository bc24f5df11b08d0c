// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPodsAndServicesAreForgotten(t *testing.T) {
	w := newWorld(t)
	w.pass(5*time.Minute, func() {
		w.util("a", "GPU-a", 0.5)
		w.read(reading{service: "other", pod: "x", device: "GPU-x", fields: map[field]float64{utilization: 0.5}})
	})
	w.evaluate()
	other := func() {
		w.read(reading{service: "other", pod: "x", device: "GPU-x", fields: map[field]float64{utilization: 0.5}})
	}

	w.pass(10*time.Minute, other)
	got := w.evaluate()
	got.state(t, "a", "missing") // seen within service_ttl, to the second
	got.has(t, map[string]float64{"partial": 1, "pods missing": 1})

	w.pass(15*time.Second, other)
	got = w.evaluate() // the pod is gone, the service has none
	require.True(t, got.ended[podSeries("a", "missing")])
	got.has(t, map[string]float64{
		"partial": 0, "pods reporting": 0, "pods degraded": 0, "pods missing": 0, "pods warming": 0, "pods not_running": 0,
		"devices reporting": 0, "devices missing": 0,
	})
	got.lacks(t, "missing_ratio")

	w.pass(10*time.Minute-time.Second, other)
	got = w.evaluate()
	got.has(t, map[string]float64{"partial": 0})
	require.Empty(t, got.ended)

	w.pass(time.Second, other)
	got = w.evaluate()
	for _, name := range []string{
		"partial", "pods reporting", "pods degraded", "pods missing", "pods warming", "pods not_running",
		"devices reporting", "devices missing", "idle_devices",
	} {
		require.True(t, got.ended["shop/api gpu.service."+name], name)
		got.lacks(t, name)
	}
	require.Contains(t, got.values, "shop/other gpu.service.partial", "the neighbour goes on")

	w.pass(15*time.Second, other)
	got = w.evaluate()
	require.Empty(t, got.ended, "an end is said once")
	got.lacks(t, "partial")
	require.Len(t, w.s.services, 1)
	require.Len(t, w.s.pods, 1)
	require.Len(t, w.s.devices, 1)
}

func TestServiceThatComesBackIsNotForgotten(t *testing.T) {
	w := newWorld(t)
	w.pass(2*time.Minute, func() { w.util("a", "GPU-a", 0.5) })
	w.evaluate()
	w.pass(19*time.Minute, func() { w.evaluate() })
	w.util("b", "GPU-b", 0.5)
	w.evaluate().state(t, "b", "warming")
	w.pass(5*time.Minute, func() { w.util("b", "GPU-b", 0.5) })
	w.evaluate().has(t, map[string]float64{"pods reporting": 1})

	// It is empty for the second time, and service_ttl begins again.
	w.pass(10*time.Minute+15*time.Second, func() { w.evaluate() })
	w.evaluate().has(t, map[string]float64{"partial": 0, "pods missing": 0})
	w.pass(10*time.Minute-time.Second, func() { w.evaluate() })
	w.evaluate().has(t, map[string]float64{"partial": 0})
}

func TestDeviceMovesToAnotherPod(t *testing.T) {
	w := newWorld(t)
	w.pass(2*time.Minute, func() { w.util("a", "GPU-0", 0.5); w.util("a", "GPU-1", 0.5) })
	w.evaluate().has(t, map[string]float64{"devices reporting": 2})

	w.pass(15*time.Second, func() { w.util("a", "GPU-0", 0.5); w.util("b", "GPU-1", 0.9) })
	got := w.evaluate()
	got.state(t, "a", "reporting") // of the one device that it holds now
	got.state(t, "b", "warming")
	got.has(t, map[string]float64{"devices reporting": 2, "devices missing": 0})

	// The first device goes too: a pod that holds nothing is not expected.
	w.pass(15*time.Second, func() { w.util("b", "GPU-0", 0.5); w.util("b", "GPU-1", 0.9) })
	got = w.evaluate()
	require.True(t, got.ended[podSeries("a", "reporting")])
	got.has(t, map[string]float64{"pods missing": 0, "pods reporting": 0, "pods warming": 1, "partial": 0})
}

func TestLatePointOfFormerOwnerTakesNothingBack(t *testing.T) {
	w := newWorld(t)
	w.util("a", "GPU-0", 0.5)
	before := w.now
	w.pass(15*time.Second, func() { w.util("b", "GPU-0", 0.9) })
	w.read(reading{pod: "a", device: "GPU-0", at: before.Add(time.Second), fields: map[field]float64{utilization: 0.5}})
	got := w.evaluate()
	got.state(t, "b", "warming")
	got.has(t, map[string]float64{"pods warming": 1})
}

func TestPodsThatShareADeviceBothHoldIt(t *testing.T) {
	w := newWorld(t)
	w.pass(2*time.Minute, func() { w.util("a", "GPU-0", 0.5); w.util("b", "GPU-0", 0.7) })
	w.evaluate().has(t, map[string]float64{"pods reporting": 2, "utilization": 0.6})
}

func TestServiceIsWhatNewestTelemetryReports(t *testing.T) {
	w := newWorld(t)
	w.pass(2*time.Minute, func() { w.util("a", "GPU-0", 0.5) })
	w.evaluate()
	before := w.now

	w.now = w.now.Add(15 * time.Second)
	w.read(reading{service: "web", pod: "a", device: "GPU-0", fields: map[field]float64{utilization: 0.5}})
	// A late point that still has the old name changes nothing.
	w.read(reading{pod: "a", device: "GPU-0", at: before, fields: map[field]float64{utilization: 0.5}})
	got := w.evaluate()
	require.True(t, got.ended[podSeries("a", "reporting")], "the state under the old name ends")
	require.Equal(t, 1., got.values["shop/web/a gpu.pod.state reporting"], "it is the same pod and as old")
	require.Equal(t, 0.5, got.values["shop/web gpu.service.utilization"])
	got.has(t, map[string]float64{"pods reporting": 0, "pods missing": 0})

	// There and back again between two evaluations.
	w.pass(15*time.Second, func() { w.util("a", "GPU-0", 0.5) })
	w.read(reading{service: "web", pod: "a", device: "GPU-0", at: w.now.Add(time.Second), fields: map[field]float64{utilization: 0.5}})
	got = w.evaluate()
	require.Equal(t, 1., got.values["shop/web gpu.service.pods reporting"])
	require.Empty(t, got.ended)
}

func TestNewPodOfTheSameNameStartsAgain(t *testing.T) {
	w := newWorld(t)
	read := func(uid, device string) {
		w.read(reading{pod: "db-0", uid: uid, device: device, fields: map[field]float64{utilization: 0.5}})
	}
	w.pass(2*time.Minute, func() { read("", "GPU-0"); read("uid-1", "GPU-0") }) // learned later: the same pod
	w.evaluate().state(t, "db-0", "reporting")

	old := w.now
	w.pass(15*time.Second, func() { read("uid-2", "GPU-1") })
	got := w.evaluate()
	got.state(t, "db-0", "warming")
	got.has(t, map[string]float64{"devices reporting": 1, "devices missing": 0})

	tl := w.read(reading{pod: "db-0", uid: "uid-1", device: "GPU-0", at: old, fields: map[field]float64{utilization: 0.5}})
	require.Equal(t, 1, tl.Refused[late])
	// gpu_pod ends the old series, at the very time at which the new pod began.
	tl = w.read(reading{pod: "db-0", uid: "uid-9", device: "GPU-0", ends: true, fields: map[field]float64{utilization: 0}})
	require.Equal(t, 1, tl.Refused[late])
	w.pass(2*time.Minute, func() { read("uid-2", "GPU-1") })
	w.evaluate().has(t, map[string]float64{"pods reporting": 1, "devices reporting": 1})
}

// Without a uid the new pod is taken for the old one, until the devices that were
// given back have been silent for service_ttl. A lost device is not given back.
func TestDevicesThatWereGivenBackAreReleased(t *testing.T) {
	for name, tt := range map[string]struct {
		givenBack bool
		state     string
		missing   float64
	}{
		"given back": {true, "reporting", 0},
		"lost":       {false, "degraded", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.pass(2*time.Minute, func() { w.util("db-0", "GPU-0", 0.5) })
			if tt.givenBack {
				w.read(reading{pod: "db-0", device: "GPU-0", at: w.now.Add(time.Second), ends: true, fields: map[field]float64{utilization: 0}})
			}
			next := func() { w.util("db-0", "GPU-1", 0.5) }
			w.pass(10*time.Minute, next)
			got := w.evaluate()
			got.state(t, "db-0", "degraded")
			got.has(t, map[string]float64{"devices missing": 1})
			w.pass(15*time.Second, next)
			got = w.evaluate()
			got.state(t, "db-0", tt.state)
			got.has(t, map[string]float64{"devices reporting": 1, "devices missing": tt.missing})
		})
	}
}

func TestLimits(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxPods, c.MaxServices = 3, 2 })
	require.Equal(t, 1, w.util("a", "GPU-0", 0.5).Accepted)
	other := func(service, pod string) Tally {
		return w.read(reading{service: service, pod: pod, device: "GPU-" + pod, fields: map[field]float64{utilization: 0.5}})
	}
	require.Equal(t, 1, other("s2", "b").Accepted)
	require.Equal(t, 1, other("s3", "c").Refused[limitServices])
	require.Equal(t, 1, other("s3", "a").Refused[limitServices], "a known pod cannot move to a service that there is no room for")
	require.Equal(t, 1, other("s2", "c").Accepted)
	require.Equal(t, 1, other("s2", "d").Refused[LimitPods])
	require.Equal(t, 1, w.util("a", "GPU-0", 0.5).Refused[duplicate], "who is in stays in")

	// Room comes back when the others are forgotten.
	w.pass(21*time.Minute, func() { w.util("a", "GPU-0", 0.5); w.evaluate() })
	require.Equal(t, 1, other("s4", "d").Accepted)

	for i := range maxDevicesPerPod - 1 {
		require.Equal(t, 1, w.util("a", fmt.Sprint("GPU-x", i), 0.5).Accepted)
	}
	require.Equal(t, 1, w.util("a", "GPU-y", 0.5).Refused[limitDevices])
}

func TestClockThatIsSetIsHarmless(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			w := newWorld(t)
			feed := func() {
				w.read(reading{pod: "a", device: "GPU-0", fields: map[field]float64{utilization: 0.01, power: 60}})
			}
			w.read(reading{service: "empty", pod: "x", device: "GPU-x", fields: map[field]float64{utilization: 0.5}})
			w.evaluate()
			w.pass(11*time.Minute, feed)
			w.evaluate() // one service has no pod any more
			w.pass(4*time.Minute, feed)
			w.util("b", "GPU-1", 0.4)
			w.pass(30*time.Second, feed)
			w.evaluate() // it reports which states the pods are not in
			before := w.evaluate()
			require.Contains(t, before.values, "shop/empty gpu.service.partial")
			before.has(t, map[string]float64{"pods reporting": 1, "pods warming": 1, "idle_devices": 1, "partial": 0})

			w.s.Shift(step)
			w.now = w.now.Add(step)
			require.Equal(t, before, w.evaluate(), "what is known keeps its age")

			w.pass(time.Minute, feed)
			w.evaluate().has(t, map[string]float64{"pods reporting": 1, "idle_devices": 1, "data.age": 0})
			for _, h := range w.s.pods[podKey{"", "shop", "a"}].devices {
				if h.id == "GPU-0" {
					require.Equal(t, w.now.UnixNano(), h.times[0], "the interval is that of the newest points")
				}
			}
		})
	}
}
