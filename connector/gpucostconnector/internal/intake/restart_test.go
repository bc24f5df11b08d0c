// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

var machine = prices.RuleConfig{Match: map[string]string{"host.type": "gpu-h100-*"}, InstanceHour: "23.60", GPUs: 2}

// restart continues with what was stored.
func (s *story) restart(now int64) {
	restored, err := ledger.Restore(ledgerConfig(s.prices), s.ledger.Encode())
	require.NoError(s.t, err)
	s.Intake = New(s.cfg, restored, time.UnixMilli(now))
}

// After a restart owners are reported before devices and nodes are described again: what
// they are is known from before, so that no time of them is without a price.
func TestRestart(t *testing.T) {
	s := newStory(t, nil, machine)
	board := gpu(1)
	owners := func(at int64) batch {
		return newBatch().holds("n", at, pod("a"), gpu(0), 1).holds("n", at, pod("b"), board+"/1", 1)
	}
	every(t0, t0+10*minute, 15*second, func(at int64) {
		b := owners(at).info("n", at, attrs{"host.type": "gpu-h100-sxm", "cloud.region": "eu-north1"})
		b.busy(device("n", gpu(0), h100), at, .5).busy(device("n", board+"/1", h100, instanceOf(board, "3g.40gb")), at, .5)
		s.read(at, b)
	})
	s.restart(t0 + 20*minute)
	every(t0+20*minute, t0+30*minute+30*second, 15*second, func(at int64) { s.read(at, owners(at)) })

	assert.Equal(t, map[string]float64{"a": 1800, "b": 771.429, "(stranded)": 1028.571}, s.rows())
	a := s.total("a")
	assert.Equal(t, prices.Rate{Nano: 11_800_000_000, Per: 1}, a.Key.Rate)
	assert.Equal(t, ledger.Class{Cluster: "c", Model: h100, HostType: "gpu-h100-sxm", Region: "eu-north1"}, a.Key.Class)
	assert.Equal(t, "3g.40gb", s.total("b").Key.Profile)
}

// A node without a kubelet is one after a restart too, whatever owner its telemetry names, and
// whether or not it had a kubelet before.
func TestRestartWithoutKubernetes(t *testing.T) {
	job := attrs{"slurm.cluster.name": "hpc", "slurm.job.id": "7", "service.name": "train"}
	for name, tt := range map[string]struct {
		owner attrs
		key   string
		begin func(*story)
	}{
		"a service":                  {attrs{"service.name": "train"}, "train", nil},
		"a pod of exporter's labels": {pod("a"), "a", nil},
		"a job":                      {job, "train", nil},
		"a pod, and the kubelet is gone for two days": {pod("a"), "a", func(s *story) {
			every(t0-2*day, t0-2*day+10*minute, 15*second, func(at int64) {
				s.read(at, newBatch().free("box", at, gpu(0)).free("box", at, gpu(1)))
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, nil)
			page := func(at int64) batch {
				return newBatch().busy(device("", gpu(0), h100, attrs{"host.name": "box"}, tt.owner), at, .5).
					busy(device("", gpu(1), h100, attrs{"host.name": "box"}), at, .5)
			}
			before := float64(0)
			if tt.begin != nil {
				tt.begin(s)
			}
			every(t0, t0+10*minute, 15*second, func(at int64) { s.read(at, page(at)) })
			s.restart(t0 + 20*minute)
			every(t0+20*minute, t0+30*minute+45*second, 15*second, func(at int64) { s.read(at, page(at)) })
			rows := s.rows()
			before = rows["(free)"]
			delete(rows, "(free)")
			assert.Equal(t, map[string]float64{tt.key: 1800, "(unknown)": 1800}, rows)
			assert.Equal(t, tt.begin != nil, before > 0)
		})
	}
}

// A board without a kubelet waits for two minutes, and a board that is added to it for one
// interval. What was measured until then belongs to its account as what comes later.
func TestFirstMinutesWithoutKubernetes(t *testing.T) {
	s := newStory(t, nil)
	of := func(id, name string) attrs { return device("", id, h100, attrs{"host.name": "box"}, pod(name)) }
	every(t0, t0+10*minute+15*second, 15*second, func(at int64) {
		load := .25
		if at < t0+minute {
			load = 1
		}
		watts, sum := 300., float64(at-t0)*.4
		b := newBatch().busy(of(gpu(0), "counter"), at, load).burnt(of(gpu(0), "counter"), at, 1e6+sum).
			busy(of(gpu(1), "power"), at, load).point(of(gpu(1), "power"), names.HwPower, at, watts, nil)
		if at >= t0+5*minute {
			b.busy(of(gpu(2), "added"), at, 1).burnt(of(gpu(2), "added"), at, 1e6+sum)
		}
		s.read(at, b)
	})
	for name, want := range map[string]struct{ held, used, joules float64 }{
		"counter": {570, 60 + 510*.25, 570 * 400},
		"power":   {570, 60 + 510*.25, 570 * 300},
		"added":   {270, 270, 270 * 400},
	} {
		total := s.total(name)
		energy := int64(0)
		for _, mj := range total.Energy {
			energy += mj
		}
		assert.Equal(t, want.held, float64(total.Time)/1000, name)
		assert.InDelta(t, want.used, float64(total.Used)/1000, .1, name)
		assert.InDelta(t, want.joules, float64(energy)/1000, 400*15, name)
	}
	assert.Zero(t, s.Counts())
}

// What a board measured before its first gpu.allocation is not kept for longer than that.
func TestValuesBeforeTheFirstAllocation(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+10*minute, 15*second, func(at int64) {
		b := newBatch().busy(device("n", gpu(0), h100), at, 1)
		if at >= t0+minute {
			b.holds("n", at, pod("a"), gpu(0), 1)
		}
		s.read(at, b)
	})
	a := s.total("a")
	assert.Equal(t, a.Time, a.Used)
	assert.Equal(t, 510*second, a.Time)
	assert.Empty(t, s.boards[gpu(0)].waiting)
}

// A utilization from before the first snapshot covers the time after it, also where the next
// utilization comes later than the next snapshots.
func TestAValueBeforeTheFirstAllocationCountsAtOnce(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+2*minute, 5*second, func(at int64) {
		b := newBatch()
		if (at-t0)%(30*second) == 0 {
			b.busy(device("n", gpu(0), h100), at, 1)
		}
		if at > t0 {
			b.holds("n", at, pod("a"), gpu(0), 1)
		}
		s.read(at, b)
	})
	a := s.total("a")
	assert.Positive(t, a.Time)
	assert.Equal(t, a.Time, a.Used)
}
