// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// eachPoint calls f with every gauge and sum point of md.
func eachPoint(md pmetric.Metrics, f func(metric string, resource pcommon.Map, p pmetric.NumberDataPoint)) {
	for _, rm := range md.ResourceMetrics().All() {
		resource := rm.Resource().Attributes()
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				dps, ok := points.Numbers(m)
				if !ok {
					continue
				}
				for _, p := range dps.All() {
					f(m.Name(), resource, p)
				}
			}
		}
	}
}

// text is a text attribute of the point, or else of the resource.
func text(key string, resource, point pcommon.Map) string {
	for _, attrs := range [...]pcommon.Map{point, resource} {
		if v := points.Str(attrs, key); v != "" {
			return event.Bounded(v)
		}
	}
	return ""
}
