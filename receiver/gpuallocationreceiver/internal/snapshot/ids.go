// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
)

// ids reads the kubelet's ids of one answer.
type ids struct {
	node  string
	sysfs *gpusysfs.Snapshot // nil: not read
	// several are the devices of which the answer has more than one replica: Intel's plugin
	// numbers the only user of a GPU too.
	several map[device]bool
}

func (b *Builder) ids(held []entry, listed []kubeletID, v View, old *Snapshot) *ids {
	r := &ids{node: b.Node, sysfs: v.Sysfs, several: map[device]bool{}}
	first := map[device]string{}
	add := func(id kubeletID) {
		k := deviceid.ParseKubelet(id.resource, id.id)
		if k.Local == "" || !k.Shared {
			return
		}
		d := id.device()
		if one, ok := first[d]; !ok {
			first[d] = id.id
		} else if one != id.id {
			r.several[d] = true
		}
		if old != nil && old.replicas[d] > 1 {
			r.several[d] = true
		}
	}
	for _, e := range held {
		add(e.kubeletID)
	}
	for _, id := range listed {
		add(id)
	}
	return r
}

// parse is what an id means on this node.
func (r *ids) parse(id kubeletID) deviceid.Kubelet {
	k := deviceid.ParseKubelet(id.resource, id.id)
	if k.Local == "" {
		return k
	}
	if k.Shared && !r.several[id.device()] {
		k.Device, k.Shared = k.ID, false
	}
	if hwID := r.local(k.Local); hwID != "" {
		return k.WithHwID(hwID)
	}
	return k
}

// local is the hw.id of what a host knows by a name; "" where it is not known.
func (r *ids) local(name string) string {
	if deviceid.IsPCI(name) {
		return r.board(name)
	}
	if d := r.sysfs.ByXCP(name); d != nil {
		return d.HwID(r.node)
	}
	return ""
}

// board is the hw.id of what device plugins and drivers mean by a board's address: on a
// partitioned board its first partition.
func (r *ids) board(address string) string {
	d := r.sysfs.ByPCI(address)
	switch {
	case d == nil, d.ModeUnknown:
		return ""
	case d.Partitioned():
		first := *d
		first.Part = "0"
		return first.HwID(r.node)
	}
	return d.HwID(r.node)
}

// hwID is k's, or one that no telemetry has.
func (r *ids) hwID(k deviceid.Kubelet) string {
	if k.Resolved {
		return k.ID
	}
	return deviceid.Unresolved(r.node, k.ID)
}
