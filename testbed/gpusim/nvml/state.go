// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

// Types of field values, as NVML numbers them.
const (
	typeU32 = 1
	typeU64 = 3
)

const allLinks = 1<<32 - 1

// gpm are the ids of GPM's metrics with what a row does, in percent.
var gpm = []struct {
	id int
	of func(*gpusim.DriverRow) float64
}{
	{1, func(r *gpusim.DriverRow) float64 { return r.Utilization }},
	{2, func(r *gpusim.DriverRow) float64 { return r.SM }},
	{3, func(r *gpusim.DriverRow) float64 { return r.Occupancy }},
	{4, func(r *gpusim.DriverRow) float64 { return r.Integer }},
	{5, func(r *gpusim.DriverRow) float64 { return r.Tensor }},
	{6, func(r *gpusim.DriverRow) float64 { return r.FP64 }},
	{7, func(r *gpusim.DriverRow) float64 { return r.Tensor }},
	{9, func(*gpusim.DriverRow) float64 { return 0 }},
	{10, func(r *gpusim.DriverRow) float64 { return r.DRAM }},
	{11, func(r *gpusim.DriverRow) float64 { return r.FP64 }},
	{12, func(r *gpusim.DriverRow) float64 { return r.FP32 }},
	{13, func(r *gpusim.DriverRow) float64 { return r.FP16 }},
}

// sums are what a board or an instance has done since the start.
type sums struct {
	gpm    map[int]float64 // %·s, or MiB of the links
	nvlink float64         // bytes per direction
}

// add adds a second.
func (s *sums) add(r *gpusim.DriverRow, b *gpusim.DriverBoard) {
	if s.gpm == nil {
		s.gpm = map[int]float64{}
	}
	for _, g := range gpm {
		s.gpm[g.id] += 100 * g.of(r)
	}
	for id, rate := range linkRates(b) {
		s.gpm[id] += rate
	}
	s.nvlink += b.NVLink
}

// linkRates are GPM's metrics of the links of a board in MiB/s.
func linkRates(b *gpusim.DriverBoard) map[int]float64 {
	const mib = 1 << 20
	return map[int]float64{20: b.PCIeTransmit / mib, 21: b.PCIeReceive / mib, 60: b.NVLink / mib, 61: b.NVLink / mib}
}

// arch is NVML's number of a model's architecture.
func arch(m *gpusim.Model) int {
	for arch, models := range map[int][]string{6: {"T4"}, 8: {"L4", "L40S", "RTX4090"}, 9: {"H100", "H200"}, 10: {"B200", "GB10"}} {
		if slices.Contains(models, m.Key) {
			return arch
		}
	}
	return 7
}

// serial is a board's number: 13 digits.
func serial(b *gpusim.DriverBoard) uint64 {
	sum := fnv.New64a()
	sum.Write([]byte(b.UUID))
	return 1320000000000 + sum.Sum64()%1e9
}

// state collects the text of the file.
type state struct{ bytes.Buffer }

func (s *state) line(key string, values ...any) {
	s.WriteString(key)
	for _, v := range values {
		fmt.Fprintf(s, " %v", v)
	}
	s.WriteByte('\n')
}

func (s *state) field(id, typ int, value any) { s.line(fmt.Sprintf("f.%d", id), typ, value) }
func (s *state) scoped(id int, scope uint32, value uint64) {
	s.line(fmt.Sprintf("f.%d.%d", id, scope), typeU64, value)
}

func percent(v float64) int { return int(math.Round(100 * v)) }

// board writes a board. done are its sums.
func (s *state) board(b *gpusim.DriverBoard, position int, done *sums) {
	m := &b.Model
	s.line("board", position)
	if b.Lost {
		s.line("lost", 1)
	}
	s.line("pci", b.PCIBusID)
	s.line("index", b.Index)
	s.line("minor", b.Minor)
	s.line("name", m.Name)
	s.line("uuid", b.UUID)
	if m.ECC { // GeForce has none
		s.line("serial", serial(b))
	}
	s.line("vbios", "96.00.74.00.01")
	s.line("arch", arch(m))
	s.line("virtualization", 0)
	s.line("events", 0x108)
	s.numbers(b)
	s.fields(b, done)
	if arch(m) >= 9 && !m.Integrated {
		s.line("gpm", 1)
		s.metrics(&b.Row, done)
		for id, rate := range linkRates(b) {
			s.line(fmt.Sprintf("gpm.%d", id), done.gpm[id], rate)
		}
	}
	if len(m.MIGProfiles()) > 0 {
		mode := 0
		if len(b.Instances) > 0 {
			mode = 1
		}
		s.line("mig.current", mode)
		s.line("mig.pending", mode)
		s.line("mig.max", 7)
	}
}

func (s *state) numbers(b *gpusim.DriverBoard) {
	m := &b.Model
	if len(b.Instances) == 0 {
		s.line("utilization.gpu", percent(b.Row.Utilization))
		s.line("utilization.memory", percent(b.Row.Copy))
		s.line("utilization.encoder", 0)
		s.line("utilization.decoder", 0)
	}
	s.line("power", b.PowerMilliwatts)
	if !m.Integrated {
		s.memory(&b.Row)
		s.line("power.management", int64(m.TDPWatts*1e3))
		s.line("power.enforced", int64(m.TDPWatts*1e3))
		s.line("clock.2", b.MemoryClockMHz)
	}
	if arch(m) >= 5 {
		s.line("energy", b.EnergyMillijoules)
	}
	s.line("temperature", b.TemperatureC)
	if arch(m) >= 8 {
		s.line("margin", 87-b.TemperatureC)
	} else {
		s.line("threshold.0", 94)
		s.line("threshold.1", 89)
		s.line("threshold.3", 85)
		if m.HBM {
			s.line("threshold.2", 95)
		}
	}
	s.line("clock.1", b.SMClockMHz)
	s.line("clock.3", m.VideoClock)
	s.line("reasons", b.ClockEvents)
	s.line("pcie.0", int64(math.Round(b.PCIeTransmit/1000)))
	s.line("pcie.1", int64(math.Round(b.PCIeReceive/1000)))
	if m.Fans > 0 {
		s.line("fans", m.Fans)
		for i := range m.Fans {
			s.line(fmt.Sprintf("fan.%d", i), min(30+max(b.TemperatureC-40, 0), 100))
		}
	}
}

func (s *state) memory(r *gpusim.DriverRow) {
	s.line("memory.total", uint64(r.TotalMiB)<<20)
	s.line("memory.used", uint64(r.UsedMiB)<<20)
	s.line("memory.reserved", uint64(r.ReservedMiB)<<20)
}

func flag(is bool) int {
	if is {
		return 1
	}
	return 0
}

// fields are the values of fields.
func (s *state) fields(b *gpusim.DriverBoard, done *sums) {
	m, mig := &b.Model, len(b.Instances) > 0
	if m.HBM {
		s.field(82, typeU32, b.MemoryTemperatureC)
	}
	for id, ns := range map[int]uint64{74: b.PowerNS, 75: b.ThermalNS, 76: 0, 77: 0, 78: 0, 79: 0} {
		s.field(id, typeU64, ns)
	}
	s.field(94, typeU32, b.PCIeReplays)
	s.field(230, typeU32, b.RecoveryAction)
	ecc := []int{b.ECCCorrected, b.ECCUncorrected, b.ECCEverCorrected, b.ECCEverUncorrected}
	for i, n := range ecc {
		switch {
		case m.ECC:
			s.field(3+i, typeU64, n)
		default:
			s.line(fmt.Sprintf("f.%d", 3+i), typeU64, 0, 0) // no time: ECC is off
		}
	}
	switch {
	case mig:
	case m.RowRemap:
		for id, v := range map[int]int{142: 0, 143: b.RemappedRows, 144: flag(b.RemapPending), 145: flag(b.RemapFailed)} {
			s.field(id, typeU32, v)
		}
	default:
		for id, v := range map[int]int{29: b.RetiredCorrected, 30: b.RetiredUncorrected, 31: flag(b.RemapPending)} {
			s.field(id, typeU32, v)
		}
	}
	switch {
	case m.NVLinks == 0 || mig:
	case m.NVLink5:
		for link := range m.NVLinks {
			s.scoped(202, uint32(link), uint64(done.nvlink/float64(m.NVLinks)))
			s.scoped(204, uint32(link), uint64(done.nvlink/float64(m.NVLinks)))
		}
	default:
		s.scoped(138, allLinks, uint64(done.nvlink/1024))
		s.scoped(139, allLinks, uint64(done.nvlink/1024))
		for id, mode := range map[int]string{38: "crc_flit", 45: "crc_data", 52: "replay", 59: "recovery"} {
			s.field(id, typeU64, b.LinkErrors[mode])
		}
	}
}

// metrics are GPM's of a row: what it has done so far, and what it does now.
func (s *state) metrics(r *gpusim.DriverRow, done *sums) {
	for _, g := range gpm {
		s.line(fmt.Sprintf("gpm.%d", g.id), done.gpm[g.id], 100*g.of(r))
	}
}

// instance writes the compute instances of a GPU instance, from the index on, and returns
// the next one.
func (s *state) instance(b *gpusim.DriverBoard, r *gpusim.DriverRow, index, compute int, done *sums) int {
	for ci := range compute {
		s.line("mig", index, r.ID, ci)
		profile, uuid := r.Profile, r.UUID
		if compute > 1 { // a compute instance that is not all of its GPU instance
			profile = fmt.Sprintf("1c.%s", r.Profile)
			uuid = uuid[:len(uuid)-2] + fmt.Sprintf("%02x", ci)
		}
		s.line("name", b.Model.Name+" MIG "+profile)
		s.line("uuid", uuid)
		s.line("slices", r.Slices)
		s.line("attributes.memory", r.MemoryMiB)
		s.memory(r)
		if arch(&b.Model) >= 9 {
			s.metrics(r, done)
		}
		index++
	}
	return index
}

// process writes a process of a container that has some of a row; gi is -1 for a board's.
func (s *state) process(h *gpusim.DriverHolder, pid, gi int, now int64) {
	id, ci := int64(gi), int64(0)
	if gi < 0 {
		id, ci = math.MaxUint32, math.MaxUint32
	}
	s.line("process", "compute", pid, uint64(h.UsedMiB)<<20, id, ci)
	if gi < 0 {
		s.line("busy", pid, now, percent(h.Utilization), percent(h.Copy), 0, 0)
	}
}

// nvmlVersion is the library's version: CUDA's major, and the driver's.
func nvmlVersion(driver string) string {
	major := map[string]string{"450": "11", "470": "11", "510": "11"}[strings.SplitN(driver, ".", 2)[0]]
	if major == "" {
		major = "12"
	}
	return major + "." + driver
}
