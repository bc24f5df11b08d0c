// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// numberPoints are the points of a gauge or sum.
func numberPoints(m pmetric.Metric) (points pmetric.NumberDataPointSlice, ok bool) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints(), true
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints(), true
	}
	return points, false
}

// isDelta reports whether the points of the metric are what was added since the ones
// before.
func isDelta(m pmetric.Metric) bool {
	return m.Type() == pmetric.MetricTypeSum && m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta
}

// eachPoint calls f with every gauge and sum point of md.
func eachPoint(md pmetric.Metrics, f func(metric string, resource pcommon.Map, p pmetric.NumberDataPoint)) {
	for _, rm := range md.ResourceMetrics().All() {
		resource := rm.Resource().Attributes()
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				points, ok := numberPoints(m)
				if !ok {
					continue
				}
				for _, p := range points.All() {
					f(m.Name(), resource, p)
				}
			}
		}
	}
}

// number is the point's value; it is NaN where there is none.
func number(p pmetric.NumberDataPoint) float64 {
	switch {
	case p.Flags().NoRecordedValue():
		return math.NaN()
	case p.ValueType() == pmetric.NumberDataPointValueTypeInt:
		return float64(p.IntValue())
	case p.ValueType() == pmetric.NumberDataPointValueTypeDouble:
		return p.DoubleValue()
	}
	return math.NaN()
}

// service is the subject of service rules.
type service struct{ cluster, namespace, name string }

// serviceOf reads the service that a point is about. Identity is on the point;
// where a pipeline took it off, it is on the resource.
func serviceOf(resource, point pcommon.Map) service {
	return service{
		cluster:   text(names.K8sClusterName, resource, point),
		namespace: text(names.K8sNamespaceName, resource, point),
		name:      text(names.ServiceName, resource, point),
	}
}

func text(key string, resource, point pcommon.Map) string {
	for _, attrs := range [...]pcommon.Map{point, resource} {
		if v, ok := attrs.Get(key); ok && v.Type() == pcommon.ValueTypeStr && v.Str() != "" {
			return bounded(v.Str())
		}
	}
	return ""
}

// put writes the identity as attributes of a resource.
func (s service) put(attrs pcommon.Map) {
	for _, a := range [...]struct{ key, value string }{
		{names.K8sClusterName, s.cluster},
		{names.K8sNamespaceName, s.namespace},
		{names.ServiceName, s.name},
	} {
		if a.value != "" {
			attrs.PutStr(a.key, a.value)
		}
	}
}

// String names the service in a sentence.
func (s service) String() string {
	out := "Service " + clean(s.name)
	if s.namespace != "" {
		out += " in namespace " + clean(s.namespace)
	}
	if s.cluster != "" {
		out += " of cluster " + clean(s.cluster)
	}
	return out
}
