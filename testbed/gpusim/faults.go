// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"slices"
	"time"
)

// faults are those of one node, in the order in which they were made.
type faults []*fault

// gone reports whether a fault has taken the pod away at second k.
func (all faults) gone(p *Pod, k int64) bool {
	for _, f := range all {
		if f.Kind == PodGone && f.holdsStep(k) && f.Pod.Name == p.Name && f.Pod.Namespace == p.Namespace {
			return true
		}
	}
	return false
}

// throttled reports whether a board is too hot at second k.
func (all faults) throttled(device int, k int64) bool {
	for _, f := range all {
		if f.Kind == ThermalThrottle && f.holdsStep(k) && f.covers(device, f.target.position) {
			return true
		}
	}
	return false
}

// mark applies the faults that change a row's values; false is a lost row.
func (all faults) mark(r *reading, k int64) bool {
	lastXID, lost := time.Duration(-1), false
	for _, f := range all {
		switch f.Kind {
		case GPULost:
			lost = lost || f.holdsStep(k) && f.covers(r.board.index, r.position)
		case Sentinel:
			if f.holdsStep(k) && f.covers(r.board.index, r.position) {
				r.blank = append(r.blank, f)
			}
		case MIGReprofile:
			if f.holdsStep(k) && f.target == (slotRef{r.board.index, r.position}) {
				is := f.reprofiled
				is.id = r.mig.id
				r.free += is.memoryMiB - r.total
				r.mig, r.total = &is, is.memoryMiB
			}
		case RowRemapPending:
			if f.holdsStep(k) && f.covers(r.board.index, f.target.position) {
				r.remapPending = 1
			}
		case XID:
			if k < step(Duration(f.start)) || !f.hits(r.board, r.position) {
				continue
			}
			if f.holdsStep(k) && f.start >= lastXID {
				r.xid, lastXID = f.Code, f.start
			}
			// What the driver counted stays counted.
			switch f.Code {
			case 48, 94, 95:
				r.dbe++
			case 63:
				r.remapped++
			}
		}
	}
	return !lost
}

// index is what the driver numbers a board with at second k.
func (all faults) index(b *board, k int64) int {
	at := b.index
	for _, f := range all {
		if f.Kind != IndexChange || !f.holdsStep(k) {
			continue
		}
		switch at {
		case f.target.device:
			at = f.Index
		case f.Index:
			at = f.target.device
		}
	}
	return at
}

// host is what the node's exporter prints as its host's name: the name of its own
// pod, once that was replaced.
func (all faults) host(name string, t time.Duration) string {
	host := name
	for _, f := range all {
		if f.Kind == ExporterReplaced && f.holds(t) {
			host = f.Host
		}
	}
	return host
}

// exporterState is what a scrape of the node meets.
func (all faults) exporterState(t time.Duration) string {
	state := "up"
	for _, f := range all {
		if !f.holds(t) {
			continue
		}
		switch f.Kind {
		case ExporterDown:
			return "down"
		case PageCut:
			state = "cut"
		case ExporterFrozen:
			state = "frozen"
		case ExporterSlow:
			if state == "up" {
				state = "slow"
			}
		}
	}
	return state
}

// xidCounts counts a row's XIDs by code over the last seconds up to k.
func (all faults) xidCounts(r *reading, k, seconds int64) [][2]int {
	byCode := map[int]int{}
	for _, f := range all {
		at := step(Duration(f.start))
		if f.Kind == XID && at <= k && at > k-seconds && f.hits(r.board, r.position) {
			byCode[f.Code]++
		}
	}
	out := make([][2]int, 0, len(byCode))
	for code, c := range byCode {
		out = append(out, [2]int{code, c})
	}
	slices.SortFunc(out, func(a, b [2]int) int { return a[0] - b[0] })
	return out
}
