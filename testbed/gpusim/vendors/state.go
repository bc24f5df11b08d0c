// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/random"
)

// tick is how long values stand still, as the exporters' caches make them.
const tick = 5 * time.Second

// board is what stays of a board.
type board struct {
	index  int
	stream uint64
	uid    uint64 // AMD: unique_id
	serial string
	pci    string
	joules float64 // until tick
	tick   int64
	errors int // uncorrected, before any fault
}

// state is what a board does at a time, in units that every page can print exactly.
type state struct {
	*board
	compute, memory string
	parts           []part
	gfx, umc        int // percent
	vcn, jpeg       int // percent
	milliwatts      int64
	joules          float64
	chip, hbm       int // °C
	clock, memClock int // MHz
	media           int // MHz
	corrected       int
	uncorrected     int
	deferred        int
	replays         int
	received, sent  int64 // bytes over PCIe
	throttled       bool
}

// part is a partition or tile; an undivided board is one.
type part struct {
	id             int
	gpuID          int
	busy           []int // percent by unit
	used, capacity int   // MiB
	owners         []*held
}

func newHost(n Node, seed uint64) *host {
	h := &host{Node: n, seed: random.Stream(seed, n.Name)}
	buses := []int{0x0c, 0x19, 0x3b, 0x4d, 0x5f, 0x85, 0x9b, 0xbb, 0xcb, 0xdc, 0xe5, 0xf5, 0x22, 0x2f, 0x75, 0xa5}
	for i := range n.Boards {
		s := random.Stream(h.seed, fmt.Sprint("board ", i))
		b := &board{index: i, stream: s, uid: random.Mix(s), pci: fmt.Sprintf("0000:%02x:00.0", buses[i])}
		switch n.model.Vendor {
		case AMD:
			b.serial = fmt.Sprint(692_400_000_000 + random.Mix(s+1)%1_000_000_000)
		case Gaudi:
			b.serial = fmt.Sprintf("AN%08d", random.Mix(s+1)%100_000_000)
		}
		b.errors = int(random.Mix(s+2) % 3)
		b.joules = float64(1_000_000 + random.Mix(s+3)%9_000_000) // the node has been up for a while
		h.boards = append(h.boards, b)
	}
	return h
}

// units of a stream's random numbers, one for each purpose.
const (
	busyStream = iota + 10
	memoryStream
	chipStream
	mediaStream
	countStream
)

// level is how busy a place is kept by its owners: 0 if it has none.
func (h *host) level(at place) (busy float64, owners []*held) {
	for i := range h.pods {
		p := &h.pods[i]
		for _, has := range p.places {
			if has.board == at.board && has.part == at.part {
				owners = append(owners, p)
				if p.Busy != nil {
					busy += *p.Busy
				} else {
					busy += .6
				}
				break
			}
		}
	}
	return min(busy, 1), owners
}

// modes of a board at a time.
func (h *host) modes(b *board, at time.Time) (compute, memory string) {
	if x := h.on(ModeChange, b.index, at); x != nil {
		return x.Compute, x.Memory
	}
	return h.Compute, h.Memory
}

// partsOf are a board's partitions or tiles in a tick.
func (h *host) partsOf(b *board, compute string, k int64) []part {
	n := h.model.Partitions(compute)
	if h.model.Vendor == Intel {
		n = h.model.Units
	}
	units := h.model.Units / n
	parts := make([]part, n)
	for i := range parts {
		p := &parts[i]
		at := place{board: b.index, part: i}
		if h.model.Vendor == Intel {
			at.part = 0 // a card is held as a whole
		}
		var busy float64
		busy, p.owners = h.level(at)
		p.id, p.capacity = i, h.model.MemoryMiB/n
		for u := range units {
			percent := 0.
			if busy > 0 {
				percent = 100 * busy * (.8 + .4*random.Unit(random.Mix(b.stream+uint64(busyStream+100*(i*units+u))+uint64(k)*7919)))
			}
			p.busy = append(p.busy, int(math.Round(min(percent, 100))))
		}
		share := .004 + .7*min(busy*1.2, 1)*(.9+.1*random.Unit(random.Mix(b.stream+uint64(memoryStream+100*i)+uint64(k)*104729)))
		p.used = int(share * float64(p.capacity))
	}
	return parts
}

func mean(of []int) float64 {
	sum := 0
	for _, v := range of {
		sum += v
	}
	return float64(sum) / float64(len(of))
}

// busyOf is the mean over the units of all parts, in percent.
func busyOf(parts []part) float64 {
	var all []int
	for _, p := range parts {
		all = append(all, p.busy...)
	}
	return mean(all)
}

// watts in a tick.
func (h *host) watts(b *board, k int64) float64 {
	compute := h.Compute
	busy := busyOf(h.partsOf(b, compute, k)) / 100
	return math.Round(h.model.Idle + (h.model.TDP-h.model.Idle)*(.1*busy+.9*busy*(.9+.1*random.Noise(b.stream, k))))
}

// at is the state of the boards at a time. Energy goes on with it: time only moves
// forward.
func (h *host) at(start, now time.Time) []*state {
	since := now.Sub(start)
	k := int64(since / tick)
	gpuID := 0
	all := make([]*state, 0, len(h.boards))
	for _, b := range h.boards {
		for ; b.tick < k; b.tick++ {
			b.joules += h.watts(b, b.tick) * tick.Seconds()
		}
		s := &state{board: b}
		s.compute, s.memory = h.modes(b, now)
		s.parts = h.partsOf(b, s.compute, k)
		for i := range s.parts {
			s.parts[i].gpuID = gpuID
			gpuID++
		}
		roll := func(purpose int) float64 {
			return random.Unit(random.Mix(b.stream + uint64(purpose) + uint64(k)*15485863))
		}
		busy := busyOf(s.parts)
		s.gfx = int(math.Round(busy))
		s.umc = int(busy * .6)
		s.vcn, s.jpeg = int(roll(mediaStream)*busy), int(roll(mediaStream+50)*busy/2)
		s.milliwatts = int64(h.watts(b, k)) * 1000
		s.joules = b.joules
		s.chip, s.hbm = 36+int(busy*.35+3*roll(chipStream)), 34+int(busy*.28+2*roll(chipStream+50))
		s.clock, s.memClock, s.media = 132+int(float64(h.model.Clock-132)*busy/100), 1300, 29+int(busy*9)
		s.corrected, s.deferred = int(random.Mix(b.stream+countStream)%9)+int(since/time.Hour), int(random.Mix(b.stream+countStream+1)%2)
		s.uncorrected, s.replays = b.errors, int(random.Mix(b.stream+countStream+2)%5)
		s.received, s.sent = int64(s.joules*1e6), int64(s.joules*7e5)
		if x := h.on(ECC, b.index, now); x != nil {
			s.uncorrected += max(1, x.Code)
		}
		if s.throttled = h.on(Throttle, b.index, now) != nil; s.throttled {
			s.chip, s.clock = 101, h.model.Clock/3
		}
		all = append(all, s)
	}
	// The exporter numbers from the other end: gpu_id is not the number of a partition.
	for _, s := range all {
		for i := range s.parts {
			s.parts[i].gpuID = gpuID - 1 - s.parts[i].gpuID
		}
	}
	return all
}

// uuid is AMD's gpu_uuid: unique_id with the PCI device, and the number of the partition
// over groups two and three.
func (b *board) uuid(m *Model, part int) string {
	return fmt.Sprintf("%02xff%04x-%04x-%04x-80%02x-%012x", b.uid>>56, m.PCIDevice, part>>16, part&0xffff, b.uid>>48&0xff, b.uid&0xffff_ffff_ffff)
}

// card is the number of a board's DRM node: card0 is the screen of the BMC.
func (b *board) card() int { return b.index + 1 }

// profile is the name of a board's modes: cpx_nps4.
func (s *state) profile() string { return strings.Join([]string{s.compute, s.memory}, "_") }

// steps is the accumulator of a board.
func (s *state) steps() float64 { return float64(int64(s.joules / energyStep)) }

// ratio in percent of a violation.
func (s *state) violation(family string) int {
	if s.throttled && family == "socket_thermal" {
		return 40
	}
	if family == "ppt" {
		return max(0, s.gfx-90)
	}
	return 0
}

// usedMiB is the memory in use of a whole board.
func (s *state) usedMiB() (sum int) {
	for _, p := range s.parts {
		sum += p.used
	}
	return sum
}

// replaced are the rows of a board's memory that were replaced, by cause.
func (s *state) replaced() (corrected, uncorrected int) { return s.corrected % 3, s.uncorrected }

// intelErrors are the counts by kind that both pages print: of caches and of the rest.
func (s *state) intelErrors() (cacheCorrected, cacheUncorrected, otherCorrected, otherUncorrected int) {
	return s.corrected, s.uncorrected, s.deferred, 0
}
