// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// The energy accumulator counts steps of 2^-16 J, which AMD's library turns into
// microjoules as if a step were 15.3 µJ.
const (
	energyStep    = 1. / 65536
	energyPrinted = 15.3
)

// stuckSteps is what an accumulator that stands still has.
const stuckSteps = 123_456_789

// suppressed are values that the exporter takes for "not supported", whatever the field.
func suppressed(v float64) bool {
	return slices.Contains([]float64{255, 65535, 1<<31 - 1, 1<<32 - 1, 1<<64 - 1}, v)
}

// blocks that have error counters of their own.
var blocks = []string{"umc", "sdma", "gfx", "mmhub", "xgmi_wafl", "mca", "vcn", "jpeg"}

// violations by the name of the family and the throttle reason.
var violations = []struct{ family, reason string }{
	{"processor_hot", "prochot"}, {"ppt", "power_cap"}, {"socket_thermal", "hw_thermal"}, {"vr_thermal", "vr_thermal"}, {"hbm_thermal", "memory_thermal"},
}

// amd is a page of the Device Metrics Exporter.
type amdPage struct {
	*page
	h    *host
	now  time.Time
	name func(string) string
}

func amdText(h *host, all []*state, now time.Time) *page {
	p := &amdPage{page: newPage(), h: h, now: now}
	p.gauges = true
	p.name = func(s string) string { return h.Prefix + s }
	nodes := 0 // a partition is a GPU of its own to AMD's library
	for _, s := range all {
		nodes += len(s.parts)
	}
	p.page.add(p.name("gpu_nodes_total"), float64(nodes))
	for _, s := range all {
		if h.on(DeviceFails, s.index, now) != nil {
			continue
		}
		p.board(s)
		if h.on(MixedNames, s.index, now) != nil {
			kept := p.name
			p.name = func(f string) string { return "amd_" + f }
			p.board(s)
			p.name = kept
		}
	}
	return p.page
}

// number writes a value unless the exporter takes it for a marker.
func (p *amdPage) number(s *state, name string, v float64, labels []string, more ...string) {
	if suppressed(v) {
		return
	}
	if strings.HasPrefix(p.name(""), "amd_") && p.h.Prefix == "" {
		v++ // the second exporter read later
	}
	p.page.add(p.name(name), v, with(labels, more...)...)
	if p.h.on(DuplicateSeries, s.index, p.now) != nil {
		p.page.add(p.name(name), v+1, with(labels, more...)...)
	}
}

func (p *amdPage) board(s *state) {
	missing := p.h.on(PartitionMissing, s.index, p.now)
	for i := range s.parts {
		one := &s.parts[i]
		if missing != nil && missing.Partition%len(s.parts) == i && len(s.parts) > 1 {
			continue
		}
		labels := amdLabels(p.h, s, one, p.now)
		if i == 0 {
			p.whole(s, labels)
		} else {
			for _, name := range powerFamilies(p.h) {
				p.number(s, name, 0, labels) // a partition has no power of its own and prints it all the same
			}
		}
		p.part(s, one, labels)
	}
}

// powerFamilies are those by which a model prints its power.
func powerFamilies(h *host) []string {
	if h.model.AveragePower {
		return []string{"gpu_average_package_power", "gpu_power_usage"}
	}
	return []string{"gpu_package_power", "gpu_power_usage"}
}

// printedID is the number that a partition prints, after faults.
func printedID(h *host, s *state, one *part, at time.Time) int {
	if x := h.on(PartitionRepeated, s.index, at); x != nil && len(s.parts) > 1 && one.id == 1+x.Partition%(len(s.parts)-1) {
		return one.id - 1
	}
	return one.id
}

func amdLabels(h *host, s *state, one *part, at time.Time) []string {
	id := strconv.Itoa(printedID(h, s, one, at))
	if h.Version == "1.3" && s.compute == "spx" {
		id = "4294967295"
	}
	clean := []string{"card_model", "102-G30211-0C", "card_series", h.model.Name, "card_vendor", "AMD", "cluster_name", "",
		"driver_version", "6.12.12", "gpu_compute_partition_type", s.compute, "gpu_id", strconv.Itoa(one.gpuID),
		"gpu_memory_partition_type", s.memory, "gpu_partition_id", id, "hostname", h.Name,
		"serial_number", printedSerial(h, s.board, at), "vbios_version", "022.040.003.043.000001"}
	if uuid, ok := printedUUID(h, s.board, one.id, at); ok {
		clean = with(clean, "gpu_uuid", uuid)
	}
	if h.NoPods {
		return clean
	}
	namespace, pod, container := "", "", ""
	if n := len(one.owners); n > 0 {
		o := one.owners[n-1] // of several containers the last one wins
		namespace, pod, container = o.Namespace, o.Name, o.Container
	}
	return with(clean, "container", container, "namespace", namespace, "pod", pod)
}

func printedSerial(h *host, b *board, at time.Time) string {
	switch {
	case h.Guest || h.on(NoSerial, b.index, at) != nil:
		return ""
	case h.on(SharedSerial, b.index, at) != nil:
		return h.boards[0].serial
	}
	return b.serial
}

func printedUUID(h *host, b *board, part int, at time.Time) (uuid string, ok bool) {
	switch {
	case h.on(NoUUID, b.index, at) != nil:
		return "", false
	case h.on(BadUUID, b.index, at) != nil:
		return "zzff74a1-0000-1000-80xx-no-hexadecimal", true
	case h.on(ZeroUUID, b.index, at) != nil:
		return "00000000-0000-0000-0000-000000000000", true
	}
	return b.uuid(h.model, part), true
}

// whole writes what a board has once, on the rows of its partition 0.
func (p *amdPage) whole(s *state, labels []string) {
	h, m := p.h, p.h.model
	watts := float64(s.milliwatts / 1000)
	switch {
	case h.on(PowerSpike, s.index, p.now) != nil:
		watts = 3.69e12
	case m.NoPower:
		watts = 0
	}
	for _, name := range powerFamilies(h) {
		p.number(s, name, watts, labels)
	}
	p.number(s, "gpu_energy_consumed", printedSteps(h, s, p.now)*energyPrinted, labels)
	chip, hbm := float64(s.chip), float64(s.hbm)
	if h.Guest {
		chip, hbm = 0, 0
	}
	if m.AveragePower {
		p.number(s, "gpu_edge_temperature", chip-2*float64(b2i(chip > 0)), labels)
	}
	p.number(s, "gpu_junction_temperature", chip, labels)
	p.number(s, "gpu_memory_temperature", hbm, labels)
	for i := range 4 {
		p.number(s, "gpu_hbm_temperature", max(0, hbm-float64(i)), labels, "hbm_index", strconv.Itoa(i))
	}
	p.number(s, "gpu_gfx_activity", float64(s.gfx), labels)
	p.number(s, "gpu_umc_activity", float64(s.umc), labels)
	p.clocks(s, labels)
	p.errors(s, labels)
	health := 1.
	if h.on(Unhealthy, s.index, p.now) != nil {
		health = 0
	}
	p.number(s, "gpu_health", health, labels)
	p.number(s, "pcie_replay_count", float64(s.replays), labels)
	p.number(s, "pcie_recovery_count", float64(s.replays/2), labels)
	nack := "pcie_nack_"
	if h.Version == "1.3" {
		nack = "pcie_nac_"
	}
	p.number(s, nack+"sent_count", 0, labels)
	p.number(s, nack+"received_count", float64(s.replays), labels)
	p.number(s, "pcie_speed", 32, labels)
	p.number(s, "pcie_bandwidth", float64(s.gfx*12), labels)
	if h.Version != "1.3" {
		p.number(s, "pcie_rx", float64(s.received), labels)
		p.number(s, "pcie_tx", float64(s.sent), labels)
	}
	for i := range 8 {
		moved := 0.
		if i > 0 { // link 0 is to the board itself
			moved = float64(s.sent/1024) / float64(i)
		}
		p.number(s, "gpu_xgmi_link_rx", moved, labels, "link_index", strconv.Itoa(i))
		p.number(s, "gpu_xgmi_link_tx", moved*2, labels, "link_index", strconv.Itoa(i))
	}
	p.violations(s, labels)
}

// printedSteps is the accumulator after faults.
func printedSteps(h *host, s *state, at time.Time) float64 {
	switch {
	case h.on(StuckEnergy, s.index, at) != nil:
		return stuckSteps
	case h.on(EnergyGlitch, s.index, at) != nil:
		return 200 / energyStep
	}
	return s.steps()
}

func (p *amdPage) clocks(s *state, labels []string) {
	old := map[string]string{"system": "GPU_CLOCK_TYPE_SYSTEM", "memory": "GPU_CLOCK_TYPE_MEMORY", "video": "GPU_CLOCK_TYPE_VIDEO", "soc": "GPU_CLOCK_TYPE_SOC"}
	index := 0
	clock := func(kind string, mhz int) {
		text := kind
		if p.h.Version == "1.3" {
			text = old[kind]
		}
		i := strconv.Itoa(index)
		p.number(s, "gpu_clock", float64(mhz), labels, "clock_index", i, "clock_type", text)
		if p.h.Version != "1.3" {
			p.number(s, "gpu_max_clock", float64(p.h.model.Clock), labels, "clock_index", i, "clock_type", text)
		}
		index++
	}
	for i := range min(p.h.model.Units, 8) {
		clock("system", max(0, s.clock-5*i))
	}
	clock("memory", s.memClock)
	clock("video", s.media)
	clock("soc", 29)
}

func (p *amdPage) errors(s *state, labels []string) {
	p.number(s, "gpu_ecc_correct_total", float64(s.corrected), labels)
	p.number(s, "gpu_ecc_uncorrect_total", float64(s.uncorrected), labels)
	if p.h.Version == "1.5" {
		p.number(s, "gpu_ecc_deferred_total", float64(s.deferred), labels)
	}
	for _, b := range blocks {
		corrected, uncorrected := 0, 0
		if b == "umc" { // they are all the memory's
			corrected, uncorrected = s.corrected, s.uncorrected
		}
		p.number(s, "gpu_ecc_correct_"+b, float64(corrected), labels)
		p.number(s, "gpu_ecc_uncorrect_"+b, float64(uncorrected), labels)
	}
	if x := p.h.on(RAS, s.index, p.now); x != nil && p.h.Version != "1.3" {
		p.number(s, "gpu_afid_errors", float64(x.Code), labels, "afid_index", "0", "severity", severity(x))
	}
}

// severity of a record, as the exporter writes it.
func severity(x *fault) string {
	if x.Severity == "" {
		return "fatal"
	}
	return x.Severity
}

func (p *amdPage) violations(s *state, labels []string) {
	if p.h.model.AveragePower {
		return
	}
	seconds := p.now.Unix()
	if p.h.Version == "1.3" {
		p.number(s, "gpu_violation_current_accumulated_counter", float64(seconds*1000), labels)
	}
	for _, v := range violations {
		percent := s.violation(v.family)
		if p.h.Version == "1.3" {
			p.number(s, "gpu_violation_"+v.family+"_residency_accumulated", 0, labels)
		} else {
			p.number(s, "gpu_violation_"+v.family+"_residency_percentage", float64(percent), labels)
		}
	}
}

// part writes what each partition has.
func (p *amdPage) part(s *state, one *part, labels []string) {
	used, capacity := one.used, one.capacity
	if p.h.SharedMemory && len(s.parts) > 1 {
		used, capacity = s.usedMiB(), p.h.model.MemoryMiB
	}
	p.number(s, "gpu_total_vram", float64(capacity), labels)
	p.number(s, "gpu_used_vram", float64(used), labels)
	p.number(s, "gpu_free_vram", float64(capacity-used), labels)
	p.number(s, "gpu_total_visible_vram", float64(capacity), labels)
	p.number(s, "gpu_used_visible_vram", float64(used), labels)
	p.number(s, "gpu_total_gtt", 515_000, labels)
	if !busyRows(p.h) {
		p.number(s, "gpu_vcn_activity", float64(s.vcn), labels, "vcn_index", "0")
		return
	}
	for i, percent := range one.busy {
		index := strconv.Itoa(i)
		p.number(s, "gpu_gfx_busy_instantaneous", float64(percent), labels, "xcc_index", index)
		p.number(s, "gpu_jpeg_busy_instantaneous", float64(s.jpeg), labels, "jpeg_index", index)
		p.number(s, "gpu_vcn_busy_instantaneous", float64(s.vcn), labels, "vcn_index", index)
	}
	if p.h.Profiler {
		p.number(s, "gpu_prof_tensor_active_percent", mean(one.busy)/4, labels)
		p.number(s, "gpu_prof_sm_active", mean(one.busy)/2, labels)
		p.number(s, "gpu_prof_grbm_count", 1e6, labels)
	}
	if p.h.Version == "1.5" && len(one.owners) > 0 {
		p.number(s, "gpu_process_cu_occupancy", mean(one.busy), labels, "process_id", strconv.Itoa(1000+one.gpuID))
	}
}

// busyRows is whether the page has the rows of the single XCDs.
func busyRows(h *host) bool { return !h.model.AveragePower && !h.Guest }
