// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Boards that a scheduler divides, with the telemetry that gpu_pod makes of them: the board
// without an owner, and a replica for each part. Four quarters are one GPU-hour; of parts of
// any size the rest is free.
func TestPartsOfSchedulers(t *testing.T) {
	for name, tt := range map[string]struct {
		parts []float64
		want  map[string]float64
	}{
		"four quarters":  {[]float64{.25, .25, .25, .25}, map[string]float64{"p0": 900, "p1": 900, "p2": 900, "p3": 900, "(free)": 3600}},
		"any sizes":      {[]float64{.3, .45}, map[string]float64{"p0": 1080, "p1": 1620, "(free)": 900 + 3600}},
		"more than all":  {[]float64{.75, .75}, map[string]float64{"p0": 1800, "p1": 1800, "(free)": 3600}},
		"one, and whole": {[]float64{1}, map[string]float64{"p0": 3600, "(free)": 3600}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, nil)
			for n := range 242 {
				at := min(t0+int64(n)*15*second, t0+hour+1) // the last one ends the one before it
				b := newBatch()
				b.busy(device("n", gpu(0), h100), at, .5).busy(device("n", gpu(1), h100), at, 0)
				granted := attrs{"gpu.sharing": "hami", "gpu.attribution.source": "annotation"}
				for i, of := range tt.parts {
					owner, id := pod(fmt.Sprint("p", i)), fmt.Sprint(gpu(0), "::", i)
					if of == 1 {
						id = gpu(0)
					} else {
						b.busy(device("n", id, h100, owner, attrs{"hw.parent": gpu(0)}), at, .5)
					}
					b.holds("n", at, owner, id, of, granted, attrs{"gpu.allocation.share": of})
				}
				s.read(at, b.free("n", at, gpu(1), granted))
			}
			got := s.rows()
			assert.InDeltaMapValues(t, tt.want, got, 1e-3)
			sum := 0.
			for _, seconds := range got {
				sum += seconds
			}
			assert.InDelta(t, 2*3600, sum, 1e-3)
			assert.InDelta(t, tt.want["p0"]*1000/2, s.total("p0").Used, 2, "the board's utilization")
			assert.Zero(t, s.Counts())
		})
	}
}
