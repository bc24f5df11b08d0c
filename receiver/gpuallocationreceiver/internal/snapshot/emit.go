// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/metadata"
)

// Origin is what is the same in all batches of a receiver.
type Origin struct {
	Cluster, Node string // "" where it is unknown
	Version       string // of the scope
	Interval      time.Duration
}

// Metrics writes a snapshot: one resource for each container that holds devices,
// and one for the free devices of the node. Every point has the snapshot's time.
func (s *Snapshot) Metrics(from *Origin) pmetric.Metrics {
	md := pmetric.NewMetrics()
	var points pmetric.NumberDataPointSlice
	for i, a := range s.allocations {
		if i == 0 || a.owner != s.allocations[i-1].owner {
			points = newResource(md, a.owner, from)
		}
		a.put(points.AppendEmpty(), pcommon.NewTimestampFromTime(s.At))
	}
	return md
}

// Nothing writes that the node has no device any more, which no share can express: a
// point without device and without value, of the snapshot's time.
func (s *Snapshot) Nothing(md pmetric.Metrics, from *Origin) {
	p := newResource(md, owner.Owner{}, from).AppendEmpty()
	p.SetTimestamp(pcommon.NewTimestampFromTime(s.At))
	p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	p.Attributes().PutStr(names.K8sNodeName, from.Node)
}

// AddTo writes what is known of the node, as of a time. Of what was written before it
// ends what is another series now; nil: nothing was.
func (s Node) AddTo(md pmetric.Metrics, before *Node, at time.Time, from *Origin) {
	ms := newScope(md, owner.Owner{}, from)
	point := func(m *names.Metric, is bool) {
		p := m.Init(ms.AppendEmpty()).AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		p.SetIntValue(0)
		if is {
			p.SetIntValue(1)
		}
		p.Attributes().PutStr(names.K8sNodeName, from.Node)
	}
	point(&names.GPUNodeSchedulable, s.schedulable)
	if s.hasMIG {
		point(&names.GPUNodeMIGReconfiguring, s.reconfiguring)
	}
	s.addInfo(ms, before, at, from)
}

// GivenInfo writes what the configuration has about a node for which the Kubernetes API is
// not asked.
func (r *NodeReader) GivenInfo(md pmetric.Metrics, at time.Time, from *Origin) {
	if len(r.Given) > 0 {
		Node{info: inOrder(r.Given)}.addInfo(newScope(md, owner.Owner{}, from), nil, at, from)
	}
}

func (s Node) addInfo(ms pmetric.MetricSlice, before *Node, at time.Time, from *Origin) {
	ended := before != nil && len(before.info) > 0 && !slices.Equal(before.info, s.info)
	if len(s.info) == 0 && !ended {
		return
	}
	points := names.GPUNodeInfo.Init(ms.AppendEmpty())
	if ended {
		p := before.info.put(points, at, from)
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	}
	if len(s.info) > 0 {
		s.info.put(points, at, from).SetIntValue(1)
	}
}

// put adds a point without a value.
func (i info) put(points pmetric.NumberDataPointSlice, at time.Time, from *Origin) pmetric.NumberDataPoint {
	p := points.AppendEmpty()
	p.SetTimestamp(pcommon.NewTimestampFromTime(at))
	attrs := p.Attributes()
	attrs.EnsureCapacity(len(i) + 1)
	attrs.PutStr(names.K8sNodeName, from.Node)
	for _, known := range i {
		attrs.PutStr(known.key, known.value)
	}
	return p
}

func newResource(md pmetric.Metrics, h owner.Owner, from *Origin) pmetric.NumberDataPointSlice {
	m := newScope(md, h, from).AppendEmpty()
	m.Metadata().PutDouble(names.GPUAllocationInterval, from.Interval.Seconds())
	return names.GPUAllocation.Init(m)
}

func newScope(md pmetric.Metrics, h owner.Owner, from *Origin) pmetric.MetricSlice {
	rm := md.ResourceMetrics().AppendEmpty()
	attrs := rm.Resource().Attributes()
	attrs.EnsureCapacity(5)
	if from.Cluster != "" {
		attrs.PutStr(names.K8sClusterName, from.Cluster)
	}
	attrs.PutStr(names.K8sNodeName, from.Node)
	h.Put(attrs)
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(metadata.ScopeName)
	sm.Scope().SetVersion(from.Version)
	return sm.Metrics()
}

func (a *allocation) put(p pmetric.NumberDataPoint, at pcommon.Timestamp) {
	p.SetTimestamp(at)
	p.SetDoubleValue(a.share)
	attrs := p.Attributes()
	attrs.EnsureCapacity(10)
	attrs.PutStr(names.HwID, a.hwID)
	attrs.PutStr(names.K8sResourceName, a.resource)
	attrs.PutStr(names.GPUAttributionSource, a.source)
	attrs.PutStr(names.GPUSharing, a.sharing)
	attrs.PutBool(names.GPUAllocationResolved, a.resolved)
	for _, known := range [...]struct{ key, value string }{
		{names.GPUMIGUUID, a.MIG}, {names.HwParent, a.Parent}, {names.GPUMIGProfile, a.Profile}, {names.GPUPartitionProfile, a.Partition},
	} {
		if known.value != "" {
			attrs.PutStr(known.key, known.value)
		}
	}
	if a.part > 0 {
		attrs.PutDouble(names.GPUAllocationShare, a.part)
	}
	if a.cores > 0 {
		attrs.PutDouble(names.GPUAllocationShareCores, a.cores)
	}
}
