// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package seriesend

import (
	"maps"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
)

// Handovers are the devices that changed owner according to gpu.allocation while
// their telemetry still has the former one.
//
// As a rule the next telemetry arrives within an interval, and ends the former series
// when it starts the new ones: so a sum over devices never misses one. If it does not
// arrive, nothing else ends them, and a pod that is gone would seem to own the device
// for as long as the exporter is silent. So a later snapshot ends them, once an
// interval has passed since the change.
type Handovers struct {
	tracker *Tracker
	memory  *ownership.Memory
	waiting map[string]handover // by hw.id
}

type handover struct {
	from  ownership.Reporter
	since pcommon.Timestamp // time of the first snapshot with the change
}

// NewHandovers returns Handovers that compare the devices of the Tracker with the Memory.
func NewHandovers(t *Tracker, m *ownership.Memory) *Handovers {
	return &Handovers{tracker: t, memory: m, waiting: map[string]handover{}}
}

// Len is the number of devices that wait for telemetry.
func (h *Handovers) Len() int { return len(h.waiting) }

// Learned looks at the devices of a snapshot that was just learned, and appends to out
// the ends of the series of those that changed hands a while ago and were silent since.
func (h *Handovers) Learned(s ownership.Snapshot, now time.Time, out pmetric.ResourceMetricsSlice) (ended int) {
	h.memory.Devices(s.Reporter, func(id string, gone bool) {
		if _, waits := h.waiting[id]; !waits && h.changed(id, gone, now) {
			h.waiting[id] = handover{from: s.Reporter, since: s.Time}
		}
	})
	// Most of an interval: snapshots are not on time to the millisecond.
	grace := pcommon.Timestamp(s.Fresh / 4)
	for id, w := range h.waiting {
		switch {
		case w.from != s.Reporter:
			continue
		case w.since != s.Time && !h.changed(id, false, now):
			delete(h.waiting, id)
			continue
		}
		d := h.tracker.devices[id]
		if s.Time < w.since+grace || s.Time <= d.newest || d.newest >= w.since {
			continue
		}
		ended += h.tracker.end(d, s.Time, out)
		delete(h.waiting, id)
	}
	return ended
}

// Sweep forgets the devices that the Tracker forgot: their node may stay silent.
func (h *Handovers) Sweep() {
	maps.DeleteFunc(h.waiting, func(id string, _ handover) bool { return h.tracker.devices[id] == nil })
}

// changed reports whether the series of a device that are not ended have another
// owner by gpu.allocation than it has now. A device that is gone from the newest
// snapshot has none, and neither has a replica of one that is no longer shared.
func (h *Handovers) changed(id string, gone bool, now time.Time) bool {
	d := h.tracker.devices[id]
	if d == nil || len(d.series) == 0 || !d.source.Allocated() {
		return false
	}
	if device, replica := deviceid.CutReplica(id); replica != "" {
		gone = gone || h.memory.Lookup(device, now).State != ownership.Shared
	}
	if gone {
		return !d.owner.IsZero()
	}
	return h.memory.Lookup(id, now).Owner != d.owner
}
