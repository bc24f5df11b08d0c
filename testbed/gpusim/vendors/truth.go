// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Truth is what is true of the fleet at a time, and what of it can be known from the
// pages of that time.
type Truth struct {
	Time  time.Time   `json:"time"`
	Nodes []NodeTruth `json:"nodes"`
}

// NodeTruth is one node.
type NodeTruth struct {
	Name    string   `json:"name"`
	Vendor  string   `json:"vendor"`
	Model   string   `json:"model"`
	Faults  []Kind   `json:"faults,omitempty"`
	Devices []Device `json:"devices"` // those that the page of this time identifies
}

// Device is a board, or a partition or tile of one.
type Device struct {
	ID        string   `json:"id"` // as hw.id has it
	Parent    string   `json:"parent,omitempty"`
	PCI       string   `json:"pci"`
	Board     int      `json:"board"`
	Part      int      `json:"part"`
	Partition string   `json:"partition,omitempty"` // number, where it can be trusted
	Profile   string   `json:"profile,omitempty"`
	Whole     bool     `json:"whole"` // a physical device
	Owners    []Owner  `json:"owners,omitempty"`
	Replicas  []int    `json:"replicas,omitempty"` // those of the owners, of a card that can be shared
	Labels    *Owner   `json:"labels,omitempty"`   // the owner that the page names
	Resource  string   `json:"resource,omitempty"`
	KubeletID []string `json:"kubelet_ids,omitempty"`

	Readings []Reading `json:"readings"`
}

// Owner is a container.
type Owner struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Container string `json:"container,omitempty"`
}

// State of a reading.
type State string

// A reading of the page is known, is absent by the rules of the vendor's table, or is
// open: the page contradicts itself, and more than one answer is right.
const (
	Known  State = "known"
	Absent State = "absent"
	Open   State = "open"
)

// Reading is a point of a metric in base units. Of is the values of the attributes that
// distinguish its points of one device, joined by commas.
type Reading struct {
	Metric    string  `json:"metric"`
	Of        string  `json:"of,omitempty"`
	State     State   `json:"state"`
	Value     float64 `json:"value"`
	Tolerance float64 `json:"tolerance,omitempty"` // relative
}

// Attributes are those that distinguish points of one metric and device, in the
// order of Reading.Of.
var Attributes = []string{
	"hw.gpu.task", "hw.sensor_location", "gpu.clock.domain", "error.type", "gpu.throttle.reason", "gpu.ras.severity",
	"gpu.power.limit.kind", "gpu.io.link", "gpu.link.index", "gpu.link.kind", "network.io.direction",
}

func (d *Device) set(state State, metric, of string, v, tolerance float64) {
	d.Readings = append(d.Readings, Reading{metric, of, state, v, tolerance})
}

func (d *Device) known(metric, of string, v float64) { d.set(Known, metric, of, v, 1e-9) }
func (d *Device) absent(metric, of string)           { d.set(Absent, metric, of, 0, 0) }

// knownIf is known, or absent.
func (d *Device) knownIf(is bool, metric, of string, v float64) {
	if is {
		d.known(metric, of, v)
	} else {
		d.absent(metric, of)
	}
}

// open makes every reading one of several.
func (d *Device) open() {
	for i := range d.Readings {
		d.Readings[i].State = Open
	}
}

// Get is the reading of a metric.
func (d *Device) Get(metric, of string) (Reading, bool) {
	for _, r := range d.Readings {
		if r.Metric == metric && r.Of == of {
			return r, true
		}
	}
	return Reading{}, false
}

// devices of a board, the board itself first. A board without identity on the page has
// none.
func devices(h *host, s *state, now time.Time) []Device {
	if h.on(DeviceFails, s.index, now) != nil {
		return nil
	}
	id := identity(h, s.board, now)
	if id == "" {
		return nil
	}
	whole := Device{ID: id, PCI: s.pci, Board: s.index, Whole: true}
	all := []Device{whole}
	if len(s.parts) > 1 {
		all = append(all, partDevices(h, s, whole, now)...)
	} else {
		all[0].own(h, s, &s.parts[0])
	}
	switch {
	case h.model.Vendor == AMD:
		amdTruth(h, s, all, now)
	case h.model.Vendor == Gaudi:
		gaudiTruth(h, s, &all[0], now)
	default:
		intelTruth(h, s, all, now)
		if len(s.parts) > 1 { // tiles are held with their device
			all[0].own(h, s, &s.parts[0])
		}
	}
	return all
}

func partDevices(h *host, s *state, whole Device, now time.Time) (parts []Device) {
	missing := h.on(PartitionMissing, s.index, now)
	for i := range s.parts {
		p := &s.parts[i]
		if h.model.Vendor == AMD && missing != nil && missing.Partition%len(s.parts) == i {
			continue
		}
		d := Device{ID: whole.ID + "/" + strconv.Itoa(p.id), Parent: whole.ID, PCI: s.pci, Board: s.index, Part: i, Partition: strconv.Itoa(p.id)}
		if h.model.Vendor == AMD {
			d.Profile = s.profile()
			if h.on(PartitionRepeated, s.index, now) != nil {
				d.ID, d.Partition = fmt.Sprintf("%s/gpu%d", whole.ID, p.gpuID), ""
			}
			d.own(h, s, p)
		}
		parts = append(parts, d)
	}
	return parts
}

// own adds who holds a device.
func (d *Device) own(h *host, s *state, p *part) {
	d.Resource, d.KubeletID = kubeletIDs(h, s, p)
	for _, o := range p.owners {
		d.Owners = append(d.Owners, Owner{o.Namespace, o.Name, o.Container})
		for _, at := range o.places {
			if h.Replicas > 1 && at.board == s.index {
				d.Replicas = append(d.Replicas, at.replica)
			}
		}
	}
	if len(d.Owners) == 0 || h.NoPods || h.model.Vendor == Intel && h.Version == "2" {
		return
	}
	printed := d.Owners[len(d.Owners)-1]
	if h.model.Vendor == Gaudi {
		printed = d.Owners[0]
		printed.Container = ""
	}
	d.Labels = &printed
}

// identity is the hw.id of a board as its page has it, "" if the page has none.
func identity(h *host, b *board, at time.Time) string {
	switch h.model.Vendor {
	case Gaudi:
		return "GAUDI-" + b.serial
	case Intel:
		return "PCI-" + h.Name + "@" + b.pci
	}
	unique := fmt.Sprintf("GPU-%016x", b.uid)
	if h.on(NoUUID, b.index, at) == nil && h.on(ZeroUUID, b.index, at) == nil && h.on(BadUUID, b.index, at) == nil {
		return unique
	}
	serial := printedSerial(h, b, at)
	shared := slices.ContainsFunc(h.boards, func(o *board) bool {
		return o != b && printedSerial(h, o, at) == serial && h.on(DeviceFails, o.index, at) == nil
	})
	// Two rows of one partition with another gpu_id look like two boards with one serial.
	compute, _ := h.modes(b, at)
	repeated := h.on(PartitionRepeated, b.index, at) != nil && h.model.Partitions(compute) > 1
	if serial == "" || shared || repeated {
		return ""
	}
	if h.Sysfs {
		return unique
	}
	return "GPU-serial-" + serial
}
