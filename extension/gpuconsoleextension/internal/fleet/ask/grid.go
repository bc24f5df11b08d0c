// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ask // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"

import (
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// Grid is the times of a line: start, start+step and so on.
type Grid struct {
	Start  time.Time
	Step   time.Duration
	Points int
}

// NewGrid is a grid over a window that ends at a time at the latest. It lies on
// multiples of its step, so that a later one has the same times.
func NewGrid(end time.Time, window, step time.Duration) Grid {
	last := end.Truncate(step).UTC()
	points := int(window/step) + 1
	return Grid{Start: last.Add(-time.Duration(points-1) * step), Step: step, Points: points}
}

// End is the last time.
func (g Grid) End() time.Time { return g.Start.Add(time.Duration(g.Points-1) * g.Step) }

// Line is a line without any data.
func (g Grid) Line() []*float64 { return make([]*float64, g.Points) }

// Fill puts a series on a line; what is no number is no data.
func (g Grid) Fill(line []*float64, s *model.SampleStream) {
	for _, p := range s.Values {
		i := int(p.Timestamp.Time().Sub(g.Start) / g.Step)
		if i >= 0 && i < g.Points && isNumber(float64(p.Value)) {
			value := float64(p.Value)
			line[i] = &value
		}
	}
}

// EndAt leaves out what a line has after a time; zero is never.
func (g Grid) EndAt(line []*float64, t time.Time) {
	for i := range line {
		if !t.IsZero() && g.Start.Add(time.Duration(i)*g.Step).After(t) {
			line[i] = nil
		}
	}
}

// ByDevice are the lines of an answer by their devices.
func (g Grid) ByDevice(found *model.Matrix) map[string][]*float64 {
	lines := map[string][]*float64{}
	for _, stream := range *found {
		line := g.Line()
		g.Fill(line, stream)
		lines[string(stream.Metric[queries.Device])] = line
	}
	return lines
}

// Common is the limit that some devices have in common; nil if they have none, or
// different ones.
func (g Grid) Common(limits map[string][]*float64, ids []string) []*float64 {
	var out []*float64
	for _, id := range ids {
		for i, v := range limits[id] {
			if v == nil {
				continue
			}
			if out == nil {
				out = g.Line()
			}
			if out[i] != nil && *out[i] != *v {
				return nil
			}
			out[i] = v
		}
	}
	return out
}
