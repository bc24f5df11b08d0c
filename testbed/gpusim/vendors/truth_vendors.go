// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"strconv"
	"time"
)

// powerPrinted is whether a page has a power that can be one.
func powerPrinted(h *host, s *state, at time.Time) bool {
	return h.on(PowerSpike, s.index, at) == nil && !h.model.NoPower && (h.model.Vendor != AMD || !suppressed(float64(s.milliwatts/1000)))
}

// energyTruth is that of a board. A value that stands still is open: how long a receiver
// watches before it leaves it out is its own. A glitch is no value.
func energyTruth(h *host, s *state, d *Device, v float64, at time.Time) {
	switch {
	case h.on(StuckEnergy, s.index, at) != nil:
		d.set(Open, "hw.energy", "", 0, 0)
	case h.on(EnergyGlitch, s.index, at) != nil:
		d.absent("hw.energy", "")
	default:
		d.set(Known, "hw.energy", "", v, 1e-6)
	}
}

// amdTruth fills in the readings of a board and of its partitions.
func amdTruth(h *host, s *state, all []Device, at time.Time) {
	d := &all[0]
	parts := all[1:]
	first := len(parts) == 0 || parts[0].Part == 0 // the rows of the whole board are there
	d.knownIf(first, "gpu.memory_controller.utilization", "", float64(s.umc)/100)
	d.knownIf(first && powerPrinted(h, s, at), "hw.power", "", float64(s.milliwatts/1000))
	if first {
		energyTruth(h, s, d, s.steps()*energyStep, at)
	} else {
		d.absent("hw.energy", "")
	}
	d.knownIf(first && !h.Guest, "hw.temperature", "gpu", float64(s.chip))
	d.knownIf(first && !h.Guest, "hw.temperature", "memory", float64(s.hbm))
	clock := s.clock
	if suppressed(float64(clock)) {
		clock -= 5
	}
	d.knownIf(first && (clock == s.clock || h.model.Units > 1), "gpu.clock.frequency", "sm", float64(clock)*1e6)
	d.knownIf(first, "gpu.clock.frequency", "memory", float64(s.memClock)*1e6)
	d.knownIf(first, "hw.errors", "corrected", float64(s.corrected))
	d.knownIf(first, "hw.errors", "uncorrected", float64(s.uncorrected))
	d.knownIf(first && h.Version == "1.5", "hw.errors", "deferred", float64(s.deferred))
	d.knownIf(first, "gpu.pcie.replays", "", float64(s.replays))
	if x := h.on(RAS, s.index, at); x != nil && h.Version != "1.3" {
		d.knownIf(first, "gpu.ras.last", severity(x), float64(x.Code))
	}
	if h.Version != "1.3" && !h.model.AveragePower {
		for _, v := range violations {
			d.knownIf(first, "gpu.throttle.ratio", v.reason, float64(s.violation(v.family))/100)
		}
	}
	if len(s.parts) == 1 {
		d.known("hw.gpu.utilization", "general", float64(s.gfx)/100)
		amdMemory(h, d, &s.parts[0])
	} else {
		partitionTruth(h, s, d, parts)
	}
	if h.on(DuplicateSeries, s.index, at) != nil { // the greatest of several rows is that of a second reading
		for i := range d.Readings {
			if d.Readings[i].Metric == "gpu.clock.frequency" {
				d.Readings[i].State = Open
			}
		}
	}
	if h.on(MixedNames, s.index, at) != nil {
		for i := range all {
			all[i].open()
		}
	}
	if h.on(PartitionRepeated, s.index, at) != nil {
		d.open()
	}
}

func amdMemory(h *host, d *Device, p *part) {
	d.knownIf(!suppressed(float64(p.used)), "hw.gpu.memory.usage", "", float64(p.used)*mib)
	d.known("hw.gpu.memory.limit", "", float64(p.capacity)*mib)
}

// partitionTruth is that of a partitioned board: sums and means over partitions only
// where all are on the page.
func partitionTruth(h *host, s *state, d *Device, parts []Device) {
	complete := len(parts) == len(s.parts)
	d.knownIf(complete, "hw.gpu.utilization", "general", busyOf(s.parts)/100)
	capacity, suppress := 0, false
	for _, p := range s.parts {
		capacity += p.capacity
		suppress = suppress || suppressed(float64(p.used))
	}
	switch {
	case h.SharedMemory && len(parts) == 1: // one row left: it looks like a partition with all memory
		d.set(Open, "hw.gpu.memory.usage", "", 0, 0)
		d.set(Open, "hw.gpu.memory.limit", "", 0, 0)
	case h.SharedMemory:
		d.knownIf(!suppressed(float64(s.usedMiB())), "hw.gpu.memory.usage", "", float64(s.usedMiB())*mib)
		d.known("hw.gpu.memory.limit", "", float64(h.model.MemoryMiB)*mib)
	case !complete && h.model.NoPower: // the host has a part of an APU's memory
		d.absent("hw.gpu.memory.usage", "")
		d.absent("hw.gpu.memory.limit", "")
	default:
		d.knownIf(complete && !suppress, "hw.gpu.memory.usage", "", float64(s.usedMiB())*mib)
		d.set(Known, "hw.gpu.memory.limit", "", float64(capacity)*mib, .002)
	}
	for i := range parts {
		p, of := &s.parts[parts[i].Part], &parts[i]
		of.known("hw.gpu.utilization", "general", mean(p.busy)/100)
		switch {
		case !h.SharedMemory:
			amdMemory(h, of, p)
		case len(parts) > 1:
			of.absent("hw.gpu.memory.usage", "")
			of.absent("hw.gpu.memory.limit", "")
		default:
			of.set(Open, "hw.gpu.memory.usage", "", 0, 0)
			of.set(Open, "hw.gpu.memory.limit", "", 0, 0)
		}
		of.absent("hw.power", "")
		of.absent("hw.energy", "")
		of.absent("gpu.memory_controller.utilization", "")
	}
}

func gaudiTruth(h *host, s *state, d *Device, at time.Time) {
	reads := h.on(ReadingsFail, s.index, at) == nil
	corrected, uncorrected := s.replaced()
	d.knownIf(reads, "hw.gpu.utilization", "general", float64(s.gfx)/100)
	d.knownIf(reads, "hw.gpu.memory.usage", "", float64(s.usedMiB()+restMiB)*mib)
	d.knownIf(reads, "hw.gpu.memory.limit", "", float64(h.model.MemoryMiB)*mib)
	d.knownIf(reads && powerPrinted(h, s, at), "hw.power", "", float64(s.milliwatts)/1000)
	d.knownIf(reads, "gpu.power.limit", "management", h.model.TDP)
	if reads {
		energyTruth(h, s, d, float64(int64(s.joules*1000))/1000, at)
	} else {
		d.absent("hw.energy", "")
	}
	d.knownIf(reads, "hw.temperature", "gpu", float64(s.chip))
	d.knownIf(reads, "hw.temperature", "board", float64(s.hbm))
	d.knownIf(reads, "gpu.clock.frequency", "soc", float64(s.clock)*1e6)
	d.knownIf(reads, "gpu.pcie.replays", "", float64(s.replays))
	d.knownIf(reads, "gpu.memory.remapped_rows", "corrected", float64(corrected))
	d.knownIf(reads, "gpu.memory.remapped_rows", "uncorrected", float64(uncorrected))
	d.knownIf(reads, "gpu.memory.remapped_rows.pending", "", float64(b2i(h.on(RowsPending, s.index, at) != nil)))
	for port := range h.model.Ports {
		kind := "internal"
		if external(port) {
			kind = "external"
		}
		d.knownIf(reads, "gpu.link.up", strconv.Itoa(port)+","+kind, float64(b2i(!portDown(h, s, port, at))))
	}
}

// intelTruth fills in a device and its tiles.
func intelTruth(h *host, s *state, all []Device, at time.Time) {
	d, tiles := &all[0], all[1:]
	d.known("hw.gpu.utilization", "general", busyOf(s.parts)/100)
	d.known("gpu.memory.bandwidth.utilization", "", float64(s.umc)/100)
	d.known("hw.gpu.memory.usage", "", float64(s.usedMiB())*mib)
	capacity, low := 0, false
	for i := range s.parts {
		p := &s.parts[i]
		capacity += p.capacity
		low = low || h.Version == "1" && float64(p.used)/float64(p.capacity) < .02
		if len(tiles) == 0 {
			tileTruth(h, s, p, d)
		} else {
			tileTruth(h, s, p, &tiles[i])
			tiles[i].known("hw.gpu.utilization", "general", mean(p.busy)/100)
			tiles[i].known("gpu.memory.bandwidth.utilization", "", float64(s.umc)/100)
			tiles[i].known("hw.gpu.memory.usage", "", float64(p.used)*mib)
			intelLimit(h, &tiles[i], p.capacity, h.Version == "1" && float64(p.used)/float64(p.capacity) < .02)
			tiles[i].absent("hw.power", "")
		}
	}
	intelLimit(h, d, capacity, low)
	d.knownIf(powerPrinted(h, s, at), "hw.power", "", float64(s.milliwatts)/1000)
	energyTruth(h, s, d, s.joules, at)
	cc, cu, oc, ou := s.intelErrors()
	d.known("hw.errors", "uncorrected", float64(cu+ou))
	d.knownIf(h.Version == "1" || cc+oc > 0, "hw.errors", "corrected", float64(cc+oc))
	d.known("gpu.device.resets", "", float64(resets(h, s, at)))
	d.known("hw.gpu.io", "pcie,receive", float64(s.received))
	d.known("hw.gpu.io", "pcie,transmit", float64(s.sent))
}

// intelLimit is the size of the memory, which 1.x has only as a ratio of what is used.
func intelLimit(h *host, d *Device, capacity int, low bool) {
	if low {
		d.absent("hw.gpu.memory.limit", "")
		return
	}
	d.set(Known, "hw.gpu.memory.limit", "", float64(capacity)*mib, 1e-6)
}

// tileTruth is what a tile has, or a device without tiles.
func tileTruth(h *host, s *state, p *part, d *Device) {
	d.known("hw.gpu.utilization", "compute", mean(p.busy)/100)
	d.known("hw.gpu.utilization", "media", float64(s.vcn)/100)
	d.known("hw.temperature", "gpu", float64(s.chip))
	d.known("hw.temperature", "memory", float64(s.hbm))
	d.known("gpu.clock.frequency", "sm", float64(s.clock)*1e6)
}
