// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package intake reads metrics into the ledger: what gpu.allocation reports about the parts
// of boards and their owners, what is known of nodes and devices, and how busy boards are
// and what they burn. It has no clock, goroutine or I/O.
//
// A snapshot of a node is all points of gpu.allocation of one time, which may arrive in
// several batches; it is complete when a point of a later one arrives. What the kubelet
// could not name is then placed where the telemetry of the node leaves one possibility. A
// node without any gpu.allocation is accounted by the telemetry of its boards alone.
package intake

import (
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/pricing"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	second = int64(1000)
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour

	// maxAhead is how far a point may be ahead of the clock, and maxAge how far behind.
	maxAhead = 5 * minute
	maxAge   = day
	// maxID is the longest hw.id, in bytes.
	maxID = 256
)

// Config is what decides how points are read.
type Config struct {
	// Tenant are resource attributes; the first that is not empty is the tenant.
	Tenant    []string
	MIGShare  share.MIGBy
	MIGSlices []share.ModelSlices
	VGPUShare share.VGPUBy
	// MaxDevices bounds the boards, and likewise the nodes and the owners, that are
	// remembered.
	MaxDevices int
	// Gauges are those of other receivers that prices and intensities are taken from.
	Gauges map[string]pricing.Gauge
	// NodeLabels are the labels of nodes that prices depend on, sorted.
	NodeLabels []string
}

// ModelSlices are the slices of a configuration, those of longer names first: the first
// that fits decides.
func ModelSlices(slicesOf map[string]share.Slices) []share.ModelSlices {
	all := make([]share.ModelSlices, 0, len(slicesOf))
	for _, model := range slices.Sorted(maps.Keys(slicesOf)) {
		all = append(all, share.ModelSlices{Model: model, Slices: slicesOf[model]})
	}
	slices.SortStableFunc(all, func(a, b share.ModelSlices) int { return len(b.Model) - len(a.Model) })
	return all
}

// Counts are points that were not used, since New.
type Counts struct {
	Future     int64 // ahead of the clock
	Old        int64 // older than a day
	Refused    int64 // of boards, nodes or owners beyond the limit
	Invalid    int64 // that contradict themselves, or have a value that cannot be
	Unresolved int64 // of an owner that could not be placed on a board
}

// Intake reads metrics into a ledger. It is not safe for concurrent use.
type Intake struct {
	snapshots
	resources []resource
}

// New returns an Intake for a ledger. What the ledger knows of boards and nodes from before
// a restart is known from the beginning.
func New(cfg Config, l *ledger.Ledger, now time.Time) *Intake {
	x := &Intake{snapshots: snapshots{fleet: newFleet(cfg, now.UnixMilli()), ledger: l}}
	l.Known(x.restore)
	return x
}

// restore takes over what the ledger knows of a board.
func (x *Intake) restore(k *ledger.Known) {
	n := x.node(k.Cluster, k.Node)
	if n == nil {
		return
	}
	b := x.board(k.Board)
	if b == nil {
		return
	}
	n.take(b)
	b.model, b.listed, b.seen = k.Class.Model, k.Listed != 0, k.Until
	if k.Job {
		b.held[bySlurm] = k.Until
	}
	n.listed = max(n.listed, k.Listed)
	n.facts = facts{k.Class.HostType, k.Class.Region, k.Class.Capacity, k.Class.Pool, k.Class.Labels}
	for _, p := range k.Parts {
		if q := b.part(p.ID); q != nil {
			q.describe(p.Profile)
		}
	}
}

// Counts are what was not used.
func (x *Intake) Counts() Counts { return x.counts }

// Read reads a batch. now bounds the times of its points.
func (x *Intake) Read(md pmetric.Metrics, now time.Time) {
	x.now = now.UnixMilli()
	x.resources = x.resources[:0]
	// What is known of nodes and devices decides about allocations, and these about what
	// is measured: the order within a batch does not matter.
	for _, rm := range md.ResourceMetrics().All() {
		if what := x.contents(rm); what != 0 {
			x.resources = append(x.resources, resource{})
			r := &x.resources[len(x.resources)-1]
			r.read(rm, what)
			x.describe(r)
			if what&hasGauges != 0 {
				x.gauges(r)
			}
		}
	}
	for i := range x.resources {
		if r := &x.resources[i]; r.what&hasAllocation != 0 {
			x.allocations(r)
		}
	}
	for i := range x.resources {
		if r := &x.resources[i]; r.what&hasValues != 0 && !r.other {
			x.values(r)
		}
	}
	clear(x.resources)
}

// Expire forgets what has been silent for long. While nothing comes nothing is forgotten: the
// clock may only be ahead.
func (x *Intake) Expire(now time.Time) {
	at := min(now.UnixMilli(), x.newest)
	x.owners.forget(at - hour)
	for id, b := range x.boards {
		if at-max(b.seen, b.named) > day {
			if b.node != nil {
				b.node.drop(b)
			}
			delete(x.boards, id)
		}
	}
	x.last = nil
	maps.DeleteFunc(x.nodes, func(_ nodeKey, n *node) bool { return len(n.boards) == 0 && at-max(n.at, n.seen) > day })
	maps.DeleteFunc(x.hosts, func(_ nodeKey, n *node) bool { return x.nodes[n.key] != n })
	if len(x.classes) > 2*len(x.boards)+16 {
		x.forgetClasses()
	}
}

// UnusedTenantKeys returns keys of Tenant that no owner's resource has carried for an hour.
// Each is returned once.
func (x *Intake) UnusedTenantKeys(now time.Time) []string { return x.tenants.unused(now.UnixMilli()) }

// what of a resource is read.
const (
	hasAllocation uint8 = 1 << iota
	hasNode
	hasValues
	hasGauges
)

// contents are what of the resource's metrics is read.
func (x *Intake) contents(rm pmetric.ResourceMetrics) (what uint8) {
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			switch m.Name() {
			case names.GPUAllocation.Name:
				what |= hasAllocation
			case names.GPUNodeInfo.Name, names.GPUNodeSchedulable.Name, names.GPUNodeMIGReconfiguring.Name:
				what |= hasNode
			case names.GPUUtilization.Name, names.HwEnergy.Name, names.HwPower.Name, names.GPUMemoryLimit.Name, names.GPUPowerLimit.Name:
				what |= hasValues
			default:
				if _, is := x.cfg.Gauges[m.Name()]; is {
					what |= hasGauges
				}
			}
		}
	}
	return what
}
