// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func job(id, service string) attrs {
	a := attrs{"slurm.cluster.name": "hpc", "slurm.job.id": id, "slurm.job.user": "ada", "slurm.job.account": "physics", "slurm.partition": "gpu"}
	if service != "" {
		a["service.namespace"], a["service.name"] = "physics", service
	}
	return a
}

var fromMap = attrs{names.GPUAttributionSource: names.SourceSlurmJobMap}

// marker is that Slurm's snapshot has no device.
func marker(node string, at int64) batch {
	return newBatch().point(on(node), names.GPUAllocation, at, nil, fromMap)
}

// Two jobs of one service, one after the other, and what no job has in between.
func TestJobs(t *testing.T) {
	s := newStory(t, func(c *Config) { c.Tenant = []string{names.K8sNamespaceName} })
	every(t0, t0+30*minute, 15*second, func(at int64) {
		b := newBatch()
		switch {
		case at < t0+10*minute:
			b.holds("n", at, job("7", "ada/train"), gpu(0), 1, fromMap)
		case at < t0+12*minute:
			b = marker("n", at)
		default:
			b.holds("n", at, job("8", "ada/train"), gpu(0), 1, fromMap)
		}
		s.read(at, b.busy(device("n", gpu(0), h100), at, .5))
	})
	rows := s.rows()
	assert.InDelta(t, 28*60-30, rows["ada/train"], 1, "of what is between two snapshots")
	assert.InDelta(t, 120, rows["(unknown)"], 1)
	total := s.total("ada/train")
	assert.Equal(t, [4]string{"hpc", "physics", "physics", ""}, [4]string{total.Key.SlurmCluster, total.Key.Namespace, total.Key.Tenant, total.Key.Pod})
	assert.Zero(t, s.Counts())
}

// For half an hour a job has the first board, and then another job has the second one, which was
// never seen before. What no job has is unknown: nothing shows that it is missing, unless telemetry
// shows the other boards.
func TestBoardsThatNoJobHas(t *testing.T) {
	for name, tt := range map[string]struct {
		telemetry []int // of these boards
		kubelet   bool  // lists the boards that no job has
		restart   int64
		want      map[string]float64
	}{
		"without telemetry":                   {nil, false, 0, map[string]float64{"(unknown)": 5400}},
		"with telemetry of both":              {[]int{1, 2}, false, 0, map[string]float64{"(unknown)": 7200}},
		"with telemetry of the other one":     {[]int{2}, false, 0, map[string]float64{"(unknown)": 1800, "(unavailable)": 5400}},
		"the gateway restarts before":         {nil, false, 30*minute - 15*second, map[string]float64{"(unknown)": 5400}},
		"the gateway restarts after":          {nil, false, 40 * minute, map[string]float64{"(unknown)": 5400}},
		"the kubelet of the node lists it":    {nil, true, 0, map[string]float64{"(free)": 7200}},
		"the kubelet lists it, and telemetry": {[]int{1, 2}, true, 0, map[string]float64{"(free)": 7200}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, nil)
			every(t0, t0+2*hour, 15*second, func(at int64) {
				has := 1
				if at >= t0+30*minute {
					has = 2
				}
				b := newBatch()
				if tt.kubelet {
					b.free("n", at, gpu(1)).free("n", at, gpu(2))
				}
				for _, n := range tt.telemetry {
					b.busy(device("n", gpu(n), h100), at, .5)
				}
				s.read(at, b)
				s.read(at+second, newBatch().holds("n", at+second, job(fmt.Sprint(has), fmt.Sprint("train", has)), gpu(has), 1, fromMap))
				if s.ledger.Expire(at); tt.restart != 0 && at == t0+tt.restart {
					s.restart(at)
				}
			})
			got := s.rows()
			assert.InDelta(t, 1800, got["train1"], 31)
			assert.InDelta(t, 5400, got["train2"], 31)
			delete(got, "train1")
			delete(got, "train2")
			for row, seconds := range tt.want {
				assert.InDelta(t, seconds, got[row], 62, row)
			}
			maps.DeleteFunc(got, func(_ string, seconds float64) bool { return seconds < 31 }) // between two snapshots
			assert.Len(t, got, len(tt.want), "%v", got)
		})
	}
}

// What no job has for days stays unknown, and its account is closed after a week.
func TestBoardThatNoJobHasForLong(t *testing.T) {
	s := newStory(t, nil)
	const step = 4 * minute
	every(t0, t0+20*day, step, func(at int64) {
		b := newBatch().holds("n", at, job("2", "other"), gpu(2), 1, fromMap)
		if at < t0+hour {
			b.holds("n", at, job("1", "train"), gpu(1), 1, fromMap)
		}
		s.read(at, b)
		if at%(20*minute) == 0 {
			s.Expire(time.UnixMilli(at))
			s.ledger.Expire(at)
		}
	})
	got := s.rows()
	assert.InDelta(t, 3600, got["train"], 480)
	assert.InDelta(t, 8*86400, got["(unknown)"], 7200, "the board is forgotten after a day, and its account closed a week later")
	assert.NotContains(t, got, "(unavailable)")
	assert.Equal(t, 1, s.ledger.Boards())
}

// Jobs that share a device have their parts of it.
func TestJobsThatShare(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+10*minute+15*second, 15*second, func(at int64) {
		b := newBatch().holds("n", at, job("7", "a"), gpu(0), .5, fromMap).holds("n", at, job("8", "b"), gpu(0), .5, fromMap)
		s.read(at, b.busy(device("n", gpu(0), h100), at, .5))
	})
	rows := s.rows()
	assert.InDelta(t, 292.5, rows["a"], 1)
	assert.InDelta(t, 292.5, rows["b"], 1)
}

// A pod and a job have the same part of a board for half an hour, by the snapshots of the kubelet and
// of Slurm: each has half of it, and their rows are marked. Then the job has it alone.
func TestPartsThatAPodAndAJobHave(t *testing.T) {
	part := gpu(1) + "/1"
	profile := attrs{names.GPUMIGProfile: "3g.40gb", names.HwParent: gpu(1)}
	for name, tt := range map[string]struct {
		pod, job func(b batch, at int64)
		want     map[string]float64
	}{
		"a whole board": {
			func(b batch, at int64) { b.holds("n", at, pod("a"), gpu(1), 1) },
			func(b batch, at int64) { b.holds("n", at, job("1", "train"), gpu(1), 1, fromMap) },
			map[string]float64{"a": 900, "train": 900 + 1800},
		},
		"an instance": {
			func(b batch, at int64) { b.holds("n", at, pod("a"), part, 1, profile) },
			func(b batch, at int64) { b.holds("n", at, job("1", "train"), part, 1, fromMap, profile) },
			map[string]float64{"a": 900 * 3 / 7., "train": 2700 * 3 / 7., "(stranded)": 3600 * 4 / 7.},
		},
		"a board that only telemetry places": {
			func(b batch, at int64) {
				b.holds("n", at, pod("a"), "n/nvidia0", 1, attrs{"gpu.allocation.resolved": false}).busy(device("n", gpu(1), h100, pod("a")), at, .5)
			},
			func(b batch, at int64) { b.holds("n", at, job("1", "train"), gpu(1), 1, fromMap) },
			map[string]float64{"a": 900, "train": 900 + 1800},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, nil)
			every(t0, t0+hour+15*second, 15*second, func(at int64) {
				b := newBatch().busy(device("n", gpu(1), h100), at, .5).free("n", at, gpu(2))
				if at < t0+30*minute {
					tt.pod(b, at)
				}
				s.read(at, b)
				b = newBatch()
				tt.job(b, at+second)
				s.read(at+second, b)
			})
			got := s.rows()
			delete(got, "(free)") // of the other board
			for row, seconds := range tt.want {
				assert.InDelta(t, seconds, got[row], 31, row)
			}
			assert.Len(t, got, len(tt.want), "%v", got)
			for _, total := range s.ledger.Totals() {
				assert.Equal(t, total.Key.State == ledger.Held, total.Flags&ledger.Contested != 0, total.Key.Service)
			}
		})
	}
}

// Parts that cannot be placed end with the next snapshot of the manager that gave them away, however
// the snapshots of the two managers follow each other.
func TestPartsOfTwoManagersThatCannotBePlaced(t *testing.T) {
	s := newStory(t, nil)
	unresolved := attrs{"gpu.allocation.resolved": false}
	every(t0, t0+hour+minute, 15*second, func(at int64) {
		turn := (at - t0) / (10 * minute)
		s.read(at, newBatch().holds("n", at, pod(fmt.Sprint("pod", turn)), "n/nvidia0", 1, unresolved).free("n", at, gpu(0)))
		b := marker("n", at+second)
		if turn != 3 {
			b.holds("n", at+second, job(fmt.Sprint(turn), fmt.Sprint("job", turn)), "n/nvidia1", 1, fromMap, unresolved)
		}
		s.read(at+second, b)
	})
	got := s.rows()
	for turn := range 6 {
		assert.InDelta(t, 600, got[fmt.Sprint("pod", turn, " unplaced")], 31, turn)
		if turn != 3 {
			assert.InDelta(t, 600, got[fmt.Sprint("job", turn, " unplaced")], 31, turn)
		}
	}
	assert.Equal(t, 3, s.ledger.Boards(), "the board, and a part of each manager")
}

// A node with two managers: what the kubelet has free is the job's, and the pod of Slurm's
// daemon has what jobs have within it.
func TestJobsBesidePods(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+10*minute+15*second, 5*second, func(at int64) {
		b := newBatch().free("n", at, gpu(0)).holds("n", at, pod("a"), gpu(1), 1).holds("n", at, pod("slurmd"), gpu(2), 1)
		s.read(at, b.busy(device("n", gpu(0), h100), at, .5).busy(device("n", gpu(1), h100), at, .5).busy(device("n", gpu(2), h100), at, .5))
		b = newBatch().holds("n", at+second, job("7", "train"), gpu(0), 1, fromMap)
		b.point(on("n", job("8", "within")), names.GPUAllocation, at+second, 1.,
			attrs{names.HwID: gpu(2), names.GPUAttributionSource: names.SourceSlurmJobMap, names.GPUAllocationNested: true})
		s.read(at+second, b)
	})
	rows := s.rows()
	assert.InDelta(t, 610, rows["train"], 6)
	assert.InDelta(t, 610, rows["a"], 6)
	assert.InDelta(t, 610, rows["slurmd"], 6)
	assert.NotContains(t, rows, "within")
	assert.LessOrEqual(t, rows["(free)"], 6.)
}
