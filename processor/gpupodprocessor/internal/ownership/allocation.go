// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// Node is a Kubernetes node. The cluster may be unknown.
type Node struct{ Cluster, Name string }

// NodeOf is the node that the attributes of a resource name.
func NodeOf(resource pcommon.Map) Node {
	return Node{Cluster: points.Str(resource, names.K8sClusterName), Name: points.Str(resource, names.K8sNodeName)}
}

func (n Node) id() string {
	if n.Cluster == "" {
		return n.Name
	}
	return n.Cluster + "\x00" + n.Name
}

func (n Node) clone() Node { return Node{strings.Clone(n.Cluster), strings.Clone(n.Name)} }

// may reports whether both can be the same node.
func (n Node) may(o Node) bool {
	return n.Name == o.Name && (n.Cluster == o.Cluster || n.Cluster == "" || o.Cluster == "")
}

// Allocation is one point of gpu.allocation, and where it is in its batch.
type Allocation struct {
	Node  Node        // its Name is empty where neither resource nor point names one
	Owner owner.Owner // of the resource; none of a device that is free
	ID    string      // hw.id; a stale marker without one: the node has no device
	Stale bool        // it is a stale marker
	// Source is gpu.attribution.source, and Manager what it stands for.
	Source  string
	Manager Manager
	// Interval is the time between two snapshots, 0 where it is unknown.
	Interval time.Duration

	Resource pmetric.ResourceMetrics
	Scope    pmetric.ScopeMetrics
	Metric   pmetric.Metric
	Point    pmetric.NumberDataPoint
}

// Allocations appends the points of gpu.allocation in all to to, in order. They are of
// use until points of all are moved or removed.
func Allocations(to []Allocation, all pmetric.ResourceMetricsSlice) []Allocation {
	for _, rm := range all.All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() == names.GPUAllocation.Name {
					to = allocationsOf(to, rm, sm, m)
				}
			}
		}
	}
	return to
}

func allocationsOf(to []Allocation, rm pmetric.ResourceMetrics, sm pmetric.ScopeMetrics, m pmetric.Metric) []Allocation {
	numbers, ok := points.Numbers(m)
	if !ok {
		return to
	}
	attrs := rm.Resource().Attributes()
	of := Allocation{
		Node: NodeOf(attrs), Owner: owner.Of(attrs), Interval: interval(m), Resource: rm, Scope: sm, Metric: m,
	}
	for _, p := range numbers.All() {
		a := of
		if a.Node.Name == "" {
			a.Node.Name = points.Str(p.Attributes(), names.K8sNodeName)
		}
		a.ID, a.Stale, a.Point = points.Str(p.Attributes(), names.HwID), p.Flags().NoRecordedValue(), p
		a.Source = points.Str(p.Attributes(), names.GPUAttributionSource)
		a.Manager = managerOf(a.Source)
		to = append(to, a)
	}
	return to
}

// interval is the time between two snapshots, as gpu_allocation sends it with them; 0
// where it does not.
func interval(m pmetric.Metric) time.Duration {
	v, ok := m.Metadata().Get(names.GPUAllocationInterval)
	if !ok || v.Type() != pcommon.ValueTypeDouble || !(v.Double() > 0) {
		return 0
	}
	return time.Duration(min(v.Double(), MaxSilence.Seconds()) * float64(time.Second))
}

// Reporter is what the point is from.
func (a *Allocation) Reporter() Reporter { return Reporter{a.Node, a.Manager} }

// nested reports whether the job has the device within a pod.
func (a *Allocation) nested() bool {
	if a.Manager != Slurm {
		return false
	}
	v, ok := a.Point.Attributes().Get(names.GPUAllocationNested)
	return ok && v.Type() == pcommon.ValueTypeBool && v.Bool()
}

// Whole reports whether the point gives the device to one owner whole, or to none.
func (a *Allocation) Whole() bool {
	share := points.Value(a.Point)
	return (share == 0 || share == 1) && !a.shared()
}

// shared reports whether the device is shared by time-slicing or MPS.
func (a *Allocation) shared() bool {
	sharing := points.Str(a.Point.Attributes(), names.GPUSharing)
	return sharing != "" && sharing != names.SharingNone
}

// possible reports whether the share can be true: an owner has a part of the device,
// and a device without an owner is free.
func (a *Allocation) possible() bool {
	const rounding = 1e-6
	share := points.Value(a.Point)
	switch {
	case !a.Owner.Valid():
		return false
	case a.Owner.IsZero():
		return share == 0
	}
	return share > 0 && share <= 1+rounding // NaN is neither
}
