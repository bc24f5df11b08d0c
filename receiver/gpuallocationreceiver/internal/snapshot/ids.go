// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/miglayout"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/dra"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/kubelet"
)

// ids reads the kubelet's ids of one answer.
type ids struct {
	node  string
	sysfs *gpusysfs.Snapshot // nil: not read
	mig   *miglayout.Layout  // nil: not known
	// several are the devices of which the answer has more than one replica: Intel's plugin
	// numbers the only user of a GPU too.
	several map[device]bool
}

func newIDs(node string, held []entry, listed []kubeletID, v View, old *Snapshot) *ids {
	r := &ids{node: node, sysfs: v.Sysfs, mig: v.MIG, several: map[device]bool{}}
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

// described is what is known of a device of DRA.
func (r *ids) described(id dra.Device, pools *dra.Pools) dra.Described {
	if pools == nil {
		return dra.Described{}
	}
	d := pools.Devices[id]
	switch id.Driver {
	case dra.DriverAMD:
		r.describeAMD(id, &d)
	case dra.DriverIntel:
		// Virtual functions have the attributes of their board, and their own addresses.
		if virtual := r.sysfs.ByPCI(d.PCI); strings.HasSuffix(d.PCI, ".0") && (virtual == nil || !virtual.Virtual) {
			d.ID = deviceid.Intel(r.node, d.PCI)
		}
	case dra.DriverGaudi:
		d.ID = deviceid.Gaudi(d.Serial)
	default:
		describeMIG(&d, r.mig)
	}
	return d
}

func (r *ids) describeAMD(id dra.Device, d *dra.Described) {
	board := ""
	if host := r.sysfs.ByPCI(d.PCI); host != nil {
		board = host.HwID(r.node)
	}
	switch {
	case isMode(id):
		d.Kind, d.Parent = dra.KindPartition, ""
	case d.Kind == dra.KindVFIO:
		d.Board = board
	case d.Kind == dra.KindPartition:
		d.Parent = board
		part := r.sysfs.ByRender(renderOf(id.Device))
		if part != nil && part.Part != "" && (d.PCI == "" || part.PCI == d.PCI) {
			d.ID = part.HwID(r.node)
			d.Parent = deviceid.Parent(d.ID)
		}
	default:
		d.ID = r.board(d.PCI)
		d.Parent = deviceid.Parent(d.ID)
	}
}

// renderOf is the render node in a name as AMD's driver gives it, gpu-<card>-<render>; "" in
// another name.
func renderOf(name string) string {
	parts := strings.Split(name, "-")
	if len(parts) != 3 || parts[0] != "gpu" {
		return ""
	}
	if _, err := strconv.ParseUint(parts[2], 10, 32); err != nil {
		return ""
	}
	return "renderD" + parts[2]
}

// isMode reports whether a device of AMD's driver stands for the partitions that a board would
// have in a mode, gpu-<board>-cpx-nps4: each share of it is one of them, and which is not known.
func isMode(id dra.Device) bool {
	parts := strings.Split(id.Device, "-")
	return id.Driver == dra.DriverAMD && len(parts) == 4 && parts[0] == "gpu" && strings.HasPrefix(parts[3], "nps")
}

// hwID is k's, or one that no telemetry has.
func (r *ids) hwID(k deviceid.Kubelet) string {
	if k.Resolved {
		return k.ID
	}
	return deviceid.Unresolved(r.node, k.ID)
}

// Local are the names of devices in an answer and in the slices that only the host's sysfs
// resolves, sorted; none on most nodes.
func (r *Reader) Local(a *kubelet.Answer, v View) []string {
	all := map[string]bool{}
	add := func(resource string, listed []string) {
		if !r.Resources.Match(resource) {
			return
		}
		for _, id := range listed {
			if k := deviceid.ParseKubelet(resource, id); k.Local != "" {
				all[k.Local] = true
			}
		}
	}
	for _, pod := range a.List.GetPodResources() {
		for _, container := range pod.GetContainers() {
			for _, devices := range container.GetDevices() {
				add(devices.GetResourceName(), devices.GetDeviceIds())
			}
		}
	}
	for _, devices := range a.Allocatable.GetDevices() {
		add(devices.GetResourceName(), devices.GetDeviceIds())
	}
	if v.Pools != nil {
		for id, d := range v.Pools.Devices {
			if id.Driver != dra.DriverAMD || isMode(id) {
				continue
			}
			if d.PCI != "" {
				all[d.PCI] = true
			}
			if render := renderOf(id.Device); render != "" && d.Kind == dra.KindPartition {
				all[render] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}
