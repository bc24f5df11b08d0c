// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// gpu is a board on the pages of a test.
type gpu struct {
	id, parent, service, pod, model string
	clock, busy, limit              float64
	throttle                        string        // reason
	heat                            float64       // seconds a second
	refresh                         time.Duration // of that counter; 0: for each scrape
	started                         time.Duration
	reason                          string
	noStart                         bool // its start is not known
	job, account                    string
}

func (g *gpu) namespace() string {
	if g.job != "" {
		return ""
	}
	return "ml"
}

// runs makes boards those of a job.
func runs(job, account string, boards ...*gpu) {
	for _, g := range boards {
		g.job, g.account, g.pod = job, account, ""
	}
}

// world scrapes boards every 15 seconds and reports their events at once.
type world struct {
	*Fleet
	now     time.Duration
	begin   time.Time
	gpus    []*gpu
	reasons Reasons
	events  []string
}

// newWorld has 16 boards of one service, with spread, of pods that started long ago.
func newWorld() *world {
	w := &world{Fleet: NewFleet(100), begin: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), now: time.Hour}
	for i := range 16 {
		w.gpus = append(w.gpus, &gpu{
			id: fmt.Sprintf("GPU-%02d", i), service: "train", pod: fmt.Sprintf("train-%d", i/8), model: "H100",
			clock: 1.7e9 * (1 + 0.004*float64(i-8)), busy: 1, limit: 700, started: -time.Hour,
		})
	}
	return w
}

func (g *gpu) add(md pmetric.Metrics, begin time.Time, now time.Duration) {
	rm := md.ResourceMetrics().AppendEmpty()
	a := rm.Resource().Attributes()
	for key, v := range map[string]string{
		names.HwID: g.id, names.HwParent: g.parent, names.HwModel: g.model, names.HwType: names.HwTypeGPU, names.K8sClusterName: "c1", names.K8sNodeName: "n1",
		names.K8sNamespaceName: g.namespace(), names.K8sPodName: g.pod, names.SlurmJobID: g.job, names.ServiceNamespace: g.account, names.ServiceName: g.service,
		names.K8sPodStartTime: begin.Add(g.started).Format(time.RFC3339),
	} {
		if v != "" && (key != names.K8sPodStartTime || !g.noStart) {
			a.PutStr(key, v)
		}
	}
	ms := rm.ScopeMetrics().AppendEmpty().Metrics()
	point := func(m *names.Metric, v float64, key, value string) {
		p := m.Init(ms.AppendEmpty()).AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(begin.Add(now)))
		p.SetDoubleValue(v)
		p.Attributes().PutStr(key, value)
	}
	point(&names.GPUClockFrequency, g.clock, names.GPUClockDomain, "sm")
	point(&names.GPUClockFrequency, 9e9, names.GPUClockDomain, "memory")
	point(&names.GPUUtilization, g.busy, names.HwGPUTask, "general")
	point(&names.GPUUtilization, 0, names.HwGPUTask, "decoder")
	point(&names.GPUPowerLimit, g.limit, names.GPUPowerLimitKind, "enforced")
	point(&names.GPUPowerLimit, 1000, names.GPUPowerLimitKind, "management")
	if g.throttle != "" {
		point(&names.GPUThrottleActive, 1, names.GPUThrottleReason, g.throttle)
	}
	point(&names.GPUThrottleDuration, g.heat*now.Truncate(g.refresh).Seconds(), names.GPUThrottleReason, "thermal")
	if g.reason != "" {
		point(&names.GPUHealthReason, 1, names.GPUHealthReason.Name, g.reason)
	}
}

// read reads a batch, as the engine does.
func (w *world) read(md pmetric.Metrics) {
	w.Advance(w.now, w.begin.Add(w.now))
	for _, rm := range md.ResourceMetrics().All() {
		var s Source
		s.Read(rm.Resource().Attributes())
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			dps, _ := points.Numbers(m)
			for _, p := range dps.All() {
				Inputs[m.Name()](w.Fleet, &s, p)
			}
		}
	}
}

// run lets time pass and returns the events of it, as "id raised cause" and "id cleared".
func (w *world) run(d time.Duration) []string {
	w.events = nil
	for until := w.now + d; w.now < until; w.now += time.Second {
		wall := w.begin.Add(w.now)
		if int(w.now.Seconds())%15 == 0 {
			md := pmetric.NewMetrics()
			for _, g := range w.gpus {
				g.add(md, w.begin, w.now)
			}
			w.read(md)
		}
		for _, b := range w.Judge(w.now, wall, w.reasons) {
			if b.Condition.Level = 1 - b.Condition.Level; b.Condition.Level == 1 {
				w.events = append(w.events, fmt.Sprintf("%s raised %s %.2f of %d", b.ID.ID, b.Cause, b.Ratio(), b.Peers))
			} else {
				w.events = append(w.events, b.ID.ID+" cleared")
			}
		}
	}
	return w.events
}

// series are the points of gpu.straggler since the last call.
func (w *world) series() (all []string) {
	md := pmetric.NewMetrics()
	w.Publish(func(identify func(pcommon.Map)) pmetric.MetricSlice {
		rm := md.ResourceMetrics().AppendEmpty()
		identify(rm.Resource().Attributes())
		return rm.ScopeMetrics().AppendEmpty().Metrics()
	})
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			dps, _ := points.Numbers(m)
			p := dps.At(0)
			state := "is"
			if p.Flags().NoRecordedValue() {
				state = "ends"
			}
			all = append(all, fmt.Sprintf("%s %s %s %s", points.Str(p.Attributes(), names.HwID), points.Str(p.Attributes(), names.ServiceName),
				points.Str(p.Attributes(), names.GPUStragglerCause), state))
		}
	}
	return all
}

// A board that is slow among its peers is raised after ten low minutes, published every
// minute, and cleared after a quarter of an hour at their speed.
func TestRaisedAndCleared(t *testing.T) {
	w := newWorld()
	require.Empty(t, w.run(30*time.Minute))
	w.gpus[3].clock *= 0.8
	require.Empty(t, w.run(11*time.Minute))
	require.Empty(t, w.series())
	require.Equal(t, []string{"GPU-03 raised clock 0.79 of 15"}, w.run(4*time.Minute))
	assert.Equal(t, []string{"GPU-03 train clock is"}, w.series())
	assert.Empty(t, w.series(), "once for each comparison")
	w.PublishAgain()
	assert.Equal(t, []string{"GPU-03 train clock is"}, w.series())
	require.Empty(t, w.run(2*time.Hour), "once")
	w.gpus[3].clock /= 0.8
	require.Empty(t, w.run(15*time.Minute))
	require.Equal(t, []string{"GPU-03 cleared"}, w.run(5*time.Minute))
	assert.Equal(t, []string{"GPU-03 train clock ends"}, w.series())
}

// What is no straggler: each case runs for hours without an event.
func TestSilent(t *testing.T) {
	slow := func(w *world, boards ...int) {
		for _, i := range boards {
			w.gpus[i].clock *= 0.8
		}
	}
	for name, change := range map[string]func(*world){
		"more than a quarter": func(w *world) { slow(w, 0, 1, 2, 3, 4) },
		"too near":            func(w *world) { w.gpus[8].clock *= 0.92 },
		"idle":                func(w *world) { slow(w, 3); w.gpus[3].busy = 0.4 },
		"four peers":          func(w *world) { slow(w, 3); w.gpus = w.gpus[:5] },
		"another model":       func(w *world) { slow(w, 3); w.gpus[3].model = "H200" },
		"another service":     func(w *world) { slow(w, 3); w.gpus[3].service = "chat" },
		"another account":     func(w *world) { runs("1", "physics", w.gpus...); slow(w, 3); w.gpus[3].account = "chemistry" },
		"a service of Kubernetes among those of Slurm": func(w *world) { runs("1", "physics", w.gpus[4:]...); w.gpus = w.gpus[3:]; slow(w, 0) },
		"no service":          func(w *world) { slow(w, 3); w.gpus[3].service = "" },
		"another power limit": func(w *world) { slow(w, 3); w.gpus[3].limit = 500 },
		"a wide spread":       func(w *world) { slow(w, 3); spreadOut(w) },
		"replicas": func(w *world) {
			slow(w, 3)
			w.gpus = append(w.gpus, &gpu{id: "GPU-03::1", service: "train", model: "H100"})
		},
		"MIG": func(w *world) {
			slow(w, 3)
			w.gpus = append(w.gpus, &gpu{id: "GPU-03/1", parent: "GPU-03", service: "train", model: "H100"})
		},
		"MIG alone": func(w *world) { slow(w, 3); divide(w) },
		"a reason":  func(w *world) { slow(w, 3); w.gpus[3].reason = "pcie_width" },
		"a reason of this one": func(w *world) {
			slow(w, 3)
			w.reasons = func(id subjectID) []string { return map[string][]string{"GPU-03": {"throttle"}}[id.ID] }
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			change(w)
			assert.Empty(t, w.run(3*time.Hour))
		})
	}
	jobs := newWorld()
	runs("1", "physics", jobs.gpus[:8]...)
	runs("2", "physics", jobs.gpus[8:]...)
	slow(jobs, 3)
	assert.Len(t, jobs.run(3*time.Hour), 1, "jobs of one service are peers")
	w := newWorld()
	slow(w, 3)
	w.gpus[3].reason = "remap_pending"
	assert.Len(t, w.run(3*time.Hour), 1, "a reason that explains nothing")
}

func spreadOut(w *world) {
	for i, g := range w.gpus {
		g.clock *= 1 + 0.02*float64(i-8)
	}
}

func divide(w *world) {
	for _, g := range w.gpus {
		g.parent = g.id
		g.id += "/1"
	}
}

// A pod that has just started is not compared, whether its start is known or only seen.
func TestStartOfAPod(t *testing.T) {
	for _, known := range []bool{true, false} {
		w := newWorld()
		w.run(time.Hour)
		g := w.gpus[3]
		g.pod, g.clock = "train-new", g.clock*0.8
		g.started, g.noStart = w.now, !known
		assert.Empty(t, w.run(19*time.Minute), "ten of them do not count, and ten more are needed")
		assert.Len(t, w.run(3*time.Minute), 1)
	}
}

// The cause is what the board has more of than its peers, or a reason against it.
func TestCauses(t *testing.T) {
	all := func(w *world, throttle string, heat float64) {
		for _, g := range w.gpus {
			g.throttle, g.heat, g.refresh = throttle, heat, time.Minute
		}
	}
	for _, test := range []struct {
		want   Cause
		change func(w *world)
	}{
		{Thermal, func(w *world) { w.gpus[3].heat = 0.2 }},
		{Power, func(w *world) { w.gpus[3].throttle = "power_cap" }},
		{Clock, func(w *world) { all(w, "power_cap", 0.2) }},
		// The exporters refresh once a minute, and are scraped four times.
		{Thermal, func(w *world) { all(w, "", 0.5); w.gpus[3].heat = 0.8 }},
		{Clock, func(w *world) { all(w, "", 0.5); w.gpus[3].heat = 0.55 }},
	} {
		w := newWorld()
		w.gpus[3].clock *= 0.8
		test.change(w)
		events := w.run(time.Hour)
		require.Len(t, events, 1)
		assert.Contains(t, events[0], "GPU-03 raised "+string(test.want))
	}
	// A reason that explains it has sent a message already.
	w := newWorld()
	w.gpus[3].clock *= 0.8
	w.gpus[3].reason = "nvlink_errors"
	assert.Empty(t, w.run(time.Hour))
	assert.Empty(t, w.series())
	// Once it is gone the board speaks for itself, and a later reason clears nothing.
	w.gpus[3].reason = ""
	assert.Len(t, w.run(time.Hour), 1)
	assert.Equal(t, []string{"GPU-03 train clock is"}, w.series())
	w.gpus[3].reason = "nvlink_errors"
	assert.Empty(t, w.run(time.Hour))
	assert.Equal(t, []string{"GPU-03 train clock ends", "GPU-03 train link is"}, w.series())
}

// A board that is no peer any more is cleared: at once among others, and after a quarter
// of an hour without data. While nothing arrives of any board nothing changes.
func TestNoPeerAnyMore(t *testing.T) {
	start := func() *world {
		w := newWorld()
		w.gpus[3].clock *= 0.8
		require.Len(t, w.run(time.Hour), 1)
		return w
	}
	w := start()
	w.gpus[3].service = "chat"
	assert.Equal(t, []string{"GPU-03 cleared"}, w.run(2*time.Minute))
	w = start()
	w.gpus[3].busy = 0
	assert.Empty(t, w.run(15*time.Minute))
	assert.Equal(t, []string{"GPU-03 cleared"}, w.run(5*time.Minute))
	w = start()
	all := w.gpus
	w.gpus = nil
	assert.Empty(t, w.run(3*time.Hour))
	w.gpus = all
	assert.Empty(t, w.run(time.Hour))
	w.gpus = append(all[:3:3], all[4:]...)
	assert.Equal(t, []string{"GPU-03 cleared"}, w.run(3*time.Hour))
	w.series()
	w.run(time.Minute)
	assert.Equal(t, 15, w.Boards(), "and forgotten")
}

// A board from before a restart stays slow until it is compared.
func TestRestored(t *testing.T) {
	w := newWorld()
	w.gpus[3].clock *= 0.8
	b := w.Restore(device("c1", "GPU-03", "ml", "train"), Clock)
	b.Condition.Level = 1
	assert.Empty(t, w.run(2*time.Hour), "it is slow still")
	w = newWorld()
	w.Restore(device("c1", "GPU-03", "ml", "train"), Clock).Condition.Level = 1
	w.Restore(device("c1", "GPU-99", "ml", "train"), Clock).Condition.Level = 1
	assert.Equal(t, []string{"GPU-99 cleared", "GPU-03 cleared"}, w.run(time.Hour), "one is gone, the other fast again")
}

// Boards beyond the limit are not compared, and late points and what is no number are
// left out.
func TestLimits(t *testing.T) {
	w := newWorld()
	w.Fleet = NewFleet(10)
	w.run(time.Minute)
	assert.Equal(t, 10, w.Boards())
	assert.EqualValues(t, 4*6, w.TakeRefused(), "once for each board and page, whatever it has of points")
	assert.Zero(t, w.TakeRefused())

	w = newWorld()
	w.run(time.Minute)
	b := w.boards[subjectID{Cluster: "c1", ID: "GPU-03"}]
	before := b.total(w.minute + 2)
	late := pmetric.NewMetrics()
	w.gpus[3].add(late, w.begin, w.now-10*time.Minute)
	w.read(late)
	assert.Equal(t, before, b.total(w.minute+2))
}

type subjectID = subject.DeviceID

func device(cluster, id, namespace, service string) subject.Device {
	return subject.Device{
		ID:    subjectID{Cluster: cluster, ID: id},
		Facts: subject.Facts{Index: -1, Owner: subject.Owner{Namespace: namespace, Service: service}},
	}
}

// 10,000 boards of services of 64, each with 25 minutes of samples.
func BenchmarkJudge(b *testing.B) {
	f := NewFleet(10_000)
	now := time.Hour
	for i := range 10_000 {
		board := f.get(subjectID{Cluster: "c1", ID: fmt.Sprintf("GPU-%05d", i)})
		board.Facts.Model, board.Facts.Owner = "H100", subject.Owner{Namespace: "ml", Service: fmt.Sprintf("train-%d", i/64), Pod: "p"}
		board.started = 0
	}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		now += time.Minute
		for i := range 10_000 {
			board := f.boards[subjectID{Cluster: "c1", ID: fmt.Sprintf("GPU-%05d", i)}]
			m := board.in(int(now/time.Minute) - 1)
			m.samples, m.clock = 4, 4*(1.7e9+float64(i*7919%1000)*1e5)
			board.seen = now - 2*time.Second
		}
		b.StartTimer()
		f.Judge(now, time.Unix(0, 0).Add(now), nil)
	}
}
