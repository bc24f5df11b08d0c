// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"time"

	"github.com/prometheus/common/model"
)

// grid is the times of a line: start, start+step and so on.
type grid struct {
	start  time.Time
	step   time.Duration
	points int
}

// newGrid is a grid over a window that ends at a time at the latest. It lies on
// multiples of its step, so that a later one has the same times.
func newGrid(end time.Time, window, step time.Duration) grid {
	last := end.Truncate(step).UTC()
	points := int(window/step) + 1
	return grid{start: last.Add(-time.Duration(points-1) * step), step: step, points: points}
}

func (g grid) end() time.Time { return g.start.Add(time.Duration(g.points-1) * g.step) }

// line is a line without any data.
func (g grid) line() []*float64 { return make([]*float64, g.points) }

// fill puts a series on a line; what is no number is no data.
func (g grid) fill(line []*float64, s *model.SampleStream) {
	for _, p := range s.Values {
		i := int(p.Timestamp.Time().Sub(g.start) / g.step)
		if i >= 0 && i < g.points && isNumber(float64(p.Value)) {
			line[i] = pointer(float64(p.Value))
		}
	}
}
