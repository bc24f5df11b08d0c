// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// For an hour a node sends the same every 15 seconds; what its boards are is not in
// question, only who has them.
func TestAnHour(t *testing.T) {
	const node, a100 = "n", "NVIDIA A100-SXM4-40GB"
	board := gpu(0)
	seen := func(b batch, at int64, id string, more ...attrs) { b.busy(device(node, id, a100, more...), at, .5) }
	unresolved := attrs{"gpu.allocation.resolved": false}
	granted := func(memory float64, more ...attrs) attrs {
		all := attrs{"gpu.attribution.source": "annotation", "gpu.sharing": "hami", "gpu.allocation.share": memory}
		for _, m := range more {
			for k, v := range m {
				all[k] = v
			}
		}
		return all
	}
	for name, tt := range map[string]struct {
		change func(*Config)
		send   func(b batch, at int64)
		want   map[string]float64
		counts Counts // of 243 batches
	}{
		"whole boards": {
			send: func(b batch, at int64) { b.holds(node, at, pod("a"), gpu(0), 1).free(node, at, gpu(1)) },
			want: map[string]float64{"a": 3600, "(free)": 3600},
		},
		"replicas without a free one": {
			send: func(b batch, at int64) {
				for n := range 3 {
					b.holds(node, at, pod("a"), fmt.Sprint(board, "::", n), .25, attrs{"gpu.sharing": "mps"})
				}
			},
			want: map[string]float64{"a": 2700, "(free)": 900},
		},
		"replicas without an owner": {
			send: func(b batch, at int64) {
				for n := range 4 {
					b.free(node, at, fmt.Sprint(board, "::", n), attrs{"gpu.sharing": "time_slicing"})
				}
			},
			want: map[string]float64{"(free)": 3600},
		},
		"replicas of an instance": {
			send: func(b batch, at int64) {
				seen(b, at, board+"/1", instanceOf(board, "3g.20gb"))
				b.holds(node, at, pod("a"), board+"/1::0", .5).holds(node, at, pod("b"), board+"/1::1", .5)
			},
			want: map[string]float64{"a": 3600 * 3 / 14., "b": 3600 * 3 / 14., "(stranded)": 3600 * 4 / 7.},
		},
		"the profile is on the point": {
			send: func(b batch, at int64) {
				seen(b, at, board)
				b.holds(node, at, pod("a"), board+"/1", 1, attrs{"gpu.mig.profile": "3g.20gb", "hw.parent": board})
			},
			want: map[string]float64{"a": 3600 * 3 / 7., "(stranded)": 3600 * 4 / 7.},
		},
		"an instance by memory": {
			change: func(c *Config) { c.MIGShare = share.ByMemory },
			send: func(b batch, at int64) {
				b.point(device(node, board, a100), names.GPUMemoryLimit, at, 42949672960, attrs{"hw.id": board})
				b.holds(node, at, pod("a"), board+"/1", 1, attrs{"gpu.mig.profile": "3g.20gb"})
			},
			want: map[string]float64{"a": 1800, "(stranded)": 1800},
		},
		"slices of the configuration": {
			change: func(c *Config) {
				c.MIGSlices = ModelSlices(map[string]share.Slices{"A100": {Compute: 10, Memory: 10}, "A100-SXM4-40GB": {Compute: 6, Memory: 6}})
			},
			send: func(b batch, at int64) {
				seen(b, at, board)
				b.holds(node, at, pod("a"), board+"/1", 1, attrs{"gpu.mig.profile": "3g.20gb"})
			},
			want: map[string]float64{"a": 1800, "(stranded)": 1800},
		},
		"an instance of an unknown profile": {
			send: func(b batch, at int64) {
				b.holds(node, at, pod("a"), board+"/1", 1).holds(node, at, pod("b"), board+"/2", 1, attrs{"gpu.mig.profile": "3g.20gb"})
				seen(b, at, board)
			},
			want:   map[string]float64{"a unplaced": 3600, "b": 3600 * 3 / 7., "(unknown)": 3600 * 4 / 7.},
			counts: Counts{Unresolved: 243},
		},
		"an instance of an unknown model takes its part of the memory": {
			send: func(b batch, at int64) {
				b.point(device(node, board, "Board 9000"), names.GPUMemoryLimit, at, 42949672960, attrs{"hw.id": board})
				b.holds(node, at, pod("a"), board+"/1", 1, attrs{"gpu.mig.profile": "1g.10gb"})
			},
			want: map[string]float64{"a": 900, "(stranded)": 2700},
		},
		"two owners of a whole board": {
			send: func(b batch, at int64) { b.holds(node, at, pod("a"), board, 1).holds(node, at, pod("b"), board, 1) },
			want: map[string]float64{"a": 1800, "b": 1800},
		},
		"four quarters of a board": {
			send: func(b batch, at int64) {
				for _, name := range []string{"a", "b", "c", "d"} {
					b.holds(node, at, pod(name), board, .25, granted(.25))
				}
			},
			want: map[string]float64{"a": 900, "b": 900, "c": 900, "d": 900},
		},
		"numbered parts of a board": {
			send: func(b batch, at int64) {
				b.holds(node, at, pod("a"), board+"::0", .25, granted(.25)).holds(node, at, pod("b"), board+"::1", .5, granted(.5)).
					holds(node, at, pod("c"), gpu(1), 1, granted(1)).free(node, at, gpu(2), attrs{"gpu.attribution.source": "annotation"})
			},
			want: map[string]float64{"a": 900, "b": 1800, "c": 3600, "(free)": 4500},
		},
		"a partition by memory": {
			send: func(b batch, at int64) {
				b.holds(node, at, pod("a"), board, .25, granted(.25, attrs{"gpu.allocation.share.cores": .5}))
			},
			want: map[string]float64{"a": 900, "(free)": 2700},
		},
		"a partition by cores": {
			change: func(c *Config) { c.VGPUShare = share.VGPUByCores },
			send: func(b batch, at int64) {
				b.holds(node, at, pod("a"), board, .25, granted(.25, attrs{"gpu.allocation.share.cores": .5})).
					holds(node, at, pod("b"), board, .25, granted(.25))
			},
			want: map[string]float64{"a": 1800, "b": 900, "(free)": 900},
		},
		"more memory than there is": {
			send: func(b batch, at int64) {
				for _, name := range []string{"a", "b", "c", "d"} {
					b.holds(node, at, pod(name), board, .5, granted(.5))
				}
			},
			want: map[string]float64{"a": 900, "b": 900, "c": 900, "d": 900},
		},
		"partitions that cannot be": {
			send: func(b batch, at int64) {
				seen(b, at, board)
				b.holds(node, at, pod("a"), board, .5, granted(.5)).holds(node, at, pod("b"), board, .5, granted(1.5)).
					holds(node, at, pod("c"), board, .5, granted(math.NaN())).holds(node, at, pod("d"), gpu(9), .5, granted(.5)).
					holds(node, at, pod("e"), board, .5, granted(.5, attrs{"gpu.allocation.share.cores": -1.}))
			},
			want: map[string]float64{
				"a": 1800, "(free)": 1800, "b unplaced": 1800, "c unplaced": 1800, "d unplaced": 1800, "e unplaced": 1800,
			},
			counts: Counts{Unresolved: 4 * 243},
		},
		"an owner without a board": {
			send: func(b batch, at int64) {
				b.holds(node, at, pod("a"), gpu(0), 1).holds(node, at, pod("b"), node+"/"+gpu(1)+"-3", .1, unresolved)
				seen(b, at, gpu(0))
				seen(b, at, gpu(1))
				seen(b, at, gpu(2))
			},
			want: map[string]float64{"a": 3600, "b unplaced": 360, "(unknown)": 7200},
		},
		"an owner that telemetry names on one board": {
			send: func(b batch, at int64) {
				b.holds(node, at, pod("b"), node+"/nvidia1", 1, unresolved).free(node, at, node+"/nvidia0", unresolved)
				seen(b, at, gpu(0))
				seen(b, at, gpu(1), pod("b"))
			},
			want: map[string]float64{"b": 3600, "(free)": 3600},
		},
		"an owner that telemetry names on two boards": {
			send: func(b batch, at int64) {
				b.holds(node, at, pod("b"), node+"/nvidia1", 1, unresolved)
				seen(b, at, gpu(0), pod("b"))
				seen(b, at, gpu(1), pod("b"))
			},
			want: map[string]float64{"b unplaced": 3600, "(unknown)": 7200},
		},
		"instances that the kubelet cannot name": {
			send: func(b batch, at int64) {
				mig := func(name string, of attrs, profile string) {
					value := 0.
					if of != nil {
						value = 1
					}
					b.holds(node, at, of, node+"/MIG-"+name, value, unresolved, attrs{"gpu.mig.uuid": "MIG-" + name, "k8s.resource.name": "nvidia.com/mig-" + profile})
				}
				mig("x", pod("a"), "3g.20gb")
				mig("y", pod("b"), "1g.5gb")
				mig("z", nil, "1g.5gb")
				seen(b, at, board)
				seen(b, at, board+"/1", instanceOf(board, "3g.20gb"), pod("a"))
				seen(b, at, board+"/7", instanceOf(board, "1g.5gb"))
				seen(b, at, board+"/8", instanceOf(board, "1g.5gb"), pod("b"))
			},
			want: map[string]float64{"a": 3600 * 3 / 7., "b": 3600 / 7., "(free)": 3600 / 7., "(stranded)": 3600 * 2 / 7.},
		},
		"more instances than the kubelet lists": {
			send: func(b batch, at int64) {
				b.holds(node, at, pod("a"), node+"/MIG-x", 1, unresolved).
					free(node, at, node+"/MIG-z", unresolved, attrs{"k8s.resource.name": "nvidia.com/mig-1g.5gb"})
				seen(b, at, board+"/1", instanceOf(board, "3g.20gb"), pod("a"))
				seen(b, at, board+"/7", instanceOf(board, "1g.5gb"))
				seen(b, at, board+"/8", instanceOf(board, "1g.5gb"))
			},
			want: map[string]float64{"a": 3600 * 3 / 7., "(unknown)": 3600 * 2 / 7., "(stranded)": 3600 * 2 / 7.},
		},
		"a board that the kubelet never lists": {
			send: func(b batch, at int64) {
				b.holds(node, at, pod("a"), gpu(0), 1)
				seen(b, at, gpu(1))
			},
			want: map[string]float64{"a": 3600, "(unknown)": 3600},
		},
		"boards of other hardware": {
			send: func(b batch, at int64) {
				b.holds(node, at, pod("a"), gpu(0), 1)
				for _, kind := range []string{"cpu", "battery"} {
					of := device(node, kind, "Board 9000", attrs{"hw.type": kind})
					b.busy(of, at, 1).burnt(of, at, float64(at))
				}
				b.point(on(node), names.HwEnergy, at, float64(at), attrs{"hw.id": "psu", "hw.type": "power_supply"})
			},
			want: map[string]float64{"a": 3600},
		},
		"a container that has two parts of equal size": {
			send: func(b batch, at int64) {
				b.holds(node, at, pod("a"), board, .5).holds(node, at, pod("b"), board, .5)
			},
			want: map[string]float64{"a": 1800, "b": 1800},
		},
		"points that contradict themselves": {
			send: func(b batch, at int64) {
				b.holds(node, at, pod("a"), gpu(0), 1)
				b.holds(node, at, pod("a"), gpu(1), 0).holds(node, at, pod("a"), gpu(2), 1.5).holds(node, at, pod("a"), gpu(3), -1)
				b.holds(node, at, pod("a"), gpu(4), math.NaN()).holds(node, at, nil, gpu(5), 1)
				b.holds(node, at, attrs{"k8s.namespace.name": "ns"}, gpu(6), 1).holds(node, at, pod("a"), "", 1)
				b.holds("", at, pod("a"), gpu(7), 1)
			},
			want:   map[string]float64{"a": 3600},
			counts: Counts{Invalid: 8 * 243},
		},
		"more boards than there may be": {
			change: func(c *Config) { c.MaxDevices = 2 },
			send: func(b batch, at int64) {
				for n := range 4 {
					b.free(node, at, gpu(n))
				}
			},
			want:   map[string]float64{"(free)": 7200},
			counts: Counts{Refused: 2 * 243},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, tt.change)
			for i := range int64(242) {
				b := newBatch()
				at := t0 + i*15*second
				tt.send(b, at)
				s.read(at, b)
				if i == 120 {
					s.read(at, b) // a pipeline that is doubled, or a batch that is repeated
				}
			}
			// What is placed when a snapshot is complete is one snapshot behind.
			got := s.rows()
			for name, seconds := range tt.want {
				assert.InDelta(t, seconds, got[name], seconds*30/3600, name)
				delete(got, name)
			}
			assert.Empty(t, got)
			assert.Equal(t, tt.counts, s.Counts())
		})
	}
}

func every(from, to, step int64, f func(at int64)) {
	for at := from; at < to; at += step {
		f(at)
	}
}

// A node without a kubelet: the owner is the service of the telemetry, and what it does not
// name is unknown. The account begins with the first telemetry.
func TestWithoutKubernetes(t *testing.T) {
	s := newStory(t, nil)
	host := func(id string, more ...attrs) attrs {
		return device("", id, h100, append([]attrs{{"host.name": "box"}}, more...)...)
	}
	every(t0, t0+hour+45*second, 15*second, func(at int64) {
		b := newBatch()
		b.busy(host(gpu(0), attrs{"service.name": "train"}), at, .5).busy(host(gpu(1)), at, .5)
		// A board in instances: one of them is the service's.
		b.busy(host(gpu(2)), at, .5).busy(host(gpu(2)+"/1", instanceOf(gpu(2), "3g.40gb"), attrs{"service.name": "train"}), at, .5)
		b.busy(host(gpu(2)+"/2", instanceOf(gpu(2), "2g.20gb")), at, .5)
		// One of which the exporter's labels name pods, by replica.
		b.busy(host(gpu(3)), at, .5).busy(host(gpu(3)+"::0", pod("a")), at, .5).busy(host(gpu(3)+"::1", pod("b")), at, .5)
		s.read(at, b)
	})
	want := map[string]float64{"train": 3600 * 10 / 7., "(unknown)": 3600 * 9 / 7., "(stranded)": 3600 * 2 / 7., "a": 1800, "b": 1800}
	for name, seconds := range s.rows() {
		assert.InDelta(t, want[name], seconds, .002, name)
		delete(want, name)
	}
	assert.Empty(t, want)
	assert.Zero(t, s.Counts())

	// A kubelet appears: from then on it decides.
	every(t0+hour+45*second, t0+2*hour, 15*second, func(at int64) {
		s.read(at, newBatch().busy(host(gpu(1)), at, .5).holds("box", at, pod("c"), gpu(1), 1))
	})
	assert.InDelta(t, 3600-60, s.rows()["c"], 30)
}

// What gpu.allocation comes to late is not taken for a node without Kubernetes.
func TestKubernetesThatIsLate(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+10*minute, 15*second, func(at int64) {
		b := newBatch().busy(device("n", gpu(0), h100), at, .5)
		if at > t0+45*second {
			b.holds("n", at, pod("a"), gpu(0), 1)
		}
		s.read(at, b)
	})
	assert.Equal(t, map[string]float64{"a": 510}, s.rows())
}

func TestDevicesThatAreGone(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+10*minute, 15*second, func(at int64) {
		s.read(at, newBatch().holds("n", at, pod("a"), gpu(0), 1).busy(device("n", gpu(0), h100), at, .5))
	})
	nothing := func(at int64) batch {
		return newBatch().point(on("n"), names.GPUAllocation, at, nil, attrs{"k8s.node.name": "n"}).busy(device("n", gpu(0), h100), at, .5)
	}
	every(t0+10*minute, t0+20*minute, 15*second, func(at int64) { s.read(at, nothing(at)) })
	assert.Equal(t, map[string]float64{"a": 600}, s.rows(), "the account was closed at once")
	assert.Zero(t, s.ledger.Boards())

	// The end of a series alone ends nothing.
	every(t0+20*minute, t0+30*minute, 15*second, func(at int64) {
		b := newBatch().holds("n", at, pod("b"), gpu(0), 1)
		_, point := held(gpu(0), 1)
		s.read(at, b.point(on("n", pod("a")), names.GPUAllocation, at, nil, point))
	})
	assert.Equal(t, map[string]float64{"a": 600, "b": 570}, s.rows())
}

func TestNodesThatTakeNoPods(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+40*minute+30*second, 15*second, func(at int64) {
		b := newBatch().free("n", at, gpu(0)).holds("n", at, pod("a"), gpu(1), 1)
		minutes := (at - t0) / minute
		flag := func(is bool) int {
			if is {
				return 1
			}
			return 0
		}
		b.point(on("n"), names.GPUNodeSchedulable, at, flag(minutes < 10 || minutes >= 20), attrs{"k8s.node.name": "n"})
		b.point(on("n"), names.GPUNodeMIGReconfiguring, at, flag(minutes >= 15 && minutes < 30), attrs{"k8s.node.name": "n"})
		s.read(at, b)
	})
	got := s.rows()
	assert.InDelta(t, 20*60, got["(unavailable)"], 15)
	assert.InDelta(t, 20*60, got["(free)"], 15)
	assert.Equal(t, 40*60., got["a"])
}

func TestTimesThatCannotBe(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+10*minute, 15*second, func(at int64) {
		b := newBatch().holds("n", at, pod("a"), gpu(0), 1)
		b.holds("n", at+maxAhead+1, pod("b"), gpu(0), 1).holds("n", at-maxAge-1, pod("b"), gpu(0), 1).holds("n", 0, pod("b"), gpu(0), 1)
		b.info("n", at+day, attrs{"host.type": "later"}).busy(device("n", gpu(0), h100), at+hour, .5)
		s.read(at, b)
	})
	assert.Equal(t, map[string]float64{"a": 570}, s.rows())
	assert.Equal(t, Counts{Future: 3 * 40, Old: 2 * 40}, s.Counts())
	assert.Empty(t, s.total("a").Key.HostType)
}

func TestValuesThatCannotBe(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+10*minute+30*second, 15*second, func(at int64) {
		b := newBatch()
		for n, v := range []float64{math.NaN(), 1.5, -.1, .5, .5} {
			b.holds("n", at, pod(fmt.Sprint("p", n)), gpu(n), 1)
			of := device("n", gpu(n), h100)
			task := "general"
			if n == 4 {
				task = "encoder"
			}
			b.point(of, names.GPUUtilization, at, v, attrs{"hw.gpu.task": task})
			joules := float64(at-t0) * .3
			if n == 1 {
				joules = float64(at-t0) * 10 // 10 kW
			}
			b.burnt(of, at, joules).point(of, names.GPUPowerLimit, at, 700., attrs{"gpu.power.limit.kind": "enforced"})
		}
		s.read(at, b)
	})
	for n, want := range []float64{0, 0, 0, 300, 0} {
		total := s.total(fmt.Sprint("p", n))
		assert.Equal(t, want, float64(total.Used)/1000, n)
		assert.Equal(t, total.Time-2*total.Used, total.Unmeasured, n)
		joules := int64(180_000_000)
		if n == 1 {
			joules = 0
		}
		assert.InDelta(t, joules, total.Energy[ledger.OfBoard], 10_000_000, n)
	}
	assert.InDelta(t, 600_000, s.ledger.Counts().EnergyGap, 30_000)
	assert.Equal(t, int64(3*42), s.Counts().Invalid)
}

// Power is read where there is no counter of energy.
func TestPower(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+10*minute, 15*second, func(at int64) {
		of := device("n", gpu(0), h100)
		part := device("n", gpu(0)+"/1", h100, instanceOf(gpu(0), "7g.80gb"))
		s.read(at, newBatch().holds("n", at, pod("a"), gpu(0), 1).point(of, names.HwPower, at, 300., nil).point(part, names.HwPower, at, 300., nil))
	})
	assert.InDelta(t, 300*1000*570, s.total("a").Energy[ledger.Integrated], 300*1000*15)
}

// Where nothing adds a service to gpu.allocation, telemetry of the pod has it. That comes after
// the first points, and is the owner's from its beginning.
func TestServiceOfTelemetry(t *testing.T) {
	whole := pod("a")
	delete(whole, "k8s.container.name") // as of a device that several containers have
	for name, named := range map[string]attrs{"container": pod("a"), "pod": whole} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, nil)
			owner := pod("a")
			delete(owner, "service.name")
			every(t0, t0+10*minute, 15*second, func(at int64) {
				s.read(at, newBatch().holds("n", at, owner, gpu(0), 1))
				s.read(at+5*second, newBatch().busy(device("n", gpu(0), h100, named), at+5*second, .5))
			})
			assert.Equal(t, map[string]float64{"a": 570}, s.rows())
		})
	}
}

// A pod has one service, whichever of its points lack it for a while.
func TestServiceThatIsMissingForAWhile(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+10*minute, 15*second, func(at int64) {
		owner := pod("a")
		if at/minute%2 == 1 { // an agent that has just been started
			for _, key := range []string{"service.name", "k8s.pod.uid", "k8s.namespace.label.team"} {
				delete(owner, key)
			}
		}
		s.read(at, newBatch().holds("n", at, owner, gpu(0), 1))
	})
	assert.Equal(t, map[string]float64{"a": 570}, s.rows())
	assert.Equal(t, "team-a", s.total("a").Key.Tenant)
}

func TestBoardsAreReadOnce(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+10*minute, 15*second, func(at int64) {
		b := newBatch().holds("n", at, pod("a"), gpu(0), 1)
		s.read(at, b)
		s.read(at+second, b)
		s.read(at+2*second, newBatch().holds("n", at-second, pod("a"), gpu(0), 1))
	})
	assert.Equal(t, map[string]float64{"a": 570}, s.rows())
	assert.Positive(t, s.ledger.Counts().Late)
}

func TestExpire(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+10*minute, 15*second, func(at int64) {
		s.read(at, newBatch().holds("n", at, pod("a"), gpu(0), 1).busy(device("", gpu(1), h100, attrs{"host.name": "box"}), at, .5))
	})
	s.Expire(time.UnixMilli(t0 + 2*hour))
	require.Zero(t, s.owners.count)
	require.Empty(t, s.owners.named)
	require.Len(t, s.boards, 2)
	s.Expire(time.UnixMilli(t0 + 2*day))
	require.Empty(t, s.boards)
	require.Empty(t, s.nodes)
}
