// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/random"
)

// former is a pod that held a device or instance until a second.
type former struct {
	pod   Pod
	until int64
}

// listEvery is how often, in seconds, the exporter asks the kubelet, which lists
// in another order each time.
const listEvery = 30

// asksKubelet is whether the exporter knows of pods at all.
func (n *node) asksKubelet() bool { return n.cfg.Kubernetes == nil || *n.cfg.Kubernetes }

// at is a time since the start as a node knows it: not before its last change.
func (n *node) at(t time.Duration) time.Duration {
	return max(t, time.Duration(n.since)*time.Second)
}

// refreshed is the time at which the node's exporter read what is on its page at a time.
func (n *node) refreshed(t time.Duration) time.Duration {
	return n.at(t.Truncate(time.Duration(n.cfg.Refresh)))
}

// rewind lets the boards add up again from the beginning when something changed
// at a second that they have added up already.
func (n *node) rewind(k int64) {
	for _, b := range n.boards {
		for _, s := range []*boardState{&b.state, &b.refreshed} {
			if s.step > k {
				s.primed = false
			}
		}
	}
}

// rows are the rows that the exporter makes of a device or instance: one, or
// with virtual GPUs one for each pod that shares it.
func (n *node) rows(r reading, k int64) []reading {
	r.replica = -1
	switch {
	case !n.asksKubelet():
	case len(r.owners) == 0:
		if f, ok := n.former(slotRef{r.board.index, r.position}, k); ok {
			r.pod = &f.pod
		}
	case n.cfg.VirtualGPUs && r.owners[0].replica >= 0:
		return n.virtual(r)
	default:
		// Of several pods, the last one in the kubelet's list has the row.
		pick := random.Mix(r.board.seed+uint64(r.position+2)<<40+uint64(k/listEvery)) % uint64(len(r.owners))
		r.pod = r.owners[pick].pod
	}
	return []reading{r}
}

// virtual is a row for each sharing pod, all with the values of the device.
// Later versions report two fields by process: they are on a row of the device
// without a pod, and on each pod's row with the pod's own value.
func (n *node) virtual(r reading) []reading {
	var out []reading
	if n.exp.byProcess {
		device := r
		device.deviceOnly = true
		out = append(out, device)
	}
	for i := range r.owners {
		h := &r.owners[i]
		row := r
		row.pod, row.replica = h.pod, h.replica
		if n.exp.byProcess {
			row.process = h
		}
		out = append(out, row)
	}
	return out
}

// former is the pod that had a free device or instance at second k, while the
// exporter still reports it.
func (n *node) former(ref slotRef, k int64) (former, bool) {
	window := step(n.cfg.StaleLabels)
	for j := k - 1; j >= max(k-window, n.since); j-- {
		if held := n.owners(ref, j); len(held) > 0 {
			return former{*held[len(held)-1].pod, j + 1}, true
		}
	}
	f, ok := n.formers[ref]
	return f, ok && k < f.until+window
}

// remember keeps, across a change at second k, the pods with labels that are stale
// then or may become so.
func (n *node) remember(k int64) {
	kept := map[slotRef]former{}
	for _, b := range n.boards {
		for _, position := range b.positions() {
			ref := slotRef{b.index, position}
			if held := n.owners(ref, k); len(held) > 0 {
				kept[ref] = former{*held[len(held)-1].pod, k}
			} else if f, ok := n.former(ref, k); ok {
				kept[ref] = f
			}
		}
	}
	n.formers = kept
}

// shows reports whether the utilization of a row can be read from the exporter in this
// state at second k. It applies the faults that change the row's values.
func (n *node) shows(r *reading, k int64, exporter string) bool {
	shown := n.faults.mark(r, k) && (exporter == "up" || exporter == "slow")
	field := "DCGM_FI_DEV_GPU_UTIL"
	if r.mig != nil {
		field = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
		shown = shown && (n.cfg.Profiling == nil || *n.cfg.Profiling)
	}
	for _, s := range r.blank {
		if len(s.Fields) == 0 || slices.Contains(s.Fields, field) {
			shown = false
		}
	}
	return shown
}

// DriverBoard is what the driver of a node has of a board at a second, whatever the
// exporter makes of it.
type DriverBoard struct {
	Index, Minor   int
	UUID, PCIBusID string // 00000000:53:00.0
	Model          Model
	Driver         string
	Lost           bool // no call for it is answered
	Row            DriverRow
	Instances      []DriverRow // empty when MIG is off

	PowerMilliwatts, EnergyMillijoules   uint64
	TemperatureC, MemoryTemperatureC     int // the memory's of HBM alone
	SMClockMHz, MemoryClockMHz           int
	ClockEvents                          int
	PowerNS, ThermalNS                   uint64
	PCIeTransmit, PCIeReceive, NVLink    float64 // B/s; NVLink per direction
	PCIeReplays                          int
	ECCCorrected, ECCUncorrected         int
	ECCEverCorrected, ECCEverUncorrected int
	LinkErrors                           map[string]int // crc_flit, crc_data, replay, recovery
	RetiredCorrected, RetiredUncorrected int
	RemappedRows                         int
	RemapPending, RemapFailed            bool
	RecoveryAction                       int
	XIDs                                 []DriverXID // all so far, in the order in which they came
}

// DriverRow is a whole board, or a GPU instance of it. Ratios are 0 to 1.
type DriverRow struct {
	InstanceInfo
	TotalMiB, UsedMiB, ReservedMiB                                            int
	Slices                                                                    int // compute slices of an instance
	Utilization, SM, Occupancy, Tensor, DRAM, FP64, FP32, FP16, Integer, Copy float64
	Holders                                                                   []DriverHolder
}

// DriverHolder is a container that computes on a row.
type DriverHolder struct {
	Namespace, Pod, UID, Container string
	UsedMiB                        int
	Utilization, Copy              float64
}

// DriverXID is an XID of a board, or of the GPU instance at Position.
type DriverXID struct {
	Second   int64
	Code     int
	Position int // -1: the whole board
}

// driverBoard is the board as its driver has it at second k.
func driverBoard(b *board, k int64) DriverBoard {
	var d DriverBoard
	info := b.info()
	for _, r := range b.read(k) {
		there := b.node.faults.mark(&r, k)
		d = DriverBoard{
			Index: b.node.faults.index(b, k), Minor: b.index, UUID: b.current(r.boards), PCIBusID: b.pci, Model: *b.model, Driver: r.driver,
			Lost: d.Lost || !there, Row: d.Row, Instances: d.Instances,
			PowerMilliwatts: uint64(math.Round(r.power * 1e3)), EnergyMillijoules: uint64(r.energy),
			TemperatureC: int(r.temp), MemoryTemperatureC: int(r.memTemp), SMClockMHz: r.smClock, MemoryClockMHz: r.memClock, ClockEvents: r.clocks,
			PowerNS: uint64(r.powerNS), ThermalNS: uint64(r.thermalNS),
			PCIeTransmit: r.pcieTx, PCIeReceive: r.pcieRx, NVLink: r.nvlink, PCIeReplays: r.replays,
			ECCCorrected: r.corrected, ECCUncorrected: r.ecc, ECCEverCorrected: r.correctedEver, ECCEverUncorrected: r.eccEver,
			LinkErrors: r.linkErrors, RetiredCorrected: r.correctedPages, RetiredUncorrected: r.uncorrectedPages,
			RemappedRows: r.rows, RemapPending: r.remapPending, RemapFailed: r.remapFailed, RecoveryAction: r.recovery,
		}
		row := r.driverRow(b.node.fleet.cfg.Seed)
		if r.mig == nil {
			d.Row = row
			continue
		}
		row.InstanceInfo, row.Slices = info.Instances[r.position], r.mig.slices
		row.Profile, row.MemoryMiB = r.mig.profile, r.mig.memoryMiB
		d.Instances = append(d.Instances, row)
		d.Row.UsedMiB += row.UsedMiB
		d.Row.TotalMiB, d.Row.ReservedMiB = b.model.MemoryMiB, b.model.ReservedMiB
	}
	for _, f := range b.node.faults {
		if at := step(Duration(f.start)); f.Kind == XID && at <= k && f.covers(b.index, f.target.position) && (f.target.position < 0 || f.hits(b, f.target.position)) {
			position := f.target.position
			if f.everywhere {
				position = -1
			}
			d.XIDs = append(d.XIDs, DriverXID{Second: at, Code: f.Code, Position: position})
		}
	}
	slices.SortStableFunc(d.XIDs, func(x, y DriverXID) int { return cmp.Compare(x.Second, y.Second) })
	return d
}

func (r *reading) driverRow(seed uint64) DriverRow {
	row := DriverRow{
		TotalMiB: r.total, UsedMiB: r.used, ReservedMiB: r.reserved, Utilization: r.util, SM: r.sm, Occupancy: r.occupancy,
		Tensor: r.tensor, DRAM: r.dram, FP64: r.fp64, FP32: r.fp32, FP16: r.fp16, Integer: r.integer, Copy: r.memCopy,
	}
	for i := range r.owners {
		h := &r.owners[i]
		row.Holders = append(row.Holders, DriverHolder{
			Namespace: h.pod.Namespace, Pod: h.pod.Name, UID: h.pod.uid(seed), Container: h.pod.Container,
			UsedMiB: h.used, Utilization: h.util, Copy: h.memCopy,
		})
	}
	return row
}
