// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// An exporter with a hung host engine answers every scrape with the previous values.
// gpu.exporter.frozen reports it of the exporter and not of its devices; but all points
// of a scrape have one time, and that of two scrapes differs by nanoseconds.

// scrape is what the points of one scrape have in common.
type scrape struct {
	cluster string
	time    int64
}

// maxTogether bounds the exporters that are scraped at the very same time.
const maxTogether = 64

// exporter takes the points of gpu.exporter.frozen of one exporter.
func (o *observer) exporter(src *source, m pmetric.Metric) {
	dps, ok := numbers(m)
	if !ok || m.Unit() != stillness.unit {
		return
	}
	for _, dp := range dps.All() {
		t, young := o.timeOf(dp, utilization)
		if !young || dp.Timestamp() == 0 || !(points.Value(dp) > 0) {
			continue
		}
		at := scrape{src.pod.cluster, t}
		nodes := o.frozen[at]
		switch {
		case slices.Contains(nodes, src.node):
		case len(nodes) == maxTogether, nodes == nil && len(o.frozen) >= o.cfg.MaxPods:
			o.tally.refuse(LimitPods, 1, src.pod, m.Name())
		default:
			o.frozen[at] = append(nodes, src.node)
		}
	}
}

// fresh reports whether the device has a current utilization.
func (s *Summary) fresh(p *pod, h *held, now, staleness int64) bool {
	return h.samples[utilization].fresh(now, staleness) && !s.still(p, h)
}

// stands distinguishes whether all that keeps it from being fresh is that its values stand
// still.
func (s *Summary) stands(p *pod, h *held, now, staleness int64) bool {
	return h.samples[utilization].fresh(now, staleness) && s.still(p, h)
}

// still reports whether the newest utilization is of a frozen exporter: of the same
// node, where both name one.
func (s *Summary) still(p *pod, h *held) bool {
	if len(s.frozen) == 0 {
		return false
	}
	for _, node := range s.frozen[scrape{p.key.cluster, h.samples[utilization].time}] {
		if node == h.node || node == "" || h.node == "" {
			return true
		}
	}
	return false
}

// pruneFrozen forgets scrapes with points that no longer count, whatever their interval.
func (s *Summary) pruneFrozen(now int64) {
	ttl := int64(max(s.cfg.ServiceTTL, s.cfg.StalenessAt(Outage)))
	for at := range s.frozen {
		if now-at.time > ttl {
			delete(s.frozen, at)
		}
	}
}
