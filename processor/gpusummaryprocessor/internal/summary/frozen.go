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

// frozen are the nodes of exporters that were frozen, by scrape.
type frozen map[scrape][]string

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
		at := scrape{inKubernetes(src.pod.cluster), t}
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

// still reports whether a point of a time is of a frozen exporter: of the same node as the
// device, where both name one.
func (f frozen) still(p *pod, h *held, time int64) bool {
	if len(f) == 0 {
		return false
	}
	for _, node := range f[scrape{inKubernetes(p.key.cluster), time}] {
		if node == h.node || node == "" || h.node == "" {
			return true
		}
	}
	return false
}

// prune forgets scrapes that are older than ttl.
func (f frozen) prune(now, ttl int64) {
	for at := range f {
		if now-at.time > ttl {
			delete(f, at)
		}
	}
}

// shifted returns the same with times that are step later.
func (f frozen) shifted(step int64) frozen {
	moved := make(frozen, len(f))
	for at, nodes := range f {
		at.time += step
		moved[at] = nodes
	}
	return moved
}
