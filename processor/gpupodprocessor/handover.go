// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/holders"
)

// handovers are the devices whose holder changed according to gpu.allocation
// while their telemetry still has the former identity.
//
// As a rule the next telemetry comes within an interval, and ends the former
// series when it starts the new ones: so a sum over devices never misses one.
// If it does not come, nobody else ends them, and a pod that is gone would seem
// to hold the device for as long as the exporter is silent. So a later snapshot
// ends them, once an interval has passed since the change.
type handovers map[string]handover // by hw.id

type handover struct {
	node  holders.Node
	since pcommon.Timestamp // time of the first snapshot that says so
}

// handOver looks at the devices of a snapshot that was just learned, and ends
// the series of those that changed hands a while ago and were silent since.
func (p *gpuPod) handOver(s holders.Snapshot, now time.Time, out pmetric.ResourceMetricsSlice) (ended int) {
	p.know.Devices(s.Node, func(id string, gone bool) {
		if _, waits := p.handovers[id]; !waits && p.handedOver(id, gone, now) {
			p.handovers[id] = handover{node: s.Node, since: s.Time}
		}
	})
	if len(p.handovers) == 0 {
		return 0
	}
	// Most of an interval: snapshots do not come to the millisecond.
	grace := pcommon.Timestamp(s.Believed / 4)
	for id, h := range p.handovers {
		switch {
		case h.node != s.Node:
			continue
		case h.since != s.Time && !p.handedOver(id, false, now):
			delete(p.handovers, id)
			continue
		}
		d := p.tracker.devices[id]
		if s.Time < h.since+grace || s.Time <= d.newest || d.newest >= h.since {
			continue
		}
		ended += p.tracker.end(d, s.Time, out)
		delete(p.handovers, id)
	}
	return ended
}

// endRenamed ends the series of devices, and of gpu.allocation, that go on in md under
// another identity: what a gpu_pod in front of k8s_attributes cannot see.
func (p *gpuPod) endRenamed(md pmetric.Metrics, now time.Time) (c counts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tracker.sweep(now)
	all := md.ResourceMetrics()
	n := all.Len() // what is appended is done already
	p.readings = slices.Grow(p.readings[:0], n)[:n]
	for i := range n {
		r := &p.readings[i]
		r.read(all.At(i).Resource().Attributes())
		r.has = contentsOf(all.At(i))
	}
	any := false
	for i := range n {
		if r := &p.readings[i]; r.device.ID != "" && r.has.markers {
			placeMarkers(p.tracker, r.device.ID, r.there, all.At(i), all)
			any = true
		}
	}
	for i := range n {
		r, from := &p.readings[i], sourceNone
		if r.there.Pod != "" {
			from = sourceResource
		}
		if r.device.ID != "" {
			c.add(p.tracker.observe(r.device.ID, r.there, from, nil, all.At(i), r.has, now, all))
		}
	}
	clear(p.readings) // lets go of the batch
	c.untracked += p.allocations.observe(all, now)
	c.ended += p.allocations.endGone(nil, now, all)
	if any {
		all.RemoveIf(func(rm pmetric.ResourceMetrics) bool { return rm.ScopeMetrics().Len() == 0 })
	}
	p.tracker.superseded.putBefore(all)
	return c
}

// sweep forgets the devices that t forgot: their node may never be heard again.
func (hs handovers) sweep(t *tracker) {
	maps.DeleteFunc(hs, func(id string, _ handover) bool { return t.devices[id] == nil })
}

// handedOver reports whether the series of a device that are not ended have
// another holder, by the word of gpu.allocation, than it says now. A device that
// is gone from the newest snapshot has none, and neither has a part of one that is
// no longer shared.
func (p *gpuPod) handedOver(id string, gone bool, now time.Time) bool {
	d := p.tracker.devices[id]
	if d == nil || len(d.series) == 0 || !d.source.allocated() {
		return false
	}
	if device, replica := deviceid.CutReplica(id); replica != "" {
		gone = gone || p.know.Lookup(device, now).State != holders.Shared
	}
	if gone {
		return !d.holder.IsZero()
	}
	return p.know.Lookup(id, now).Holder != d.holder
}
