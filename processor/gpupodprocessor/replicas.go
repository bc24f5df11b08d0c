// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/holders"
)

// replicate writes, for each part of the shared device in rm that has a holder,
// a resource with the inputs of the summary to out, and ends the series of the
// parts that have none any more. The values are those of the whole device and
// say so, except for what the exporter measured for the part alone, see share.
//
// Nothing is written for a device whose parts somebody upstream wrote already.
func (p *gpuPod) replicate(id string, f *holders.Fact, said pcommon.Slice, rm pmetric.ResourceMetrics, now time.Time, out pmetric.ResourceMetricsSlice) (ended, untracked int) {
	var parts []holders.Replica
	if f != nil && f.State == holders.Shared && !p.know.ReplicasSeen(id, now) {
		parts = f.Replicas
	}
	d := p.tracker.devices[id]
	if len(parts) == 0 && (d == nil || len(d.replicas) == 0) {
		return 0, 0
	}
	has := contentsOf(rm)
	if !has.live {
		return 0, 0
	}
	written := false
	for _, part := range parts {
		own := pmetric.NewResourceMetrics()
		measured := p.shareOf(part, parts, said)
		copyInputs(rm, own, id+part.Suffix, &measured)
		if own.ScopeMetrics().Len() == 0 {
			continue // this resource has none of them
		}
		written = true
		attrs := own.Resource().Attributes()
		rm.Resource().Attributes().CopyTo(attrs)
		attrs.PutStr(names.HwID, id+part.Suffix)
		attrs.PutStr(names.HwParent, id)
		who := part.Holder
		uid, service := p.saidOf(who, said)
		if str(attrs, names.ServiceName) != "" {
			service = ""
		}
		putIdentity(attrs, who, uid, service)
		to := out.AppendEmpty()
		own.MoveTo(to)
		e, u := p.tracker.observe(id+part.Suffix, who, sourceReplica, nil, to, contentsOf(to), now, out)
		ended, untracked = ended+e, untracked+u
		ended += p.tracker.endReplaced(id+part.Suffix, measured.hasUtilization, has.newest, out)
	}
	if len(parts) > 0 && !written {
		return ended, untracked
	}
	if d != nil && has.newest >= d.newest {
		ended += p.tracker.keepReplicas(id, d, parts, has.newest, now, out)
	}
	return ended, untracked
}

// saidOf is the pod's uid and service as the exporter's list of holders tells
// them, as far as they are wanted.
func (p *gpuPod) saidOf(who owner.Owner, said pcommon.Slice) (uid, service string) {
	if p.cfg.ServiceName == ServiceNameExporterLabels {
		service = who.Pod
	}
	if said == (pcommon.Slice{}) {
		return "", service
	}
	for _, v := range said.All() {
		if v.Type() != pcommon.ValueTypeMap {
			continue
		}
		m := v.Map()
		if str(m, names.ExporterPod) != who.Pod || str(m, names.ExporterNamespace) != who.Namespace {
			continue
		}
		if uid == "" {
			uid = str(m, names.ExporterPodUID)
		}
		if service == who.Pod && service != "" {
			service = serviceName(who.Pod, m)
		}
	}
	return uid, service
}

// copyInputs copies the live points of rm that a service's averages are made of,
// with the replica's own value where measured has one.
func copyInputs(rm, dst pmetric.ResourceMetrics, id string, measured *share) {
	dst.SetSchemaUrl(rm.SchemaUrl())
	for _, sm := range rm.ScopeMetrics().All() {
		var scope pmetric.ScopeMetrics
		for _, m := range sm.Metrics().All() {
			key, values := inputOfSummary(m.Name())
			its := measured.of(m.Name())
			if key == noInput && !its || m.Type() != pmetric.MetricTypeGauge && m.Name() != names.GPUMemoryUsage.Name {
				continue
			}
			var to pmetric.NumberDataPointSlice
			for _, point := range numberPoints(m).All() {
				if point.Flags().NoRecordedValue() || len(values) > 0 && !oneOf(str(point.Attributes(), key), values) {
					continue
				}
				if to == (pmetric.NumberDataPointSlice{}) {
					if scope == (pmetric.ScopeMetrics{}) {
						scope = dst.ScopeMetrics().AppendEmpty()
						scope.SetSchemaUrl(sm.SchemaUrl())
						sm.Scope().CopyTo(scope.Scope())
					}
					own := scope.Metrics().AppendEmpty()
					describe(m, own)
					to = numberPoints(own)
				}
				copied := to.AppendEmpty()
				point.CopyTo(copied)
				copied.Attributes().PutStr(names.HwID, id)
				if its {
					measured.put(m.Name(), copied)
					break // of one device there is one
				}
				copied.Attributes().PutStr(names.GPUValueScope, names.ValueScopeDevice)
			}
		}
	}
}

// numberPoints are the points of a gauge or sum, and none of another type.
func numberPoints(m pmetric.Metric) pmetric.NumberDataPointSlice {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints()
	}
	return pmetric.NewNumberDataPointSlice()
}

// noInput is the key for a metric that a replica does not have.
const noInput = "-"

var (
	tasks = []string{"general"}
	pipes = []string{"tensor", "fp16", "fp32"}
)

// inputOfSummary says which points of a metric are copied: those whose attribute
// key has one of values, or all if key is empty.
func inputOfSummary(metric string) (key string, values []string) {
	switch metric {
	case names.GPUUtilization.Name:
		return names.HwGPUTask, tasks
	case names.GPUPipeActive.Name:
		return names.GPUPipe, pipes
	case names.GPUSMActive.Name, names.GPUDRAMActive.Name:
		return "", nil
	}
	return noInput, nil
}

func oneOf(s string, values []string) bool {
	for _, v := range values {
		if s == v {
			return true
		}
	}
	return false
}

// keepReplicas remembers which parts of the device were written, and ends the
// series of those that were before and are not now.
func (t *tracker) keepReplicas(id string, d *device, parts []holders.Replica, ts pcommon.Timestamp, now time.Time, out pmetric.ResourceMetricsSlice) (ended int) {
	for _, suffix := range d.replicas {
		gone := true
		for _, part := range parts {
			gone = gone && part.Suffix != suffix
		}
		if old := t.devices[id+suffix]; gone && old != nil && (old.newest < ts || now.Sub(old.heard) > t.lateFor) {
			ended += t.end(old, endOf(old.newest, ts), out)
		}
	}
	d.replicas = d.replicas[:0]
	for _, part := range parts {
		d.replicas = append(d.replicas, part.Suffix)
	}
	return ended
}
