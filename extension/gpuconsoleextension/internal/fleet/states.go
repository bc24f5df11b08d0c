// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
)

// settle gives every device its parts and its state.
func (r *reading) settle(inv *inventory) {
	for _, d := range inv.devices {
		if d.parent == "" {
			continue
		}
		if p := inv.devices[place{d.id.cluster, d.parent}]; p != nil {
			p.parts = append(p.parts, d)
		}
	}
	inv.forgetParts(r)
	for _, d := range inv.devices {
		d.inherit()
		d.state = r.state(inv, d)
	}
	for _, d := range inv.devices {
		inv.node(d.node).devices = append(inv.node(d.node).devices, d)
	}
}

// forgetParts forgets instances and replicas that are silent while their device
// reports: the device was split again.
func (inv *inventory) forgetParts(r *reading) {
	reports := func(d *device) bool { return r.fresh(d.seen) || r.fresh(d.allocated) }
	var gone func(d *device)
	gone = func(d *device) {
		kept := d.parts[:0]
		seen := reports(d)
		for _, part := range d.parts {
			seen = seen || reports(part)
		}
		for _, part := range d.parts {
			gone(part)
			if seen && !reports(part) && len(part.parts) == 0 && !part.alive {
				delete(inv.devices, part.id)
				continue
			}
			kept = append(kept, part)
		}
		d.parts = kept
	}
	for _, d := range inv.devices {
		if d.parent == "" {
			gone(d)
		}
	}
}

// split reports whether a device is in MIG mode.
func (d *device) split() bool {
	for _, part := range d.parts {
		if !strings.Contains(part.id.name, "::") {
			return true
		}
	}
	return false
}

// inherit gives a device that is shared the owners of its replicas.
func (d *device) inherit() {
	if d.split() || len(d.parts) == 0 {
		return
	}
	free := true
	for _, part := range d.parts {
		free = free && part.free
		if d.allocated.IsZero() {
			for _, h := range part.owners {
				if !hasOwner(d.owners, h) {
					d.owners = append(d.owners, h)
				}
			}
		}
	}
	d.free = d.free || free
}

func hasOwner(all []consoleapi.Holder, h consoleapi.Holder) bool {
	for _, one := range all {
		if one.Namespace == h.Namespace && one.Pod == h.Pod && value(one.Container) == value(h.Container) {
			return true
		}
	}
	return false
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// state is the first that applies.
func (r *reading) state(inv *inventory, d *device) consoleapi.DeviceState {
	n := inv.node(d.node)
	switch {
	case !d.seen.IsZero() && !r.fresh(d.seen) && n.exporter == consoleapi.ExporterUp:
		return consoleapi.DeviceLost
	case d.split():
		return consoleapi.DeviceSplit
	case !r.fresh(d.seen) && !d.reported(r):
		return consoleapi.DeviceUnknown // the last owner need not be the present one
	case len(d.owners) > 0 && d.idle != nil && *d.idle:
		return consoleapi.DeviceIdle
	case len(d.owners) > 0:
		return consoleapi.DeviceHeld
	case d.free:
		return consoleapi.DeviceFree
	default:
		return consoleapi.DeviceUnknown
	}
}

// reported reports whether the kubelet reports the device, or of its replicas.
func (d *device) reported(r *reading) bool {
	if r.fresh(d.allocated) {
		return true
	}
	for _, part := range d.parts {
		if r.fresh(part.allocated) {
			return true
		}
	}
	return false
}

// overall is the state of a physical device in counts: that of a split one
// follows from its instances.
func (d *device) overall() consoleapi.DeviceState {
	if d.state != consoleapi.DeviceSplit {
		return d.state
	}
	free := true
	for _, part := range d.parts {
		switch part.state {
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
