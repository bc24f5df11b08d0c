// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuschedulingreceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// end writes behind now the ends of the series that before has and now has not: pods are
// scheduled, nodes go. Each is in a metric of its own, since the stock prometheus exporter stops
// reading a metric at the first marker in it.
func end(before, now pmetric.MetricSlice, at pcommon.Timestamp) {
	there := map[uint64]bool{}
	for _, m := range now.All() {
		points.Each(m, func(attrs pcommon.Map, _ pcommon.Timestamp, _ bool) {
			there[points.Key(m.Name(), attrs)] = true
		})
	}
	for _, m := range before.All() {
		points.Each(m, func(attrs pcommon.Map, _ pcommon.Timestamp, ended bool) {
			if ended || there[points.Key(m.Name(), attrs)] {
				return
			}
			last := now.AppendEmpty()
			points.Describe(m, last)
			points.AppendMarker(last, attrs, at, points.Bounds(m))
		})
	}
}
