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
		case XID:
			if k < step(Duration(f.start)) || !f.hits(r.board, r.position) || step(Duration(f.start)) < max(r.booted, r.born) {
				continue
			}
			if f.holdsStep(k) && f.start >= lastXID {
				r.xid, lastXID = f.Code, f.start
			}
		}
	}
	return !lost && !r.away
}

// renewed is the last second up to k in which a fault of these kinds has ended for a
// board; 0: there was none.
func (all faults) renewed(device int, k int64, kinds ...Kind) (at int64) {
	for _, f := range all {
		if slices.Contains(kinds, f.Kind) && f.covers(device, f.target.position) && step(Duration(f.end)) <= k {
			at = max(at, step(Duration(f.end)))
		}
	}
	return at
}

// resets are the kinds of faults after which the driver counts from zero.
var resets = []Kind{GPUReset, BoardReplaced, DriverReload, Reboot}

// harm is what is wrong with a board.
type harm struct {
	born   int64 // the second since which it is this board
	loaded int64 // since which its driver counts
	booted int64 // since which its exporter counts
	boards int   // that were at this place before
	away   bool  // it is being reset or replaced

	recovery                                 int
	remapPending, remapFailed, sram, noSpare bool
	rows, correctedPages, uncorrectedPages   int
	ecc, eccEver, corrected, correctedEver   int
	linkErrors                               map[string]int // by mode
	replays, events, fabric                  int
	lanes, generation                        int   // 0: all
	cut                                      []int // the indices of devices to which there is no path over NVLink
	degrees, slower                          float64
	watches                                  map[string]int // their values
}

// harm is what the faults have done to a board by second k, at which it is busy or not.
func (all faults) harm(b *board, k int64, busy bool) (h harm) {
	h.born = all.renewed(b.index, k, BoardReplaced)
	h.loaded = all.renewed(b.index, k, resets...)
	h.booted = all.renewed(b.index, k, Reboot)
	for _, f := range all {
		start := step(Duration(f.start))
		if f.Kind == NVLinkDown && f.holdsStep(k) {
			switch b.index {
			case f.target.device:
				h.cut = append(h.cut, f.Index)
			case f.Index:
				h.cut = append(h.cut, f.target.device)
			}
		}
		if k < start || start < h.born || !f.covers(b.index, f.target.position) {
			continue
		}
		holds, n := f.holdsStep(k), amount(f, h.born, k)
		switch f.Kind {
		case GPUReset, DriverReload:
			h.away = h.away || holds
		case BoardReplaced:
			h.boards++
			h.away = h.away || holds
		case RowRemapPending:
			h.remapPending = h.remapPending || holds && start >= h.loaded
		case RowRemapFailure:
			h.remapFailed = h.remapFailed || holds
		case SRAMExceeded:
			h.sram = h.sram || holds
		case RemapWorn:
			h.rows += f.Count
			h.noSpare = h.noSpare || f.Count == 0
		case RetiredPages:
			if f.Corrected {
				h.correctedPages += n
			} else {
				h.uncorrectedPages += n
			}
		case ECC:
			since := amount(f, h.loaded, k)
			if f.Lifetime {
				since = 0
			}
			if f.Corrected {
				h.corrected, h.correctedEver = h.corrected+since, h.correctedEver+n
			} else {
				h.ecc, h.eccEver = h.ecc+since, h.eccEver+n
			}
		case XID: // what the driver counted stays counted
			switch f.Code {
			case 48, 94, 95:
				h.eccEver++
				if start >= h.loaded {
					h.ecc++
				}
			case 63:
				h.rows++
				h.uncorrectedPages++
			}
		case NVLinkErrors:
			if h.linkErrors == nil {
				h.linkErrors = map[string]int{}
			}
			h.linkErrors[f.Mode] += amount(f, h.loaded, k)
		case PCIeReplays:
			h.replays += amount(f, h.loaded, k)
		}
		if holds {
			h.while(f, start, busy)
		}
	}
	return h
}

// while adds what a fault does for as long as it lasts.
func (h *harm) while(f *fault, start int64, busy bool) {
	switch f.Kind {
	case PCIeWidth:
		if f.Mode != "idle" || !busy {
			h.lanes, h.generation = f.Lanes, f.Generation
		}
	case SlowDevice:
		h.slower = f.Percent / 100
	case Temperature:
		h.degrees += f.Degrees
	case Throttle:
		h.events |= map[string]int{"hw_thermal": reasonHWThermal, "sw_thermal": reasonSWThermal, "hw_power_brake": reasonPowerBrake, "sw_power": reasonPowerCap}[f.Mode]
	case RecoveryAction:
		// A reset does what was asked for; a reboot is more.
		if start >= h.booted && (start >= h.loaded || f.Code == 2 || f.Code == 7) {
			h.recovery = f.Code
		}
	case Fabric:
		h.fabric = map[string]int{"unhealthy": 2, "limited": 3}[f.Mode]
	case DCGMWatch:
		if h.watches == nil {
			h.watches = map[string]int{}
		}
		h.watches[f.Watch] = map[string]int{"warn": 10, "fail": 20}[f.Mode]
	}
}

// amount is how many of what a fault counts happened after the second from, up to k.
func amount(f *fault, from, k int64) int {
	start := step(Duration(f.start))
	if f.Rate == 0 {
		if start < from {
			return 0
		}
		return f.Count
	}
	by := func(k int64) int64 {
		if f.end >= 0 {
			k = min(k, step(Duration(f.end)))
		}
		return int64(f.Rate * float64(max(k-start, 0)) / 60)
	}
	return int(by(k) - by(from))
}

// driver is the version that is loaded at second k.
func (all faults) driver(version string, k int64) string {
	for _, f := range all {
		if f.Kind == DriverReload && f.Driver != "" && step(Duration(f.end)) <= k {
			version = f.Driver
		}
	}
	return version
}

// boots is how often the node was booted up to second k.
func (all faults) boots(k int64) (n int) {
	for _, f := range all {
		if f.Kind == Reboot && step(Duration(f.end)) <= k {
			n++
		}
	}
	return n
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
		case ExporterDown, Reboot:
			return "down"
		case PageCut:
			state = "cut"
		case ExporterFrozen:
			state = "frozen"
		case FieldsRenamed:
			state = "renamed"
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
		if f.Kind == XID && at <= k && at > k-seconds && at >= max(r.booted, r.born) && f.hits(r.board, r.position) {
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
