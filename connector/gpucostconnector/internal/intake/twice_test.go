// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Two pipelines bring the same, each in its own order: it counts once, and what the kubelet
// could not name is placed as if it had come once.
func TestTwoPipelines(t *testing.T) {
	unresolved := attrs{"gpu.allocation.resolved": false}
	for _, times := range []int{1, 2} {
		s := newStory(t, nil)
		for at := t0; at <= t0+10*minute; at += 15 * second {
			for range times {
				b := newBatch().
					busy(device("n", gpu(0), h100, pod("a")), at, .5).busy(device("n", gpu(1), h100), at, 0).
					burnt(device("n", gpu(0), h100, pod("a")), at, float64(at-t0)*.3).
					holds("n", at, pod("a"), "n/nvidia0", 1, unresolved).free("n", at, "n/nvidia1", unresolved).
					holds("n", at, pod("lost"), "n/other", .5, unresolved)
				s.read(at, b)
			}
		}
		want := map[string]float64{"a": 585, "(unknown)": 585, "lost unplaced": 292.5}
		got := s.rows()
		for name, seconds := range want {
			assert.InDelta(t, seconds, got[name], 15, "%d times: %s", times, name)
		}
		assert.Len(t, got, len(want), "%d times: %v", times, got)
	}
}
