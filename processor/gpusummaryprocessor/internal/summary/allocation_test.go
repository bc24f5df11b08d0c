// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func fromAllocation(c *Config) { c.Expected = Allocation }

func fromKubernetes(c *Config) { c.Expected = Kubernetes }

// claimed is what gpu.allocation reports of one device of one pod.
type claimed struct {
	namespace, service, pod, uid, container string
	device                                  string
	unresolved                              bool
	value                                   float64 // 0: 1; NaN is written as it is
	zero, ends                              bool
	at                                      time.Time
	unit                                    string
}

// allocate takes one point of gpu.allocation in, of service shop/api and of this
// moment where it does not report otherwise.
func (w *world) allocate(c claimed) Tally {
	if c.namespace == "" {
		c.namespace = "shop"
	}
	if c.service == "" {
		c.service = "api"
	}
	if c.at.IsZero() {
		c.at = w.now
	}
	return w.s.Observe(c.batch(), w.now)
}

// batch is a batch of this one point.
func (c claimed) batch() pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	attrs := rm.Resource().Attributes()
	putNotEmpty(attrs, names.K8sNamespaceName, c.namespace)
	putNotEmpty(attrs, names.ServiceName, c.service)
	putNotEmpty(attrs, names.K8sPodName, c.pod)
	putNotEmpty(attrs, names.K8sPodUID, c.uid)
	putNotEmpty(attrs, names.K8sContainerName, c.container)
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	dp := names.GPUAllocation.Init(m).AppendEmpty()
	if c.unit != "" {
		m.SetUnit(c.unit)
	}
	putNotEmpty(dp.Attributes(), names.HwID, c.device)
	dp.Attributes().PutBool(names.GPUAllocationResolved, !c.unresolved)
	dp.SetTimestamp(pcommon.NewTimestampFromTime(c.at))
	if c.value == 0 && !c.zero {
		c.value = 1
	}
	dp.SetDoubleValue(c.value)
	if c.ends {
		dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	}
	md.MarkReadOnly()
	return md
}

// holds announces devices of a pod by their own ids.
func (w *world) holds(pod string, devices ...string) {
	for _, d := range devices {
		w.allocate(claimed{pod: pod, device: d})
	}
}

func TestAnnouncedPodThatNeverReportsIsMissing(t *testing.T) {
	w := newWorld(t, fromAllocation)
	both := func() { w.holds("a", "GPU-0"); w.holds("b", "GPU-1"); w.util("a", "GPU-0", 0.5) }
	w.pass(2*time.Minute, both)
	got := w.evaluate()
	got.state(t, "a", "reporting")
	got.state(t, "b", "missing")
	got.has(t, map[string]float64{"missing_ratio": 0.5, "partial": 1, "utilization": 0.5, "devices reporting": 1, "devices missing": 1})
	got.lacks(t, "pods.pending") // no allocation reports what no node has accepted
}

// With Allocation settled means announced for at least warmup.
func TestAnnouncedForWarmupIsSettled(t *testing.T) {
	w := newWorld(t, fromAllocation, func(c *Config) { c.Staleness = 2 * time.Minute })
	w.pass(5*time.Minute, nil)
	w.holds("a", "GPU-0")
	began := w.now
	w.pass(90*time.Second-1, func() { w.holds("a", "GPU-0") })
	w.evaluate().state(t, "a", "warming")
	w.now = began.Add(90 * time.Second)
	w.evaluate().state(t, "a", "missing")
}

func TestAnnouncedWithinAllocationTTLIsExpected(t *testing.T) {
	w := newWorld(t, fromAllocation)
	w.pass(2*time.Minute, func() { w.holds("a", "GPU-0") })
	last := w.now
	w.now = last.Add(5 * time.Minute)
	w.evaluate().state(t, "a", "missing")
	w.now = last.Add(5*time.Minute + 1)
	got := w.evaluate()
	require.True(t, got.ended[podSeries("a", "missing")])
	got.has(t, map[string]float64{"pods missing": 0, "partial": 0})

	// Announced again it is young.
	w.now = w.now.Add(time.Minute)
	w.holds("a", "GPU-0")
	w.evaluate().state(t, "a", "warming")
}

func TestAnnouncementThatEndsIsOverAtOnce(t *testing.T) {
	for name, end := range map[string]claimed{
		"NoRecordedValue": {ends: true}, "NaN": {value: math.NaN()}, "0": {zero: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fromAllocation)
			w.pass(2*time.Minute, func() { w.holds("a", "GPU-0") })
			before := w.now
			w.evaluate().state(t, "a", "missing")
			w.now = w.now.Add(time.Second)
			end.pod, end.device = "a", "GPU-0"
			require.Equal(t, 1, w.allocate(end).Accepted)
			require.True(t, w.evaluate().ended[podSeries("a", "missing")])
			// A point that comes late does not bring it back.
			require.Equal(t, 1, w.allocate(claimed{pod: "a", device: "GPU-0", at: before.Add(1)}).Refused[late])
			require.NotContains(t, w.evaluate().values, podSeries("a", "warming"))
		})
	}
}

func TestDeviceOfTwoContainersIsHeldUntilBothEnd(t *testing.T) {
	w := newWorld(t, fromAllocation)
	w.pass(2*time.Minute, func() {
		w.allocate(claimed{pod: "a", container: "x", device: "GPU-0"})
		w.allocate(claimed{pod: "a", container: "y", device: "GPU-0"})
	})
	w.evaluate().has(t, map[string]float64{"devices missing": 1}) // one device
	w.now = w.now.Add(time.Second)
	w.allocate(claimed{pod: "a", container: "x", device: "GPU-0", ends: true})
	w.evaluate().state(t, "a", "missing")
	w.allocate(claimed{pod: "a", container: "y", device: "GPU-0", ends: true})
	require.True(t, w.evaluate().ended[podSeries("a", "missing")])
}

// What a pod holds, and what of it reports.
func TestHeldDevices(t *testing.T) {
	type reported struct {
		hold       []string // by id
		unresolved []string
		asked      int // by the Kubernetes API
		telemetry  []string
	}
	for name, tt := range map[string]struct {
		reported
		state              string
		reporting, missing float64
	}{
		"every id":                        {reported{hold: []string{"GPU-0", "GPU-1"}, telemetry: []string{"GPU-0", "GPU-1"}}, "reporting", 2, 0},
		"one of two ids":                  {reported{hold: []string{"GPU-0", "GPU-1"}, telemetry: []string{"GPU-1"}}, "degraded", 1, 1},
		"another id":                      {reported{hold: []string{"GPU-0"}, telemetry: []string{"GPU-7"}}, "missing", 0, 1},
		"counts":                          {reported{unresolved: []string{"n/MIG-a", "n/MIG-b"}, telemetry: []string{"GPU-0/1", "GPU-0/2"}}, "reporting", 2, 0},
		"counts, one short":               {reported{unresolved: []string{"n/MIG-a", "n/MIG-b"}, telemetry: []string{"GPU-0/1"}}, "degraded", 1, 1},
		"counts, none":                    {reported{unresolved: []string{"n/MIG-a", "n/MIG-b"}}, "missing", 0, 2},
		"counts, more than it holds":      {reported{unresolved: []string{"n/MIG-a"}, telemetry: []string{"GPU-0/1", "GPU-0/2"}}, "reporting", 1, 0},
		"ids and counts":                  {reported{hold: []string{"GPU-0"}, unresolved: []string{"n/MIG-a"}, telemetry: []string{"GPU-0", "GPU-1/1"}}, "reporting", 2, 0},
		"an id is counted once":           {reported{hold: []string{"GPU-0"}, unresolved: []string{"n/MIG-a"}, telemetry: []string{"GPU-0"}}, "degraded", 1, 1},
		"asked for, before allocation":    {reported{asked: 2, telemetry: []string{"GPU-0", "GPU-1"}}, "reporting", 2, 0},
		"asked for, one short":            {reported{asked: 2, telemetry: []string{"GPU-0"}}, "degraded", 1, 1},
		"asked for, and announced":        {reported{asked: 2, hold: []string{"GPU-0", "GPU-1"}, telemetry: []string{"GPU-0", "GPU-1"}}, "reporting", 2, 0},
		"asked for, announced by half":    {reported{asked: 2, hold: []string{"GPU-0"}, telemetry: []string{"GPU-0"}}, "degraded", 1, 1},
		"announced more than asked for":   {reported{asked: 1, hold: []string{"GPU-0", "GPU-1"}, telemetry: []string{"GPU-0", "GPU-1"}}, "reporting", 2, 0},
		"replicas of their own":           {reported{hold: []string{"GPU-0::0", "GPU-1::3"}, telemetry: []string{"GPU-0::0", "GPU-1::3"}}, "reporting", 2, 0},
		"a replica has its device's":      {reported{hold: []string{"GPU-0::0", "GPU-0::1"}, telemetry: []string{"GPU-0"}}, "reporting", 2, 0},
		"a replica and an unrelated one":  {reported{hold: []string{"GPU-0::0"}, asked: 2, telemetry: []string{"GPU-0"}}, "degraded", 1, 1},
		"a replica of a silent device":    {reported{hold: []string{"GPU-0::0"}, telemetry: []string{"GPU-1"}}, "missing", 0, 1},
		"a MIG instance and its parent":   {reported{hold: []string{"GPU-0/7"}, telemetry: []string{"GPU-0"}}, "missing", 0, 1},
		"partitions of a board":           {reported{hold: []string{"GPU-c3ff88426fc31c9e/0", "GPU-c3ff88426fc31c9e/7"}, telemetry: []string{"GPU-c3ff88426fc31c9e/0", "GPU-c3ff88426fc31c9e/7"}}, "reporting", 2, 0},
		"one of two partitions":           {reported{hold: []string{"GPU-c3ff88426fc31c9e/0", "GPU-c3ff88426fc31c9e/7"}, telemetry: []string{"GPU-c3ff88426fc31c9e/7", "GPU-c3ff88426fc31c9e"}}, "degraded", 1, 1},
		"partitions without ids":          {reported{unresolved: []string{"n/amdgpu_xcp_3", "n/amdgpu_xcp_9"}, telemetry: []string{"GPU-c3ff88426fc31c9e/1", "GPU-c3ff88426fc31c9e/2"}}, "reporting", 2, 0},
		"a share of an Intel GPU":         {reported{hold: []string{"PCI-n@0000:4d:00.0::2"}, telemetry: []string{"PCI-n@0000:4d:00.0"}}, "reporting", 1, 0},
		"devices of three vendors":        {reported{hold: []string{"GPU-0", "GAUDI-AN1", "PCI-n@0000:4d:00.0"}, telemetry: []string{"PCI-n@0000:4d:00.0", "GPU-0", "GAUDI-AN1"}}, "reporting", 3, 0},
		"a MIG instance and its replicas": {reported{hold: []string{"GPU-0/7::0"}, telemetry: []string{"GPU-0/7"}}, "reporting", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fromKubernetes)
			pods := &Pods{}
			if tt.asked > 0 {
				pods.List = []Pod{running("a", t0.Add(-time.Hour))}
				pods.List[0].Devices = tt.asked
			}
			w.s.SetPods(pods, w.now)
			w.pass(2*time.Minute, func() {
				w.holds("a", tt.hold...)
				for _, d := range tt.unresolved {
					w.allocate(claimed{pod: "a", device: d, unresolved: true})
				}
				for _, d := range tt.telemetry {
					w.util("a", d, 0.5)
				}
			})
			got := w.evaluate()
			got.state(t, "a", tt.state)
			got.has(t, map[string]float64{"devices reporting": tt.reporting, "devices missing": tt.missing})
		})
	}
}

func TestValueIsOverTheDevicesHeld(t *testing.T) {
	w := newWorld(t, fromAllocation)
	report := func(device string, u float64) {
		w.read(reading{pod: "a", device: device, fields: map[field]float64{utilization: u, memoryUsage: gib}})
	}
	w.pass(2*time.Minute, func() { w.holds("a", "GPU-0"); report("GPU-0", 0.2); report("GPU-9", 0.8) })
	w.evaluate().has(t, map[string]float64{"utilization": 0.2, "memory.usage": gib})

	// By count, the newest are taken, and the first ids of those that are as new.
	w = newWorld(t, fromAllocation)
	w.pass(2*time.Minute, func() {
		w.allocate(claimed{pod: "a", device: "n/MIG-a", unresolved: true})
		report("GPU-0/1", 0.8)
		w.now = w.now.Add(time.Second)
		report("GPU-0/3", 0.4)
		report("GPU-0/2", 0.2)
	})
	w.evaluate().has(t, map[string]float64{"utilization": 0.2, "memory.usage": gib, "devices reporting": 1})

	// A replica that has no series of its own has its device's ratios, not its memory.
	w = newWorld(t, fromAllocation)
	w.pass(2*time.Minute, func() { w.holds("a", "GPU-0::0"); report("GPU-0", 0.8) })
	got := w.evaluate()
	got.has(t, map[string]float64{"utilization": 0.8})
	got.lacks(t, "memory.usage")
}

func TestPodThatNoOneExpectsBelongsToNothing(t *testing.T) {
	w := newWorld(t, fromAllocation)
	w.pass(2*time.Minute, func() { w.holds("a", "GPU-0"); w.util("a", "GPU-0", 0.5); w.util("ghost", "GPU-1", 1) })
	got := w.evaluate()
	got.has(t, map[string]float64{"utilization": 0.5, "utilization.max": 0.5, "pods reporting": 1, "devices reporting": 1})
	require.Equal(t, 1, w.s.Expected())

	alone := newWorld(t, fromAllocation)
	alone.pass(2*time.Minute, func() { alone.util("ghost", "GPU-1", 1) })
	require.Empty(t, alone.evaluate().values)
	alone.pass(11*time.Minute, func() { alone.evaluate() })
	pods, services := alone.s.Tracked()
	require.Equal(t, []int{0, 0}, []int{pods, services})
}

func TestAllocationIsNotReadWithSeen(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, Tally{}, w.allocate(claimed{pod: "a", device: "GPU-0"}))
	require.Empty(t, w.s.pods)
}

func TestServiceIsWhatNewestAllocationReportsToo(t *testing.T) {
	w := newWorld(t, fromAllocation)
	w.pass(2*time.Minute, func() { w.holds("a", "GPU-0"); w.util("a", "GPU-0", 0.5) })
	w.evaluate()
	w.now = w.now.Add(time.Second)
	w.allocate(claimed{service: "web", pod: "a", device: "GPU-0"})
	got := w.evaluate()
	require.True(t, got.ended[podSeries("a", "reporting")])
	require.Equal(t, 1., got.values["shop/web/a gpu.pod.state reporting"])
}

func TestAllocationPointsThatAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		c    claimed
		want Reason
	}{
		"a share":                   {claimed{value: 0.25}, accepted},
		"as old as allocation_ttl":  {claimed{at: t0.Add(-5 * time.Minute)}, accepted},
		"older than allocation_ttl": {claimed{at: t0.Add(-5*time.Minute - 1)}, tooOld},
		"negative":                  {claimed{value: -1}, outOfRange},
		"more than a device":        {claimed{value: 2}, outOfRange},
		"percent":                   {claimed{unit: "%"}, wrongUnit},
		"no device":                 {claimed{device: "-"}, noDevice},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fromAllocation)
			tt.c.pod = "a"
			if tt.c.device == "" {
				tt.c.device = "GPU-0"
			} else {
				tt.c.device = ""
			}
			got := w.allocate(tt.c)
			if tt.want == accepted {
				require.Equal(t, 1, got.Accepted)
			} else {
				require.Equal(t, 1, got.Refused[tt.want])
				require.Empty(t, w.s.pods)
			}
		})
	}
}

func TestLimitsHoldForAllocations(t *testing.T) {
	w := newWorld(t, fromAllocation, func(c *Config) { c.MaxPods = 1 })
	for i := range maxDevicesPerPod {
		require.Equal(t, 1, w.allocate(claimed{pod: "a", device: fmt.Sprint("GPU-", i)}).Accepted)
	}
	require.Equal(t, 1, w.allocate(claimed{pod: "a", device: "GPU-x"}).Refused[limitDevices])
	require.Equal(t, 1, w.allocate(claimed{pod: "b", device: "GPU-y"}).Refused[LimitPods])
	for i := range maxContainers {
		w.allocate(claimed{pod: "a", device: "GPU-0", container: fmt.Sprint(i)})
	}
	require.Equal(t, 1, w.allocate(claimed{pod: "a", device: "GPU-0", container: "z"}).Refused[limitDevices])
}

// Where announcements bear the uid, those of the pod before it end with it.
func TestAnnouncementsOfTheNextPodOfTheSameName(t *testing.T) {
	for name, tt := range map[string]struct {
		uid, next      string
		state          string
		devicesMissing float64
	}{
		"with uid":    {"uid-1", "uid-2", "warming", 0},
		"without uid": {"", "", "degraded", 1}, // until gpu_pod ends the series, or allocation_ttl
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fromAllocation)
			w.pass(2*time.Minute, func() {
				w.allocate(claimed{pod: "db-0", uid: tt.uid, device: "GPU-0"})
				w.read(reading{pod: "db-0", uid: "uid-1", device: "GPU-0", fields: map[field]float64{utilization: 0.5}})
			})
			w.pass(15*time.Second, func() {
				w.allocate(claimed{pod: "db-0", uid: tt.next, device: "GPU-1"})
				w.read(reading{pod: "db-0", uid: "uid-2", device: "GPU-1", fields: map[field]float64{utilization: 0.5}})
			})
			got := w.evaluate()
			got.state(t, "db-0", tt.state)
			got.has(t, map[string]float64{"devices reporting": 1, "devices missing": tt.devicesMissing})
		})
	}
}
