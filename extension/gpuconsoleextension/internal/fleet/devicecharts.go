// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"context"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// Where names a node, or a device with its parts. An empty cluster is that of
// telemetry that names none.
type Where struct{ Cluster, Node, Device string }

// selects reports whether a node is the one that is named, or has the device.
func (w Where) selects(n *node) bool {
	switch {
	case n.id.cluster != w.Cluster:
		return false
	case w.Node != "" && n.id.name != w.Node:
		return false
	default:
		return w.Device == "" || slices.ContainsFunc(n.devices, func(d *device) bool { return d.id.name == w.Device })
	}
}

// lines are the devices of it that have a line: replicas measure what their device
// does, so they have none.
func (w Where) lines(inv *inventory) []*device {
	var found []*device
	for _, n := range inv.nodes {
		if !w.selects(n) {
			continue
		}
		for _, d := range n.devices {
			named := w.Device == "" || d.id.name == w.Device || d.parent == w.Device
			if named && (!strings.Contains(d.id.name, "::") || d.id.name == w.Device) {
				found = append(found, d)
			}
		}
	}
	slices.SortFunc(found, compareDevices)
	return found
}

// DeviceRange reads the charts of a node's devices, or of one device and its
// instances, over a window that ends now; nil is unknown.
func (r *Reader) DeviceRange(ctx context.Context, where Where, w Window) (*consoleapi.DeviceRangeAnswer, error) {
	reading := r.read(ctx)
	inventory := reading.askInventory(queries.Is(queries.Cluster, where.Cluster))
	if err := reading.wait(); err != nil {
		return nil, err
	}
	inv, err := inventory(ctx)
	if err != nil {
		return nil, err
	}
	devices := where.lines(inv)
	if len(devices) == 0 {
		return nil, nil
	}
	g := reading.grid(w)
	out := &consoleapi.DeviceRangeAnswer{
		Window: w.Name, Start: g.start, End: g.end(), Step: g.step.Seconds(), Points: g.points, Devices: []consoleapi.DeviceLine{},
	}
	if n := r.options.MaxLines; len(devices) > n {
		out.Truncated = len(devices) - n
		devices = devices[:n]
	}
	for _, d := range devices {
		reading.used(d.seen)
		out.Devices = append(out.Devices, consoleapi.DeviceLine{
			ID: d.id.name, Parent: text(model.LabelValue(d.parent)), Index: text(d.identity[queries.Index]),
			MIGProfile: text(d.identity[queries.MIGProfile]), MIGInstance: text(d.identity[queries.MIGInstance]),
		})
	}
	if err := reading.deviceLines(ctx, out, where.Cluster, g); err != nil {
		return nil, err
	}
	charts := &out.Charts
	for _, chart := range []*consoleapi.Chart{&charts.Utilization, &charts.Memory, &charts.Power, &charts.Temperature, &charts.Clock, &charts.Throttle} {
		for i, d := range devices {
			g.endAt(chart.Series[i].Values, d.frozenSince)
		}
	}
	out.Freshness = reading.freshness()
	return out, nil
}

// deviceLines puts a line of every device on each chart.
func (r *reading) deviceLines(ctx context.Context, out *consoleapi.DeviceRangeAnswer, cluster string, g grid) error {
	how := queries.Smooth{Step: g.step, Gap: r.options.gap()}
	ids := make([]string, 0, len(out.Devices))
	for _, d := range out.Devices {
		ids = append(ids, d.ID)
	}
	s := queries.And(queries.Is(queries.Cluster, cluster), queries.Fits(queries.OneOf(queries.Device, ids...)))
	r.more(ctx)
	ask := func(metric string, more queries.Selector, labels ...string) *model.Matrix {
		return r.matrix(queries.DeviceChart(metric, queries.And(s, more), how, labels...), g)
	}
	charts := []struct {
		chart        *consoleapi.Chart
		unit         string
		found, limit *model.Matrix
	}{
		{&out.Charts.Utilization, "1", ask(queries.Utilization, queries.Is(queries.Task, "general")), nil},
		{&out.Charts.Memory, "By", ask(queries.MemoryUsage, ""), ask(queries.MemoryLimit, "")},
		{&out.Charts.Power, "W", ask(queries.Power, ""), ask(queries.PowerLimit, queries.Is(queries.LimitKind, "enforced"))},
		{&out.Charts.Temperature, "Cel", ask(queries.Temperature, queries.Is(queries.Sensor, "gpu")), nil},
		{&out.Charts.Clock, "Hz", ask(queries.Clock, queries.Is(queries.ClockDomain, "sm")), nil},
		{&out.Charts.Throttle, "1", ask(queries.Throttle, queries.HeldDown, queries.Reason), nil},
	}
	if err := r.wait(); err != nil {
		return err
	}
	for _, c := range charts {
		*c.chart = newChart(c.unit)
		lines := g.byDevice(c.found)
		for _, id := range ids {
			line := lines[id]
			if line == nil {
				line = g.line()
			}
			c.chart.Series = append(c.chart.Series, consoleapi.Series{Name: id, Values: line})
		}
		if c.limit != nil {
			c.chart.Limit = g.common(g.byDevice(c.limit), ids)
		}
	}
	return nil
}

// byDevice are the lines of an answer by their devices.
func (g grid) byDevice(found *model.Matrix) map[string][]*float64 {
	lines := map[string][]*float64{}
	for _, stream := range *found {
		line := g.line()
		g.fill(line, stream)
		lines[string(stream.Metric[queries.Device])] = line
	}
	return lines
}

// common is the limit that some devices have in common; nil if they have none, or
// different ones.
func (g grid) common(limits map[string][]*float64, ids []string) []*float64 {
	var out []*float64
	for _, id := range ids {
		for i, v := range limits[id] {
			if v == nil {
				continue
			}
			if out == nil {
				out = g.line()
			}
			if out[i] != nil && *out[i] != *v {
				return nil
			}
			out[i] = v
		}
	}
	return out
}
