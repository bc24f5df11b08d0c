// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

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
