// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/slurmallocationreceiver/internal/jobmap"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/slurmallocationreceiver/internal/metadata"
)

// Origin is what is the same in all batches of a receiver.
type Origin struct {
	K8sCluster, Node string // "" where it is unknown
	Version          string // of the scope
	Interval         time.Duration
	Nested           bool // slurmd runs in a pod
}

// info is what slurm.job.info has of a job beside its identity.
type info struct {
	owner                                        owner.Owner
	name, arrayJob, arrayTask, qos, restarts, id string
}

func infoOf(o owner.Owner, j *jobmap.Job) info {
	return info{o, j.Name, j.ArrayJobID, j.ArrayTaskID, j.QOS, j.Restarts, j.SLUID}
}

func (i info) compare(o info) int {
	return cmp.Or(i.owner.Compare(o.owner), cmp.Compare(i.name, o.name), cmp.Compare(i.restarts, o.restarts))
}

// Metrics writes a snapshot: one resource for each job, and one for the free devices of the node.
// Every point has the snapshot's time. A snapshot without devices has a point without device and
// without value. Of what was written before it ends the slurm.job.info that is another now; nil:
// nothing was.
func (s *Snapshot) Metrics(before *Snapshot, from *Origin) pmetric.Metrics {
	md := pmetric.NewMetrics()
	at := pcommon.NewTimestampFromTime(s.At)
	scopes := map[owner.Owner]pmetric.MetricSlice{}
	scope := func(o owner.Owner) pmetric.MetricSlice {
		ms, ok := scopes[o]
		if !ok {
			ms = newScope(md, o, from)
			scopes[o] = ms
		}
		return ms
	}
	var points pmetric.NumberDataPointSlice
	for i := range s.allocations {
		a := &s.allocations[i]
		if i == 0 || a.owner != s.allocations[i-1].owner {
			points = newAllocation(scope(a.owner), from)
		}
		a.put(points.AppendEmpty(), at, from)
	}
	if len(s.allocations) == 0 {
		p := newAllocation(scope(owner.Owner{}), from).AppendEmpty()
		p.SetTimestamp(at)
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		p.Attributes().PutStr(names.K8sNodeName, from.Node)
		p.Attributes().PutStr(names.GPUAttributionSource, names.SourceSlurmJobMap)
	}
	if before != nil {
		for _, i := range before.infos {
			if !slices.Contains(s.infos, i) {
				i.put(scope(i.owner), at, from).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
			}
		}
	}
	for _, i := range s.infos {
		i.put(scope(i.owner), at, from).SetIntValue(1)
	}
	return md
}

func newScope(md pmetric.Metrics, o owner.Owner, from *Origin) pmetric.MetricSlice {
	rm := md.ResourceMetrics().AppendEmpty()
	attrs := rm.Resource().Attributes()
	attrs.EnsureCapacity(9)
	if from.K8sCluster != "" {
		attrs.PutStr(names.K8sClusterName, from.K8sCluster)
	}
	attrs.PutStr(names.K8sNodeName, from.Node)
	o.Put(attrs)
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(metadata.ScopeName)
	sm.Scope().SetVersion(from.Version)
	return sm.Metrics()
}

func newAllocation(ms pmetric.MetricSlice, from *Origin) pmetric.NumberDataPointSlice {
	m := ms.AppendEmpty()
	m.Metadata().PutDouble(names.GPUAllocationInterval, from.Interval.Seconds())
	return names.GPUAllocation.Init(m)
}

func (a *allocation) put(p pmetric.NumberDataPoint, at pcommon.Timestamp, from *Origin) {
	p.SetTimestamp(at)
	p.SetDoubleValue(a.share)
	attrs := p.Attributes()
	attrs.EnsureCapacity(8)
	attrs.PutStr(names.HwID, a.hwID)
	attrs.PutStr(names.GPUAttributionSource, names.SourceSlurmJobMap)
	attrs.PutStr(names.GPUSharing, a.sharing)
	attrs.PutBool(names.GPUAllocationResolved, a.resolved)
	put(attrs, names.GPUMIGUUID, a.mig)
	put(attrs, names.HwParent, a.parent)
	put(attrs, names.GPUMIGProfile, a.profile)
	if from.Nested {
		attrs.PutBool(names.GPUAllocationNested, true)
	}
}

// put adds a point without a value.
func (i *info) put(ms pmetric.MetricSlice, at pcommon.Timestamp, from *Origin) pmetric.NumberDataPoint {
	p := names.SlurmJobInfo.Init(ms.AppendEmpty()).AppendEmpty()
	p.SetTimestamp(at)
	attrs := p.Attributes()
	attrs.EnsureCapacity(7)
	attrs.PutStr(names.K8sNodeName, from.Node)
	put(attrs, names.SlurmJobName, i.name)
	put(attrs, names.SlurmArrayJobID, i.arrayJob)
	put(attrs, names.SlurmArrayTaskID, i.arrayTask)
	put(attrs, names.SlurmJobQOS, i.qos)
	put(attrs, names.SlurmRestartCount, i.restarts)
	put(attrs, names.SlurmSLUID, i.id)
	return p
}

func put(attrs pcommon.Map, key, value string) {
	if value != "" {
		attrs.PutStr(key, value)
	}
}
