// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"cmp"
	"slices"
	"strings"
)

// podValue is a pod at one moment.
type podValue struct {
	fresh, silent, idle int  // devices
	quiet               int  // those that may be idle: since when they do nothing is not known
	frozen              bool // a silent one has a frozen exporter
	value               [numFields]float64
	has                 [numFields]bool
	oldest              int64 // time of the oldest point in value

	n [numFields]int
}

// valueOf takes the value of p over the devices it holds, of each field over those that
// have a current point of it: the mean of a ratio, the sum of memory and power.
func (j *judge) valueOf(p *pod) podValue {
	v := podValue{oldest: j.now}
	for _, h := range p.devices {
		if !j.current(p, h, utilization) {
			h.stale = j.now
		}
	}
	if j.cfg.Expected == Seen {
		for _, h := range p.devices {
			j.take(&v, p, h, numFields)
		}
	} else {
		j.takeHeld(&v, p)
	}
	for f := range numFields {
		v.has[f] = v.n[f] > 0
		if f.isRatio() && v.n[f] > 1 {
			v.value[f] /= float64(v.n[f])
		}
	}
	return v
}

// takeHeld takes the devices that are announced by their ids, and then as many of
// the others as the pod holds beside them.
func (j *judge) takeHeld(v *podValue, p *pod) {
	holds, named := 0, 0
	for _, h := range p.devices {
		h.named = false
	}
	for _, h := range p.devices {
		held, resolved := j.announced(p, h)
		if held {
			holds++
		}
		if !resolved {
			continue
		}
		named++
		h.named = true
		device := h
		end := numFields
		// A replica's utilization is its device's, where the pod has no other. What
		// the device uses is not what the replica does.
		if id, _, ok := strings.Cut(h.id, "::"); ok {
			if whole := p.device(id); whole != nil {
				whole.named = true
				if !j.fresh(p, h) {
					device, end = whole, memoryUsage
				}
			}
		}
		j.take(v, p, device, end)
	}
	if e := p.inCluster(); e != nil {
		holds = max(holds, e.Devices)
	}
	more := holds - named
	if more <= 0 {
		return
	}
	still, others := false, j.others[:0]
	for _, h := range p.devices {
		switch {
		case h.named:
		case j.fresh(p, h):
			others = append(others, h)
		default:
			still = still || j.stands(p, h)
		}
	}
	j.others = others
	if len(others) > more {
		slices.SortStableFunc(others, func(a, b *held) int { // stable: p.devices is sorted by id
			return cmp.Compare(j.newest(p, b), j.newest(p, a))
		})
		others = others[:more]
		// Sums are taken in the order of ids.
		slices.SortFunc(others, func(a, b *held) int { return cmp.Compare(a.id, b.id) })
	}
	for _, h := range others {
		j.take(v, p, h, numFields)
	}
	if silent := more - len(others); silent > 0 {
		v.silent += silent
		v.frozen = v.frozen || still
	}
}

// take takes the fields of a device up to end.
func (j *judge) take(v *podValue, p *pod, h *held, end field) {
	if !j.fresh(p, h) {
		v.silent++
		v.frozen = v.frozen || j.stands(p, h)
		return
	}
	v.fresh++
	switch idle, unknown := j.isIdle(p, h); {
	case idle:
		v.idle++
	case unknown:
		v.quiet++
	}
	for f := range end {
		if sample := h.samples[f]; j.current(p, h, f) {
			v.value[f] += sample.value
			v.n[f]++
			v.oldest = min(v.oldest, sample.time)
		}
	}
}

// isIdle reports whether h, with a current utilization, has been below
// idle_threshold for idle_for. A point speaks of the time before it, so a device
// is idle from its last busy point on, not from the first idle one. One that was not
// busy since the start may have been idle before.
func (j *judge) isIdle(p *pod, h *held) (idle, unknown bool) {
	if !j.current(p, h, utilization) || h.samples[utilization].value >= j.cfg.IdleThreshold {
		return false, false
	}
	since := max(h.firstUsed, h.stale, j.start)
	idle = j.now-max(h.lastBusy, since) >= int64(j.cfg.IdleFor)
	return idle, !idle && h.lastBusy == 0 && since <= j.back()
}

// current reports whether the newest point of a field counts: it is fresh, and its exporter's
// values do not stand still.
func (j *judge) current(p *pod, h *held, f field) bool {
	s := h.samples[f]
	return s.fresh(j.now, j.staleness) && !j.frozen.still(p, h, s.time)
}

// newest is the time of the newest current point of the device, 0 if there is none.
func (j *judge) newest(p *pod, h *held) (at int64) {
	for f := range numSamples {
		if h.samples[f].time > at && j.current(p, h, f) {
			at = h.samples[f].time
		}
	}
	return at
}

// fresh reports whether the device reports: one of its fields is current. Not every device
// has every field: a MIG instance of an A100 has no utilization, GB10 no memory.
func (j *judge) fresh(p *pod, h *held) bool { return j.newest(p, h) != 0 }

// stands distinguishes whether all that keeps a device from being fresh is that its values
// stand still.
func (j *judge) stands(p *pod, h *held) bool {
	for _, s := range h.samples {
		if s.fresh(j.now, j.staleness) {
			return !j.fresh(p, h)
		}
	}
	return false
}
