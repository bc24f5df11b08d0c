// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/random"
)

// Health is the expected state of a board or a node, its reasons and the action that
// they ask for. It is that of a page with every field.
type Health = health.Verdict

// Truth is what is really going on in the fleet at one time, faults or not.
type Truth struct {
	Time           time.Time      `json:"time"`
	ElapsedSeconds float64        `json:"elapsed_seconds"`
	Nodes          []NodeTruth    `json:"nodes"`
	Services       []ServiceTruth `json:"services"`
	Engines        []EngineTruth  `json:"engines,omitempty"`
	Faults         []FaultStatus  `json:"faults"` // those active now
}

// NodeTruth is one node.
type NodeTruth struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Exporter string `json:"exporter"` // up, slow, frozen, renamed, cut or down
	Host     string `json:"host"`     // what the exporter prints as Hostname
	URL      string `json:"url,omitempty"`
	BootID   string `json:"boot_id"`
	Health   Health `json:"health"`
	// Cleared is the annotation by which a person has cleared what was before.
	Cleared string        `json:"cleared,omitempty"`
	Devices []DeviceTruth `json:"devices"`
}

// DeviceTruth is one device, or one MIG instance with the power, temperature
// and energy of its board. Ratios are 0 to 1.
type DeviceTruth struct {
	ID     string `json:"id"` // the GPU's UUID; under MIG "<UUID>/<GPU instance id>"
	UUID   string `json:"uuid"`
	Index  int    `json:"index"`
	Model  string `json:"model"`
	MIG    string `json:"mig_profile,omitempty"`
	OnPage bool   `json:"on_page"` // its utilization can be read from the exporter now
	// Health is what the board, of an instance the whole one, is expected to be reported as.
	Health Health `json:"health"`

	Utilization      float64 `json:"utilization"`
	SMActive         float64 `json:"sm_active"`
	TensorActive     float64 `json:"tensor_active"`
	DRAMActive       float64 `json:"dram_active"`
	FP16Active       float64 `json:"fp16_active"`
	FP32Active       float64 `json:"fp32_active"`
	MemoryUsedMiB    int     `json:"memory_used_mib"`
	MemoryTotalMiB   int     `json:"memory_total_mib"`
	PowerWatts       float64 `json:"power_watts"`
	TemperatureC     float64 `json:"temperature_celsius"`
	EnergyMilliJoule float64 `json:"energy_millijoules"`
	ClockEvents      int     `json:"clock_events"`
	XID              int     `json:"xid"`

	// The owner, if there is one alone; Sharers are those that hold replicas.
	Namespace string   `json:"namespace,omitempty"`
	Pod       string   `json:"pod,omitempty"`
	Container string   `json:"container,omitempty"`
	Service   string   `json:"service,omitempty"`
	Sharers   []Sharer `json:"sharers,omitempty"`
}

// Sharer is a pod that holds a replica of a device, with its part of it: the
// parts add up to the device.
type Sharer struct {
	Namespace     string  `json:"namespace"`
	Pod           string  `json:"pod"`
	Container     string  `json:"container"`
	Service       string  `json:"service"`
	Replica       int     `json:"replica"`
	Utilization   float64 `json:"utilization"`
	MemoryUsedMiB int     `json:"memory_used_mib"`
	PowerWatts    float64 `json:"power_watts"` // absent under MIG: an instance has no power of its own
}

// PodTruth is one pod: mean of the ratios and sum of memory over its devices.
// Of a device that is shared, ratios, used memory and power are the pod's part;
// the total memory is the whole device's, as the pod sees it. Power is the sum
// over whole devices; a MIG instance has none of its own.
type PodTruth struct {
	Name           string   `json:"name"`
	Node           string   `json:"node"`
	Devices        []string `json:"devices"`
	DevicesOnPage  int      `json:"devices_on_page"`
	Warming        bool     `json:"warming"`
	Utilization    float64  `json:"utilization"`
	TensorActive   float64  `json:"tensor_active"`
	MemoryUsedMiB  int      `json:"memory_used_mib"`
	MemoryTotalMiB int      `json:"memory_total_mib"`
	PowerWatts     float64  `json:"power_watts"`

	onPage float64 // sum of the utilization of the devices on a page
}

// ServiceTruth is one service: means over its pods, each pod one vote.
type ServiceTruth struct {
	Namespace   string     `json:"namespace"`
	Name        string     `json:"name"`
	Pods        []PodTruth `json:"pods"`
	PodsOnPage  int        `json:"pods_on_page"` // pods with every device on a page
	Utilization float64    `json:"utilization"`
	// OnPageUtilization is the mean over the pods that have a device on a page,
	// each over those devices alone: what an observer of the exporters can know.
	// Absent when there is none.
	OnPageUtilization *float64 `json:"on_page_utilization,omitempty"`
	MemoryUsedMiB     int      `json:"memory_used_mib"`
	PowerWatts        float64  `json:"power_watts"`
}

// second is what is true of a board at second k, at which it does this and has that
// temperature.
func (b *board) second(k int64, a activity, temp float64) *health.Second {
	all, n := b.node.faults, b.node
	busy := a.util > .5
	h, before := all.harm(b, k, busy), all.harm(b, k-1, busy)
	if h.loaded == k { // what was counted before is gone
		before.ecc, before.linkErrors, before.replays = 0, nil, 0
	}
	if h.born == k {
		before.uncorrectedPages, before.correctedPages = 0, 0
	}
	s := &health.Second{
		At: k, Shown: true, Recovery: -1, Absent: h.away,
		ECC: h.ecc - before.ecc, Rows: h.rows, NoSpare: h.noSpare, RemapPending: h.remapPending, RemapFailed: h.remapFailed, SRAM: h.sram,
		Recoveries: h.linkErrors["replay"] + h.linkErrors["recovery"] - before.linkErrors["replay"] - before.linkErrors["recovery"],
		CRC:        h.linkErrors["crc_flit"] + h.linkErrors["crc_data"] - before.linkErrors["crc_flit"] - before.linkErrors["crc_data"],
		LinkDown:   len(h.cut) > 0,
		Fabric:     h.fabric, Replays: h.replays - before.replays,
		Lanes: float64(cmp.Or(h.lanes, 16)), Generation: cmp.Or(h.generation, b.model.PCIeGen), Loaded: busy,
		Throttled: all.throttled(b.index, k) || h.events&(reasonHWThermal|reasonSWThermal|reasonPowerBrake) != 0,
		Hot:       temp+h.degrees > 90, Cool: temp+h.degrees <= 82,
		Reset: k > 0 && h.loaded == k, Boot: k > 0 && h.booted == k,
	}
	s.Remaps = rowRemap(b.model) && (n.exp.xidZero || slices.ContainsFunc(all, func(f *fault) bool {
		// Later exporters have no row of a board before its first XID.
		start := step(Duration(f.start))
		return f.Kind == XID && f.covers(b.index, f.target.position) && start >= max(h.booted, h.born) && start <= k
	}))
	s.Narrow = s.Lanes < 16 || s.Generation < b.model.PCIeGen
	if pageRetire(b.model) {
		s.Pages, s.PagesUncorrected = h.uncorrectedPages-before.uncorrectedPages, h.uncorrectedPages
		s.AllPages = h.uncorrectedPages + h.correctedPages
	}
	if prints(n, recoveryField) {
		s.Recovery = h.recovery
	}
	for watch, v := range h.watches {
		// Any violation within a minute is a warning of these two.
		minor := watch == "THERMAL" || watch == "POWER"
		s.Fails = s.Fails || v == 20 && !minor
		s.Warns = s.Warns || v == 20 && minor || v == 10 && !minor
	}
	for _, f := range all {
		switch holds := f.holdsStep(k); {
		case holds && (f.Kind == ExporterDown || f.Kind == PageCut || f.Kind == Reboot):
			s.Shown = false
		case holds && f.Kind == ExporterFrozen:
			s.Frozen = true
		case holds && f.Kind == FieldsRenamed:
			s.Renamed = true
		case holds && f.Kind == GPULost && f.covers(b.index, f.target.position):
			s.Absent = true
		case step(Duration(f.start)) != k || !f.covers(b.index, f.target.position):
		case f.Kind == Acknowledged:
			s.Acknowledged = true
		case f.Kind == XID:
			s.XIDs = append(s.XIDs, happened(n, b, f.Code, k))
		}
		if f.Kind == DriverReload && f.Driver != "" && k > 0 && step(Duration(f.end)) == k {
			s.Driver = true
		}
	}
	return s
}

// happened is an XID of a board, with the pod that owns it.
func happened(n *node, b *board, code int, k int64) health.XID {
	x := health.XID{Code: code}
	held := n.owners(slotRef{b.index, -1}, k)
	if len(held) == 0 {
		return x
	}
	name := func(p *Pod) string { return p.Namespace + "/" + p.Name }
	x.Owner = name(held[0].pod)
	boards, same := 0, 0
	for _, of := range n.boards {
		if held := n.owners(slotRef{of.index, -1}, k); len(held) == 0 || name(held[0].pod) != x.Owner {
			continue
		}
		boards++
		if slices.ContainsFunc(n.faults, func(f *fault) bool {
			at := step(Duration(f.start))
			return f.Kind == XID && f.Code == code && f.covers(of.index, -1) && at < k+180 && at > k-180
		}) {
			same++
		}
	}
	x.Crowd = same > 1 && 2*same >= boards
	return x
}

// truthOf is the truth about these nodes at a time, t since the start.
func truthOf(at time.Time, t time.Duration, all faults, nodes []*node) Truth {
	out := Truth{Time: at, ElapsedSeconds: t.Seconds(), Nodes: []NodeTruth{}, Services: []ServiceTruth{}, Faults: []FaultStatus{}}
	for _, f := range all {
		if f.holds(t) {
			out.Faults = append(out.Faults, f.status(t))
		}
	}
	services := map[[2]string]*ServiceTruth{}
	for _, n := range nodes {
		k := step(Duration(n.at(t)))
		nt := NodeTruth{Name: n.cfg.Name, Version: n.cfg.Version, Exporter: n.faults.exporterState(t), Host: n.faults.host(n.cfg.Name, t), Devices: []DeviceTruth{}}
		for _, b := range n.boards {
			for _, r := range b.read(k) {
				d := deviceTruth(&r, n.faults.index(r.board, k), n.shows(&r, k, nt.Exporter))
				d.Health = b.verdictAt(k)
				nt.Devices = append(nt.Devices, d)
				for i := range r.owners {
					h := &r.owners[i]
					key := [2]string{h.pod.Namespace, h.pod.Service()}
					if services[key] == nil {
						services[key] = &ServiceTruth{Namespace: key[0], Name: key[1]}
					}
					services[key].add(n.cfg.Name, &r, h, d, k)
				}
			}
		}
		nt.BootID, nt.Health, nt.Cleared = bootID(n, k), healthOf(n, k), cleared(n, k)
		out.Nodes = append(out.Nodes, nt)
	}
	for _, s := range services {
		s.finish()
		out.Services = append(out.Services, *s)
	}
	slices.SortFunc(out.Services, func(a, b ServiceTruth) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// bootID is another one after each boot.
func bootID(n *node, k int64) string {
	return random.UUID(random.Stream(n.fleet.cfg.Seed, fmt.Sprint("boot/", n.cfg.Name, "/", n.faults.boots(k))))
}

// cleared has an entry for each acknowledgement up to second k.
func cleared(n *node, k int64) string {
	var all []string
	for _, f := range n.faults {
		if f.Kind != Acknowledged || step(Duration(f.start)) > k {
			continue
		}
		entry := n.fleet.start.Add(f.start).UTC().Format(time.RFC3339)
		if !f.everywhere {
			entry = n.boards[f.target.device].uuid + "=" + entry
		}
		all = append(all, entry)
	}
	return strings.Join(all, ",")
}

// healthOf is the health of the worst board, or failed where the node has fewer than it
// should five minutes after its start.
func healthOf(n *node, k int64) Health {
	boards := make([]Health, 0, len(n.boards))
	for _, b := range n.boards {
		boards = append(boards, b.verdictAt(k))
	}
	few := k >= 300 && slices.ContainsFunc(boards, func(v Health) bool { return v.Unseen || slices.Contains(v.Reasons, "lost") })
	return health.Node(boards, few)
}

// BoardHealth is the health of the board at a place of a node.
type BoardHealth struct {
	UUID string
	Health
}

// deviceTruth is the truth of a row; shown is whether its utilization is on the page.
func deviceTruth(r *reading, index int, shown bool) DeviceTruth {
	d := DeviceTruth{
		ID: r.id(), UUID: r.board.current(r.boards), Index: index, Model: r.board.model.Name, OnPage: shown,
		Utilization: r.util, SMActive: r.sm, TensorActive: r.tensor, DRAMActive: r.dram, FP16Active: r.fp16, FP32Active: r.fp32,
		MemoryUsedMiB: r.used, MemoryTotalMiB: r.total, PowerWatts: r.power, TemperatureC: r.temp,
		EnergyMilliJoule: r.energy, ClockEvents: r.clocks, XID: r.xid,
	}
	if r.mig != nil {
		d.MIG = r.mig.profile
	}
	for i := range r.owners {
		h := &r.owners[i]
		p := h.pod
		if h.replica >= 0 {
			s := Sharer{
				Namespace: p.Namespace, Pod: p.Name, Container: p.Container, Service: p.Service(), Replica: h.replica,
				Utilization: h.util, MemoryUsedMiB: h.used,
			}
			if r.mig == nil {
				s.PowerWatts = r.power * h.part(r)
			}
			d.Sharers = append(d.Sharers, s)
		}
		if len(r.owners) > 1 {
			continue
		}
		d.Namespace, d.Pod, d.Container, d.Service = p.Namespace, p.Name, p.Container, p.Service()
	}
	return d
}

// add counts what one of the service's pods has of one device. The pod's ratios
// are sums until finish.
func (s *ServiceTruth) add(node string, r *reading, h *holding, d DeviceTruth, k int64) {
	i := slices.IndexFunc(s.Pods, func(p PodTruth) bool { return p.Name == h.pod.Name && p.Node == node })
	if i < 0 {
		i = len(s.Pods)
		s.Pods = append(s.Pods, PodTruth{Name: h.pod.Name, Node: node})
	}
	p := &s.Pods[i]
	p.Warming = p.Warming || h.pod.Start > 0 && float64(k-step(h.pod.Start)) < h.pod.warmup()
	if !slices.Contains(p.Devices, d.ID) { // a pod may hold two replicas of one
		p.Devices = append(p.Devices, d.ID)
		p.MemoryTotalMiB += d.MemoryTotalMiB
		if d.OnPage {
			p.DevicesOnPage++
		}
	}
	if d.OnPage {
		p.onPage += h.util
	}
	p.Utilization += h.util
	p.TensorActive += h.tensor
	p.MemoryUsedMiB += h.used
	if d.MIG == "" {
		p.PowerWatts += d.PowerWatts * h.part(r)
	}
}

// finish turns sums into means.
func (s *ServiceTruth) finish() {
	var sum, seen float64
	seenPods := 0
	for i := range s.Pods {
		p := &s.Pods[i]
		p.Utilization /= float64(len(p.Devices))
		p.TensorActive /= float64(len(p.Devices))
		sum += p.Utilization
		s.MemoryUsedMiB += p.MemoryUsedMiB
		s.PowerWatts += p.PowerWatts
		if p.DevicesOnPage > 0 {
			seen += p.onPage / float64(p.DevicesOnPage)
			seenPods++
		}
		if p.DevicesOnPage == len(p.Devices) {
			s.PodsOnPage++
		}
	}
	s.Utilization = sum / float64(len(s.Pods))
	if seenPods > 0 {
		mean := seen / float64(seenPods)
		s.OnPageUtilization = &mean
	}
}
