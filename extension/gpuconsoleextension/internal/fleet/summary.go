// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// totals are sums over physical devices.
type totals struct {
	memoryUsed, memoryTotal, power *float64
	utilization                    *float64 // mean
	busy                           *int
}

// askTotals asks for sums; the function returns them after wait.
func (r *reading) askTotals() func() totals {
	sum := func(metric string) *model.Vector {
		return r.vector(queries.SumOfDevices(metric, queries.All, r.options.StaleAfter))
	}
	used, limit, power := sum(queries.MemoryUsage), sum(queries.MemoryLimit), sum(queries.Power)
	mean := r.vector(queries.MeanUtilization(queries.All, r.options.StaleAfter))
	busy := r.vector(queries.BusyPhysical(queries.All, r.options.IdleThreshold, r.options.StaleAfter))
	return func() totals {
		return totals{memoryUsed: single(used), memoryTotal: single(limit), power: single(power), utilization: single(mean), busy: whole(single(busy))}
	}
}

// single is the value of a vector of one.
func single(v *model.Vector) *float64 {
	if len(*v) == 0 {
		return nil
	}
	return pointer(float64((*v)[0].Value))
}

// summarize tells of the whole fleet. What nothing tells of is null.
func summarize(services []*service, inv *inventory, t totals, wrong []consoleapi.Reason) consoleapi.FleetSummary {
	out := consoleapi.FleetSummary{
		Services: pointer(len(services)), Attention: pointer(0), PodsPending: pending(services).Pods, Reasons: wrong[:min(len(wrong), maxReasons)], ReasonsTotal: len(wrong),
		Utilization: t.utilization, MemoryUsed: t.memoryUsed, MemoryTotal: t.memoryTotal, Power: t.power, DevicesBusy: t.busy,
	}
	for _, s := range services {
		if consoleapi.Pressing(s.Reasons) {
			*out.Attention++
		}
	}
	counts, allocations := consoleapi.NodeCounts{}, false
	for _, n := range inv.nodes {
		c := n.counts()
		counts.Devices += c.Devices
		counts.Held += c.Held
		counts.Idle += c.Idle
		counts.Free += c.Free
		counts.Unknown += c.Unknown + c.Lost
		allocations = allocations || !n.allocated.IsZero()
	}
	if counts.Devices == 0 {
		if len(services) == 0 {
			out.Services, out.Attention = nil, nil
		}
		return out
	}
	out.Devices, out.DevicesHeld, out.DevicesIdle, out.DevicesUnknown = &counts.Devices, &counts.Held, &counts.Idle, &counts.Unknown
	if allocations {
		out.DevicesFree = &counts.Free
	}
	return out
}
