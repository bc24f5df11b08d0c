// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/random"
)

// board is one physical GPU.
type board struct {
	node      *node
	index     int
	model     *Model
	uuid      string
	pci       string
	seed      uint64
	instances []instance // empty when not in MIG mode
	migSince  int64      // second at which the instances were made
	state     boardState
	base      boardState // at the node's last change; not primed before the first
	refreshed boardState // when the exporter read the board last
	verdicts  []verdict  // as they changed
}

// boardState is what a board accumulates: everything up to, not including,
// second step.
type boardState struct {
	step      int64
	temp      float64 // Celsius; follows power with a lag
	energy    float64 // mJ
	powerNS   float64
	thermalNS float64
	primed    bool
	health    health.Board
}

// reading is the content of one row of a page: a whole device, or one instance of
// it together with the values of its board.
type reading struct {
	board    *board
	position int // in the MIG layout; -1 is the whole device
	mig      *instance
	owners   []holding
	activity
	// What the exporter makes of the owners.
	pod        *Pod
	replica    int      // printed as vgpu; -1 is none
	process    *holding // the fields that are reported by process are those of this owner
	deviceOnly bool     // has these fields alone
	// Of the instance, in MiB.
	total, used, free, reserved int
	// Of the board.
	clocks                 int // bit mask of clock event reasons
	power, temp, memTemp   float64
	smClock, memClock      int
	energy                 float64
	powerNS, thermalNS     float64
	xid                    int     // last code seen; 0: no code yet
	pcieTx, pcieRx, nvlink float64 // B/s; nvlink per direction
	driver                 string
	harm
	blank []*fault // sentinel faults that hold now
}

// Clock event reasons, as in NVML.
const (
	reasonIdle       = 0x1
	reasonPowerCap   = 0x4
	reasonHWSlow     = 0x8
	reasonSWThermal  = 0x20
	reasonHWThermal  = 0x40
	reasonPowerBrake = 0x80
)

const (
	ambient    = 27.0 // Celsius at no power
	fullRise   = 44.0 // Celsius above it at full power
	thermalLag = 18.0 // seconds to 63 % of a change
	hotRise    = 32.0 // Celsius on top while throttled
)

func newBoard(n *node, index int, m *Model, layout []string, seed uint64) (*board, error) {
	inst, err := m.layout(layout)
	if err != nil {
		return nil, err
	}
	s := random.Stream(seed, fmt.Sprintf("%s/%d", n.cfg.Name, index))
	return &board{
		node: n, index: index, model: m, seed: s, instances: inst,
		uuid: "GPU-" + random.UUID(s),
		pci:  fmt.Sprintf("00000000:%02X:00.0", 0x53+0x11*index),
	}, nil
}

// id is the identity of the row: the UUID, and "/<GPU instance id>" under MIG.
func (r *reading) id() string {
	uuid := r.board.current(r.boards)
	if r.position < 0 {
		return uuid
	}
	return fmt.Sprintf("%s/%d", uuid, r.board.instances[r.position].id)
}

// current is the UUID of the board that is there, after so many others.
func (b *board) current(boards int) string {
	if boards == 0 {
		return b.uuid
	}
	return "GPU-" + random.UUID(random.Stream(b.seed, fmt.Sprint("board/", boards)))
}

// positions lists the rows of a board.
func (b *board) positions() []int {
	if len(b.instances) == 0 {
		return []int{-1}
	}
	out := make([]int, len(b.instances))
	for i := range out {
		out[i] = i
	}
	return out
}

// whole is the activity of the board: that of its only row, or that of its
// instances weighted by their compute slices.
func (b *board) whole(k int64) activity {
	if len(b.instances) == 0 {
		a, _ := b.slot(-1, k)
		return a
	}
	var sum activity
	for i, in := range b.instances {
		a, _ := b.slot(i, k)
		w := float64(in.slices) / 7
		sum.util += a.util * w
		sum.sm += a.sm * w
		sum.tensor += a.tensor * w
		sum.dram += a.dram * w
		sum.pcieTx += a.pcieTx * w
		sum.pcieRx += a.pcieRx * w
	}
	return sum
}

// watts is the board's power at second k: between idle and the board's limit,
// mostly with utilization, partly with the tensor pipes and the memory.
func (b *board) watts(a activity, hot bool, k int64) float64 {
	busy := .5*a.util + .45*a.tensor + .35*a.dram + .02*a.pcieRx
	p := b.model.IdleWatts + (b.model.TDPWatts-b.model.IdleWatts)*busy
	p *= 1 + .012*random.Noise(b.seed+7, k)
	limit := b.model.TDPWatts
	if hot {
		limit *= .62
	}
	return math.Round(min(p, limit)*1e3) / 1e3
}

// settle is the temperature that a power leads to.
func (b *board) settle(watts float64, hot bool) float64 {
	t := ambient + 3*random.Unit(b.seed+9) + fullRise*watts/b.model.TDPWatts
	if hot {
		t += hotRise
	}
	return t
}

// capped reports whether a power is at the board's limit.
func (b *board) capped(watts float64) bool { return watts >= .985*b.model.TDPWatts }

// advance adds up seconds until step k. It starts again from the last refresh of the
// page, or from the beginning, when time went back.
func (b *board) advance(k int64) {
	s := &b.state
	switch {
	case s.primed && s.step <= k:
	case b.refreshed.primed && b.refreshed.step <= k:
		*s = b.refreshed
	case b.base.primed:
		*s = b.base
	default:
		a := b.whole(0)
		*s = boardState{
			primed: true,
			temp:   b.settle(b.watts(a, false, 0), false),
			// The driver has been loaded for hours or days.
			energy: math.Round((2e4 + 4e5*random.Unit(b.seed+3)) * b.model.IdleWatts * 1e3),
		}
	}
	refresh := step(b.node.cfg.Refresh)
	for ; s.step < k; s.step++ {
		if refresh > 0 && s.step%refresh == 0 {
			b.refreshed = *s
		}
		if s.step > 0 && b.node.faults.renewed(b.index, s.step, resets...) == s.step {
			s.energy, s.powerNS, s.thermalNS = 0, 0, 0
		}
		a, hot := b.whole(s.step), b.node.faults.throttled(b.index, s.step)
		w := b.watts(a, hot, s.step)
		s.energy += math.Round(w * 1e3)
		s.temp += (b.settle(w, hot) - s.temp) / thermalLag
		if hot {
			s.thermalNS += 6e8
		}
		if b.capped(w) {
			s.powerNS += 2e8
		}
		if len(b.node.faults) > 0 {
			b.judge(s, a)
		}
	}
}

// verdict is the health of a board from a second on.
type verdict struct {
	since int64
	health.Verdict
}

// judge takes the second of a state into the health of the board.
func (b *board) judge(s *boardState, a activity) {
	now := b.second(s.step, a, s.temp)
	if s.step > 0 && b.node.faults.renewed(b.index, s.step, BoardReplaced) == s.step {
		s.health = health.Board{} // another one
	}
	s.health.Step(now)
	v := s.health.Verdict(s.step)
	for n := len(b.verdicts); n > 0 && b.verdicts[n-1].since > s.step; n-- {
		b.verdicts = b.verdicts[:n-1]
	}
	if n := len(b.verdicts); n == 0 || !reflect.DeepEqual(b.verdicts[n-1].Verdict, v) {
		b.verdicts = append(b.verdicts, verdict{s.step + 1, v})
	}
}

// well is the health of a board of which nothing bad is known.
var well = health.Verdict{State: "ok", Reasons: []string{}, Action: "none"}

// verdictAt is the health of the board after the seconds before k.
func (b *board) verdictAt(k int64) health.Verdict {
	if !b.state.primed || b.state.step < k {
		b.advance(k)
	}
	for i := len(b.verdicts) - 1; i >= 0; i-- {
		if b.verdicts[i].since <= k {
			return b.verdicts[i].Verdict
		}
	}
	return well
}

// read gives the rows of the board at second k.
func (b *board) read(k int64) []reading {
	b.advance(k)
	all, hot := b.whole(k), b.node.faults.throttled(b.index, k)
	m := b.model
	base := reading{
		board: b, driver: b.node.faults.driver(b.node.driver(), k), harm: b.node.faults.harm(b, k, all.util > .5), power: b.watts(all, hot, k), energy: b.state.energy,
		powerNS: b.state.powerNS, thermalNS: b.state.thermalNS,
		smClock: m.SMIdle, memClock: m.MemIdle, clocks: reasonIdle,
		pcieTx: math.Round(9000 + all.pcieTx*m.PCIeGBps*1e9), pcieRx: math.Round(14000 + all.pcieRx*m.PCIeGBps*1e9),
		nvlink: math.Round(all.nvlink * m.NVLinkGBps * 1e9),
	}
	base.temp = math.Round(b.state.temp + base.degrees)
	base.memTemp = math.Round(b.state.temp + 6 + 6*all.dram)
	if all.util > 0 {
		boost := 1 - .06*all.tensor
		base.clocks, base.memClock = 0, m.MemClock
		if b.capped(base.power) {
			base.clocks, boost = reasonPowerCap, .91
		}
		if hot {
			boost = .58
		}
		base.smClock = int(float64(m.SMClock)*boost*(1-base.slower)) / 15 * 15
	}
	if hot {
		base.clocks = base.clocks&^reasonIdle | reasonSWThermal | reasonHWThermal | reasonHWSlow
	}
	if base.events != 0 {
		base.clocks = base.clocks&^reasonIdle | base.events
	}
	var rows []reading
	for _, pos := range b.positions() {
		r := base
		r.position = pos
		r.activity, r.owners = b.slot(pos, k)
		r.total, r.reserved = m.MemoryMiB, m.ReservedMiB
		if pos >= 0 {
			r.mig = &b.instances[pos]
			r.total, r.reserved = r.mig.memoryMiB, 0
		}
		for i := range r.owners {
			h := &r.owners[i]
			h.used = int(float64(r.total-r.reserved) * h.memory)
			r.used += h.used
		}
		r.free = r.total - r.reserved - r.used
		rows = append(rows, r)
	}
	return rows
}

// DeviceInfo is what the driver of a node reports about a GPU: what a device plugin
// or a DRA driver announces.
type DeviceInfo struct {
	Index     int    `json:"index"`
	Minor     int    `json:"minor"`      // of /dev/nvidia<minor>; the same as the index
	UUID      string `json:"uuid"`       // GPU-…
	PCIBusID  string `json:"pci_bus_id"` // as Kubernetes writes it: 0000:53:00.0
	Model     string `json:"model"`      // as the exporter prints it
	Key       string `json:"key"`        // as a configuration names it
	MemoryMiB int    `json:"memory_mib"`
	NUMANode  int    `json:"numa_node"` // the first half of the devices is at 0, the rest at 1
	Driver    string `json:"driver"`    // version, 580.126.09
	// Instances are empty when MIG is off.
	Instances []InstanceInfo `json:"instances,omitempty"`
}

// InstanceInfo is a MIG device: a GPU instance with its one compute instance.
type InstanceInfo struct {
	Position  int    `json:"position"` // in the layout
	Profile   string `json:"profile"`  // 1g.10gb
	ProfileID int    `json:"profile_id"`
	ID        int    `json:"id"`    // GPU instance id
	Start     int    `json:"start"` // first memory slice
	Size      int    `json:"size"`  // memory slices
	UUID      string `json:"uuid"`  // MIG-…
	MemoryMiB int    `json:"memory_mib"`
}

// migUUID is made from the board and from what the instance is and where, as
// the driver's: the same instance created again has the same one. It is a version 5
// UUID in form.
func (b *board) migUUID(in *instance) string {
	u := random.UUID(random.Stream(b.seed, fmt.Sprintf("mig/%s/%d/%d", in.profile, in.id, in.start)))
	return "MIG-" + u[:14] + "5" + u[15:]
}

// info is what the driver reports of a board by itself: without its index, its NUMA node
// and the driver.
func (b *board) info() DeviceInfo {
	d := DeviceInfo{
		Minor: b.index, UUID: b.uuid, PCIBusID: strings.ToLower(b.pci[4:]), Model: b.model.Name, Key: b.model.Key,
		MemoryMiB: b.model.MemoryMiB,
	}
	for position := range b.instances {
		in := &b.instances[position]
		d.Instances = append(d.Instances, InstanceInfo{
			Position: position, Profile: in.profile, ProfileID: in.profileID, ID: in.id, Start: in.start, Size: in.eighths,
			UUID: b.migUUID(in), MemoryMiB: in.memoryMiB,
		})
	}
	return d
}
