// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"cmp"
	"slices"
	"time"
)

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
	Name     string        `json:"name"`
	Version  string        `json:"version"`
	Exporter string        `json:"exporter"` // up, slow, frozen, cut or down
	Host     string        `json:"host"`     // what the exporter prints as Hostname
	URL      string        `json:"url,omitempty"`
	Devices  []DeviceTruth `json:"devices"`
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

// deviceTruth is the truth of a row; shown is whether its utilization is on the page.
func deviceTruth(r *reading, index int, shown bool) DeviceTruth {
	d := DeviceTruth{
		ID: r.board.id(r.position), UUID: r.board.uuid, Index: index, Model: r.board.model.Name, OnPage: shown,
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
