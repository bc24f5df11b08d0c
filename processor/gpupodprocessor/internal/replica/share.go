// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
)

// share is what the exporter measured for one replica alone, of the metrics that
// it measures so. The zero value has nothing.
type share struct {
	memory         int64   // bytes
	utilization    float64 // 0 to 1
	hasMemory      bool
	hasUtilization bool
}

// shareOf is the share of the replica part according to the exporter's list of
// owners. The exporter adds up the processes of a pod, and prints the same sum
// for whatever else of the device the pod holds: it is a replica's own only if
// the pod has no other, here and in the list.
func (w *Writer) shareOf(part ownership.Replica, parts []ownership.Replica, list pcommon.Slice) (s share) {
	if list == (pcommon.Slice{}) || w.Join.Policy.IgnoreLabels {
		return share{}
	}
	who := part.Owner
	held := 0
	for i := range parts {
		if h := &parts[i].Owner; h.SamePod(who) {
			held++
		}
	}
	var entry pcommon.Map
	listed := 0
	for _, v := range list.All() {
		if v.Type() != pcommon.ValueTypeMap {
			continue
		}
		if m := v.Map(); points.Str(m, names.ExporterPod) == who.Pod && points.Str(m, names.ExporterNamespace) == who.Namespace {
			entry = m
			listed++
		}
	}
	if held != 1 || listed != 1 || points.Str(entry, names.ExporterContainer) != who.Container {
		return share{}
	}
	if n := points.Str(entry, names.ExporterVGPU); n != "" && "::"+n != part.Suffix {
		return share{}
	}
	s.read(entry)
	return s
}

func (s *share) read(entry pcommon.Map) {
	if v, ok := entry.Get(names.GPUMemoryUsage.Name); ok && v.Type() == pcommon.ValueTypeInt && v.Int() >= 0 {
		s.memory, s.hasMemory = v.Int(), true
	}
	if v, ok := entry.Get(names.GPUUtilization.Name); ok && v.Type() == pcommon.ValueTypeDouble && v.Double() >= 0 && !math.IsInf(v.Double(), 1) {
		// A sum of rounded values, and not of one instant, may be above 1.
		s.utilization, s.hasUtilization = min(v.Double(), 1), true
	}
}

// of reports whether the metric has a value of the replica's own, instead of the
// device's.
func (s *share) of(metric string) bool {
	return s.hasMemory && metric == names.GPUMemoryUsage.Name || s.hasUtilization && metric == names.GPUUtilization.Name
}

// addMemory writes the memory of the replica id to dst where rm has the list of owners and
// no usage of the device's memory, which another receiver has.
func (s *share) addMemory(rm, dst pmetric.ResourceMetrics, id string, at pcommon.Timestamp) {
	if !s.hasMemory || rm.ScopeMetrics().Len() == 0 {
		return
	}
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			if m.Name() == names.GPUMemoryUsage.Name {
				return
			}
		}
	}
	dst.SetSchemaUrl(rm.SchemaUrl())
	scope := dst.ScopeMetrics().AppendEmpty()
	scope.SetSchemaUrl(rm.ScopeMetrics().At(0).SchemaUrl())
	rm.ScopeMetrics().At(0).Scope().CopyTo(scope.Scope())
	p := names.GPUMemoryUsage.Init(scope.Metrics().AppendEmpty()).AppendEmpty()
	p.SetTimestamp(at)
	p.SetIntValue(s.memory)
	p.Attributes().PutStr(names.HwID, id)
}

// put writes the replica's own value of the metric.
func (s *share) put(metric string, point pmetric.NumberDataPoint) {
	if metric == names.GPUMemoryUsage.Name {
		point.SetIntValue(s.memory)
		return
	}
	point.SetDoubleValue(s.utilization)
}
