// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"context"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// Where names a node, or a device with its parts. An empty cluster is that of
// telemetry that names none.
type Where struct{ Cluster, Node, Device string }

// selects reports whether a node is the one that is named, or has the device.
func (w Where) selects(n *inventory.Node) bool {
	switch {
	case n.ID.Cluster != w.Cluster:
		return false
	case w.Node != "" && n.ID.Name != w.Node:
		return false
	default:
		return w.Device == "" || slices.ContainsFunc(n.Devices, func(d *inventory.Device) bool { return d.ID.Name == w.Device })
	}
}

// lines are the devices of it that have a line: replicas measure what their device
// does, so they have none.
func (w Where) lines(inv *inventory.Inventory) []*inventory.Device {
	var found []*inventory.Device
	for _, n := range inv.Nodes {
		if !w.selects(n) {
			continue
		}
		for _, d := range n.Devices {
			named := w.Device == "" || d.ID.Name == w.Device || d.Parent == w.Device
			if named && (!strings.Contains(d.ID.Name, "::") || d.ID.Name == w.Device) {
				found = append(found, d)
			}
		}
	}
	slices.SortFunc(found, inventory.CompareDevices)
	return found
}

func readDeviceRange(ctx context.Context, r *reading, where Where, w Window) (*consoleapi.DeviceRangeAnswer, error) {
	inventory := r.inventory(queries.Is(queries.Cluster, where.Cluster))
	if err := r.Wait(); err != nil {
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
	g := w.grid(r.At, r.options.MaxPoints)
	out := &consoleapi.DeviceRangeAnswer{
		Window: w.Name, Start: g.Start, End: g.End(), Step: g.Step.Seconds(), Points: g.Points, Devices: []consoleapi.DeviceLine{},
	}
	if n := r.options.MaxLines; len(devices) > n {
		out.Truncated = len(devices) - n
		devices = devices[:n]
	}
	for _, d := range devices {
		r.Used(d.Seen)
		out.Devices = append(out.Devices, consoleapi.DeviceLine{
			ID: d.ID.Name, Parent: optional.Text(model.LabelValue(d.Parent)), Index: optional.Text(d.Identity[queries.Index]),
			MIGProfile: optional.Text(d.Identity[queries.MIGProfile]), MIGInstance: optional.Text(d.Identity[queries.MIGInstance]),
			Partition: optional.Text(d.Identity[queries.Partition]),
		})
	}
	if err := deviceLines(ctx, r.Questions, out, where.Cluster, g, queries.Smooth{Step: g.Step, Gap: r.options.gap()}); err != nil {
		return nil, err
	}
	charts := &out.Charts
	for _, chart := range []*consoleapi.Chart{&charts.Utilization, &charts.Memory, &charts.Power, &charts.Temperature, &charts.Clock, &charts.Throttle} {
		for i, d := range devices {
			g.EndAt(chart.Series[i].Values, d.FrozenSince)
		}
	}
	out.Freshness = r.Freshness()
	return out, nil
}

// deviceLines puts a line of every device on each chart.
func deviceLines(ctx context.Context, q *ask.Questions, out *consoleapi.DeviceRangeAnswer, cluster string, g ask.Grid, how queries.Smooth) error {
	ids := make([]string, 0, len(out.Devices))
	for _, d := range out.Devices {
		ids = append(ids, d.ID)
	}
	s := queries.And(queries.Is(queries.Cluster, cluster), queries.Fits(queries.OneOf(queries.Device, ids...)))
	q.More(ctx)
	ask := func(metric string, more queries.Selector, labels ...string) *model.Matrix {
		return q.Matrix(queries.DeviceChart(metric, queries.And(s, more), how, labels...), g)
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
	if err := q.Wait(); err != nil {
		return err
	}
	for _, c := range charts {
		*c.chart = newChart(c.unit)
		lines := g.ByDevice(c.found)
		for _, id := range ids {
			line := lines[id]
			if line == nil {
				line = g.Line()
			}
			c.chart.Series = append(c.chart.Series, consoleapi.Series{Name: id, Values: line})
		}
		if c.limit != nil {
			c.chart.Limit = g.Common(g.ByDevice(c.limit), ids)
		}
	}
	return nil
}
