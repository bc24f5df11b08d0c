// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// placeMarkers gives each marker in the resource of the device id, held by who, a
// metric of its own (see tracker.end). Where the resource names no holder, a marker goes to
// the resource under which its series was last passed on, in out.
func placeMarkers(t *tracker, id string, who holder, rm pmetric.ResourceMetrics, out pmetric.ResourceMetricsSlice) {
	var former pmetric.ResourceMetrics
	for _, sm := range rm.ScopeMetrics().All() {
		var formerScope pmetric.ScopeMetrics
		for i := range sm.Metrics().Len() {
			m := sm.Metrics().At(i)
			movePoints(m, func(attrs pcommon.Map, ts pcommon.Timestamp, marker bool) (pmetric.Metric, fate) {
				if !marker {
					return pmetric.Metric{}, stay
				}
				key := seriesKey(m.Name(), attrs)
				last, tracked := t.lastIdentity(id, key, ts)
				if who != (holder{}) || !tracked || last.holder == who {
					t.forget(id, who, key)
					own := sm.Metrics().AppendEmpty()
					describe(m, own)
					return own, moved
				}
				t.forget(id, last.holder, key)
				if former == (pmetric.ResourceMetrics{}) {
					former = out.AppendEmpty()
					former.SetSchemaUrl(rm.SchemaUrl())
					last.resource.CopyTo(former.Resource().Attributes())
				}
				if formerScope == (pmetric.ScopeMetrics{}) {
					formerScope = former.ScopeMetrics().AppendEmpty()
					formerScope.SetSchemaUrl(sm.SchemaUrl())
					sm.Scope().CopyTo(formerScope.Scope())
				}
				own := formerScope.Metrics().AppendEmpty()
				describe(m, own)
				return own, moved
			})
		}
	}
	removeEmpty(rm)
}
