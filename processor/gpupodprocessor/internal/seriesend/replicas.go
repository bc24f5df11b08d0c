// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package seriesend

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
)

// EndReplaced ends the series of utilization that the replica id had until the
// data of time ts: the device's if it has its own now (own is true), its own if
// the exporter no longer prints it. Both together would count twice.
func (t *Tracker) EndReplaced(id string, own bool, ts pcommon.Timestamp, out pmetric.ResourceMetricsSlice) (ended int) {
	d := t.devices[id]
	if d == nil || d.newest != ts {
		return 0 // late, or not remembered
	}
	var replaced map[uint64]*series
	for key, s := range d.series {
		if s.family.metric.Name() != names.GPUUtilization.Name {
			continue
		}
		if _, copied := s.attrs.Get(names.GPUValueScope); copied == own {
			if replaced == nil {
				replaced = map[uint64]*series{}
			}
			replaced[key] = s
			d.drop(key)
		}
	}
	return t.end(&device{series: replaced}, ts, out)
}

// HasReplicas reports whether replicas of the device were written with it.
func (t *Tracker) HasReplicas(id string) bool {
	d := t.devices[id]
	return d != nil && len(d.replicas) > 0
}

// KeepReplicas remembers which replicas of the device were written with its data of time
// ts, and ends the series of those that were before and are not now. Late data, and a
// device that is not remembered, change nothing.
func (t *Tracker) KeepReplicas(id string, parts []ownership.Replica, ts pcommon.Timestamp, now time.Time, out pmetric.ResourceMetricsSlice) (ended int) {
	d := t.devices[id]
	if d == nil || ts < d.newest {
		return 0
	}
	for _, suffix := range d.replicas {
		gone := true
		for _, part := range parts {
			gone = gone && part.Suffix != suffix
		}
		if old := t.devices[id+suffix]; gone && old != nil && (old.newest < ts || now.Sub(old.lastSeen) > t.lateFor) {
			ended += t.end(old, endOf(old.newest, ts), out)
		}
	}
	d.replicas = d.replicas[:0]
	for _, part := range parts {
		d.replicas = append(d.replicas, part.Suffix)
	}
	return ended
}
