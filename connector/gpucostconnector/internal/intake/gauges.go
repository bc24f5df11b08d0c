// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// gauges reads the gauges of a resource that prices and intensities are taken from.
func (x *Intake) gauges(r *resource) {
	for _, sm := range r.rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			g, is := x.cfg.Gauges[m.Name()]
			if !is {
				continue
			}
			dps, ok := points.Numbers(m)
			if !ok || points.IsDelta(m) {
				x.counts.Invalid++
				continue
			}
			for _, p := range dps.All() {
				at, ok := x.timeOf(p.Timestamp())
				if !ok || p.Flags().NoRecordedValue() {
					continue
				}
				key := ""
				for _, name := range g.Keys {
					key = cmp.Or(key, points.Str(p.Attributes(), name), points.Str(r.attrs, name))
				}
				if tooLong(r.cluster, key) || !g.Observe(r.cluster, strings.Clone(key), time.UnixMilli(at), points.Value(p)) {
					x.counts.Invalid++
				}
			}
		}
	}
}
