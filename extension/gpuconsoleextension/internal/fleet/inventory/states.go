// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inventory // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"

import (
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/age"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
)

// settle gives every device its parts and its state.
func settle(inv *Inventory, j *age.Judge) {
	for _, d := range inv.Devices {
		if d.Parent == "" {
			continue
		}
		if p := inv.Devices[Place{d.ID.Cluster, d.Parent}]; p != nil {
			p.Parts = append(p.Parts, d)
		}
	}
	forgetParts(inv, j)
	for _, d := range inv.Devices {
		d.inherit()
		d.State = state(inv, d, j)
	}
	for _, d := range inv.Devices {
		if !d.Whole() {
			continue
		}
		for _, part := range d.Parts {
			if part.State == consoleapi.DeviceUnknown {
				part.State = d.State
			}
		}
	}
	for _, d := range inv.Devices {
		inv.Node(d.Node).Devices = append(inv.Node(d.Node).Devices, d)
	}
}

// forgetParts forgets instances and replicas that are silent while their device
// reports: the device was split again.
func forgetParts(inv *Inventory, j *age.Judge) {
	reports := func(d *Device) bool { return j.Fresh(d.Seen) || j.Fresh(d.Allocated) }
	var gone func(d *Device)
	gone = func(d *Device) {
		kept := d.Parts[:0]
		seen := reports(d)
		for _, part := range d.Parts {
			seen = seen || reports(part)
		}
		for _, part := range d.Parts {
			gone(part)
			if seen && !reports(part) && len(part.Parts) == 0 && !part.alive {
				delete(inv.Devices, part.ID)
				continue
			}
			kept = append(kept, part)
		}
		d.Parts = kept
	}
	for _, d := range inv.Devices {
		if d.Parent == "" {
			gone(d)
		}
	}
}

// Whole reports whether a device with parts is given away as one, as Intel's boards with tiles
// are: the kubelet reports the device, and nothing names an owner of a part.
func (d *Device) Whole() bool {
	return len(d.Parts) > 0 && !d.Allocated.IsZero() &&
		!slices.ContainsFunc(d.Parts, func(part *Device) bool { return !part.Allocated.IsZero() || len(part.Owners) > 0 })
}

// Split reports whether the parts of a device are given away, as in MIG mode.
func (d *Device) Split() bool {
	if d.Whole() {
		return false
	}
	for _, part := range d.Parts {
		if !strings.Contains(part.ID.Name, "::") {
			return true
		}
	}
	return false
}

// inherit gives a device that is shared the owners of its replicas.
func (d *Device) inherit() {
	if d.Split() || len(d.Parts) == 0 {
		return
	}
	free := true
	for _, part := range d.Parts {
		free = free && part.Free
		if d.Allocated.IsZero() {
			for _, h := range part.Owners {
				if !hasOwner(d.Owners, h) {
					d.Owners = append(d.Owners, h)
				}
			}
		}
	}
	d.Free = d.Free || free
}

func hasOwner(all []consoleapi.Holder, h consoleapi.Holder) bool {
	for _, one := range all {
		if one.Namespace == h.Namespace && one.Pod == h.Pod && one.SlurmCluster() == h.SlurmCluster() && optional.Value(one.Container) == optional.Value(h.Container) {
			return true
		}
	}
	return false
}

// state is the first that applies.
func state(inv *Inventory, d *Device, j *age.Judge) consoleapi.DeviceState {
	n := inv.Node(d.Node)
	switch {
	case !d.Seen.IsZero() && !j.Fresh(d.Seen) && n.Exporter == consoleapi.ExporterUp:
		return consoleapi.DeviceLost
	case d.Split():
		return consoleapi.DeviceSplit
	case !j.Fresh(d.Seen) && !d.Reported(j):
		return consoleapi.DeviceUnknown // the last owner need not be the present one
	case len(d.Owners) > 0 && d.Idle != nil && *d.Idle:
		return consoleapi.DeviceIdle
	case len(d.Owners) > 0:
		return consoleapi.DeviceHeld
	case d.Free:
		return consoleapi.DeviceFree
	default:
		return consoleapi.DeviceUnknown
	}
}

// Reported reports whether the kubelet reports the device, or of its replicas.
func (d *Device) Reported(j *age.Judge) bool {
	if j.Fresh(d.Allocated) {
		return true
	}
	for _, part := range d.Parts {
		if j.Fresh(part.Allocated) {
			return true
		}
	}
	return false
}

// overall is the state of a physical device in counts: that of a split one
// follows from its instances.
func (d *Device) overall() consoleapi.DeviceState {
	if d.State != consoleapi.DeviceSplit {
		return d.State
	}
	free := true
	for _, part := range d.Parts {
		switch part.State {
		case consoleapi.DeviceHeld, consoleapi.DeviceIdle:
			return consoleapi.DeviceHeld
		case consoleapi.DeviceFree:
		default:
			free = false
		}
	}
	if free {
		return consoleapi.DeviceFree
	}
	return consoleapi.DeviceUnknown
}
