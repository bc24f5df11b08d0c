// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package replica makes resources for the parts of a shared device that have owners.
package replica

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/seriesend"
)

// Writer writes replicas.
type Writer struct {
	Join    *identity.Join
	Tracker *seriesend.Tracker
}

// Write writes, for each part of the shared device in rm that has an owner,
// a resource with the inputs of the summary to out, and ends the series of the
// parts that have none any more. The values are those of the whole device and
// are marked so, except for what the exporter measured for the part alone, see share.
//
// Nothing is written for a device of which a component upstream wrote the parts already.
func (w *Writer) Write(id string, f *ownership.Fact, list pcommon.Slice, rm pmetric.ResourceMetrics, now time.Time, out pmetric.ResourceMetricsSlice) (c seriesend.Counts) {
	var parts []ownership.Replica
	if f != nil && f.State == ownership.Shared && !w.Join.Memory.ReplicasSeen(id, now) {
		parts = f.Replicas
	}
	if len(parts) == 0 && !w.Tracker.HasReplicas(id) {
		return c
	}
	has := points.ContentsOf(rm)
	if !has.Live {
		return c
	}
	written := false
	for _, part := range parts {
		own := pmetric.NewResourceMetrics()
		measured := w.shareOf(part, parts, list)
		utilization := copyInputs(rm, own, id+part.Suffix, &measured)
		measured.addMemory(rm, own, id+part.Suffix, has.Newest)
		if own.ScopeMetrics().Len() == 0 {
			continue // this resource has none of them
		}
		written = true
		attrs := own.Resource().Attributes()
		rm.Resource().Attributes().CopyTo(attrs)
		attrs.PutStr(names.HwID, id+part.Suffix)
		attrs.PutStr(names.HwParent, id)
		who := part.Owner
		uid, service := w.podOf(who, list)
		if points.Str(attrs, names.ServiceName) != "" {
			service = ""
		}
		identity.Put(attrs, who, uid, service)
		to := out.AppendEmpty()
		own.MoveTo(to)
		c.Add(w.Tracker.Observe(id+part.Suffix, who, identity.SourceReplica, nil, to, points.ContentsOf(to), now, out))
		if utilization {
			c.Ended += w.Tracker.EndReplaced(id+part.Suffix, measured.hasUtilization, has.Newest, out)
		}
	}
	if len(parts) > 0 && !written {
		return c
	}
	c.Ended += w.Tracker.KeepReplicas(id, parts, has.Newest, now, out)
	return c
}

// podOf is the pod's uid and service in the exporter's list of owners, as
// far as they are wanted.
func (w *Writer) podOf(who owner.Owner, list pcommon.Slice) (uid, service string) {
	if w.Join.Policy.ServiceFromLabels {
		service = who.Pod
	}
	if list == (pcommon.Slice{}) {
		return "", service
	}
	for _, v := range list.All() {
		if v.Type() != pcommon.ValueTypeMap {
			continue
		}
		m := v.Map()
		if points.Str(m, names.ExporterPod) != who.Pod || points.Str(m, names.ExporterNamespace) != who.Namespace {
			continue
		}
		if uid == "" {
			uid = points.Str(m, names.ExporterPodUID)
		}
		if service == who.Pod && service != "" {
			service = identity.ServiceName(who.Pod, m)
		}
	}
	return uid, service
}

// copyInputs copies the live points of rm that a service's averages are made of,
// with the replica's own value where measured has one. It reports whether utilization is
// among them.
func copyInputs(rm, dst pmetric.ResourceMetrics, id string, measured *share) (utilization bool) {
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
			for _, point := range numbersOf(m).All() {
				if point.Flags().NoRecordedValue() || len(values) > 0 && !oneOf(points.Str(point.Attributes(), key), values) {
					continue
				}
				if to == (pmetric.NumberDataPointSlice{}) {
					if scope == (pmetric.ScopeMetrics{}) {
						scope = dst.ScopeMetrics().AppendEmpty()
						scope.SetSchemaUrl(sm.SchemaUrl())
						sm.Scope().CopyTo(scope.Scope())
					}
					own := scope.Metrics().AppendEmpty()
					points.Describe(m, own)
					to = numbersOf(own)
				}
				utilization = utilization || m.Name() == names.GPUUtilization.Name
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
	return utilization
}

// numbersOf are the points of a gauge or sum, and none of another type.
func numbersOf(m pmetric.Metric) pmetric.NumberDataPointSlice {
	if all, ok := points.Numbers(m); ok {
		return all
	}
	return pmetric.NewNumberDataPointSlice()
}

// noInput is the key for a metric that a replica does not have.
const noInput = "-"

var (
	tasks = []string{"general"}
	pipes = []string{"tensor", "fp16", "fp32"}
)

// inputOfSummary selects which points of a metric are copied: those with an
// attribute key that has one of values, or all if key is empty.
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
