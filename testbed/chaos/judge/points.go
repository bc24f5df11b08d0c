// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/claims"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

func text(attributes pcommon.Map, key string) string {
	if v, ok := attributes.Get(key); ok {
		return v.AsString()
	}
	return ""
}

func numbers(metric pmetric.Metric) pmetric.NumberDataPointSlice {
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		return metric.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		return metric.Sum().DataPoints()
	}
	return pmetric.NewNumberDataPointSlice()
}

func number(p pmetric.NumberDataPoint) float64 {
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(p.IntValue())
	}
	return p.DoubleValue()
}

func appendPoints(to []ownership.Point, resource pcommon.Map, metric pmetric.Metric, now time.Time) []ownership.Point {
	for _, dp := range numbers(metric).All() {
		if task := text(dp.Attributes(), names.HwGPUTask); task != "" && task != "general" {
			continue
		}
		to = append(to, ownership.Point{
			Arrived: now, Time: dp.Timestamp().AsTime(), Metric: metric.Name(),
			Node: text(resource, names.K8sNodeName), Device: text(dp.Attributes(), names.HwID), Value: number(dp),
			Owner: ownership.Owner{
				Namespace: text(resource, names.K8sNamespaceName), Pod: text(resource, names.K8sPodName),
				Container: text(resource, names.K8sContainerName), UID: text(resource, names.K8sPodUID),
			},
			Service: text(resource, names.ServiceName), Ended: dp.Flags().NoRecordedValue(),
		})
	}
	return to
}

func appendStates(to []claims.StatePoint, resource pcommon.Map, metric pmetric.Metric) []claims.StatePoint {
	if text(resource, names.K8sNamespaceName) != fleet.Namespace {
		return to
	}
	for _, dp := range numbers(metric).All() {
		to = append(to, claims.StatePoint{
			Service: text(resource, names.ServiceName), Pod: text(dp.Attributes(), names.K8sPodName), State: text(dp.Attributes(), names.GPUPodState),
			At: dp.Timestamp().AsTime(), Value: number(dp), Ended: dp.Flags().NoRecordedValue(),
		})
	}
	return to
}

type evaluationKey struct {
	service string
	at      pcommon.Timestamp
}

// evaluate adds the values of a metric, if it is about a service.
func evaluate(to map[evaluationKey]*Evaluation, resource pcommon.Map, metric pmetric.Metric, now time.Time) {
	average := averaged[metric.Name()]
	if !average && metric.Name() != names.ServicePods.Name && metric.Name() != names.ServicePartial.Name {
		return
	}
	for _, dp := range numbers(metric).All() {
		if dp.Flags().NoRecordedValue() || text(resource, names.K8sNamespaceName) != fleet.Namespace {
			continue
		}
		key := evaluationKey{text(resource, names.ServiceName), dp.Timestamp()}
		e := to[key]
		if e == nil {
			e = &Evaluation{Service: key.service, At: dp.Timestamp().AsTime(), Arrived: now, Pods: map[string]float64{}, values: map[string]float64{}}
			to[key] = e
		}
		v := number(dp)
		switch {
		case average:
			e.values[averageKey(metric.Name(), text(dp.Attributes(), names.GPUPipe))] = v
		case metric.Name() == names.ServicePods.Name:
			e.Pods[text(dp.Attributes(), names.GPUPodState)] = v
		default:
			e.Partial = &v
		}
	}
}
