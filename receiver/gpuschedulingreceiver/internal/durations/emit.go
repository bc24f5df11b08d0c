// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package durations

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Put writes the histograms.
func (t *Tracker) Put(ms pmetric.MetricSlice, now time.Time) {
	for is, m := range [NumTransitions]*names.Metric{&names.SchedulingSchedule, &names.SchedulingStart} {
		if len(t.records[is]) == 0 {
			continue
		}
		points := m.InitHistogram(ms.AppendEmpty())
		for at, h := range t.records[is] {
			h.Put(points.AppendEmpty(), at, now)
		}
	}
}
