// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// What goes wrong on nodes for a while: every second of it is in one state.
func TestTrouble(t *testing.T) {
	// whole is a node with one board that a pod has.
	whole := func(s *story, node, name string, now, at int64) {
		s.read(now, newBatch().holds(node, at, pod(name), gpu(0), 1).busy(device(node, gpu(0), h100), at, .5))
	}
	mig := func(s *story, now int64, parts map[string]string) {
		b := newBatch()
		for id, profile := range parts {
			b.holds("n", now, pod("a"), id, 1, attrs{"gpu.mig.profile": profile})
			b.busy(device("n", id, h100, instanceOf(gpu(0), profile), pod("a")), now, .5)
		}
		s.read(now, b)
	}
	const step = 15 * second
	for name, tt := range map[string]struct {
		run  func(s *story)
		want map[string]float64
	}{
		"the clock of a node is set back for a while": {
			func(s *story) {
				every(t0, t0+hour, step, func(at int64) {
					if back := at - t0; back > 10*minute && back < 30*minute {
						whole(s, "n", "a", at, at-40*minute)
					} else {
						whole(s, "n", "a", at, at)
					}
				})
			},
			map[string]float64{"a": 3600},
		},
		"and for good: the account stands still until it is passed": {
			func(s *story) {
				every(t0, t0+hour, step, func(at int64) {
					if at-t0 > 10*minute {
						whole(s, "n", "a", at, at-20*minute)
					} else {
						whole(s, "n", "a", at, at)
					}
				})
			},
			map[string]float64{"a": 2400},
		},
		"a node gets another name": {
			func(s *story) {
				every(t0, t0+hour, step, func(at int64) {
					if at-t0 > 20*minute {
						whole(s, "renamed", "a", at, at)
					} else {
						whole(s, "n", "a", at, at)
					}
				})
			},
			map[string]float64{"a": 3600},
		},
		"two nodes claim one board": {
			func(s *story) {
				every(t0, t0+hour, step, func(at int64) {
					whole(s, "n", "a", at, at)
					whole(s, "other", "a", at+second, at+second)
				})
			},
			map[string]float64{"a": 3600},
		},
		"a board is put into another node, which takes longer than the bridge": {
			func(s *story) {
				every(t0, t0+10*minute, step, func(at int64) { whole(s, "n", "a", at, at) })
				every(t0+90*minute, t0+100*minute, step, func(at int64) { whole(s, "other", "a", at, at) })
			},
			map[string]float64{"a": 1170, "(unknown)": 4815},
		},
		"MIG is made while nothing is reported": {
			func(s *story) {
				every(t0, t0+10*minute, step, func(at int64) { mig(s, at, map[string]string{gpu(0) + "/1": "3g.40gb", gpu(0) + "/2": "4g.40gb"}) })
				every(t0+20*minute, t0+30*minute, step, func(at int64) { mig(s, at, map[string]string{gpu(0) + "/1": "7g.80gb"}) })
			},
			map[string]float64{"a": 1170, "(unknown)": 615},
		},
		"MIG is made, and reported": {
			func(s *story) {
				every(t0, t0+10*minute, step, func(at int64) { mig(s, at, map[string]string{gpu(0) + "/1": "7g.80gb"}) })
				every(t0+10*minute+step, t0+20*minute, step, func(at int64) { mig(s, at, map[string]string{gpu(0) + "/1": "1g.10gb"}) })
			},
			map[string]float64{"a": 600 + 15 + 585./7, "(stranded)": 585 * 6 / 7.},
		},
		"an agent is restarted, and its kubelet lists nothing at first": {
			func(s *story) {
				every(t0, t0+10*minute, step, func(at int64) { whole(s, "n", "a", at, at) })
				s.read(t0+11*minute, newBatch().point(on("n"), names.GPUAllocation, t0+11*minute, nil, nil))
				every(t0+12*minute, t0+20*minute, step, func(at int64) { whole(s, "n", "a", at, at) })
			},
			map[string]float64{"a": 660 + 480},
		},
		"an agent is restarted, and lists nothing until it knows": {
			func(s *story) {
				every(t0, t0+10*minute, step, func(at int64) { whole(s, "n", "a", at, at) })
				every(t0+20*minute, t0+30*minute, step, func(at int64) { whole(s, "n", "a", at, at) })
			},
			map[string]float64{"a": 1800},
		},
		"the labels of a pod change its tenant and service": {
			func(s *story) {
				every(t0, t0+hour, step, func(at int64) {
					of := pod("a")
					if at-t0 > 30*minute {
						of["service.name"] = "b"
					}
					s.read(at, newBatch().holds("n", at, of, gpu(0), 1))
				})
			},
			map[string]float64{"a": 1815, "b": 1785},
		},
		"the cluster's name is missing for a while": {
			func(s *story) {
				every(t0, t0+hour, step, func(at int64) {
					b := newBatch().holds("n", at, pod("a"), gpu(0), 1)
					if at-t0 > 20*minute && at-t0 < 30*minute {
						b.md.ResourceMetrics().At(0).Resource().Attributes().Remove("k8s.cluster.name")
					}
					s.read(at, b)
				})
			},
			map[string]float64{"a": 3600},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, nil)
			s.t = t
			tt.run(s)
			got := s.rows()
			for row, seconds := range tt.want {
				// The newest interval is not credited.
				assert.InDelta(t, seconds, got[row], 31, row)
			}
			assert.Len(t, got, len(tt.want), "%v", got)
		})
	}
}
