// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package dra has the names and devices of dynamic resource allocation, as ResourceSlices
// and ResourceClaims have them.
package dra

import (
	"cmp"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/migprofile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// MaxID bounds a device's id and a resource's name, in bytes.
const MaxID = 256

// IsID reports whether s can stand in an attribute and be read there.
func IsID(s string) bool { return s != "" && len(s) <= MaxID && safetext.Strip(s, MaxID) == s }

// Pool is a pool of devices of one DRA driver.
type Pool struct{ Driver, Name string }

// Device is a device as DRA names it.
type Device struct {
	Pool
	Device string
}

func (d Device) String() string { return d.Driver + "/" + d.Name + "/" + d.Device }

// Attributes are the needed attributes of a device as reported by its driver. Each
// of them may be "".
type Attributes struct {
	Kind    string // gpu, mig, vfio; amdgpu, amdgpu-partition
	UUID    string
	Parent  string // hw.id of the GPU that a MIG device or a partition is part of
	Profile string // of a MIG device or a partition
	PCI     string // address; of a partition, that of its board
	Serial  string // of Gaudi
	// ID and Board are not in a slice: the hw.id of the device, and that of the board that is
	// passed through, as far as the node knows them.
	ID, Board string
}

const (
	KindMIG       = "mig"
	KindVFIO      = "vfio"
	KindPartition = "amdgpu-partition"
)

// Drivers of other vendors than NVIDIA.
const (
	DriverAMD   = "gpu.amd.com"
	DriverIntel = "gpu.intel.com"
	DriverGaudi = "gaudi.intel.com"
)

// GPU is the hw.id, "" if the attributes do not contain it.
func (a Attributes) GPU() string {
	if a.ID != "" {
		return a.ID
	}
	if deviceid.IsGPU(a.UUID) && a.Kind != KindVFIO && a.Kind != KindMIG {
		return a.UUID
	}
	return ""
}

// Physical is the GPU that the device is, is a part of, or passes through.
func (a Attributes) Physical() string {
	switch {
	case a.Parent != "":
		return a.Parent
	case a.ID != "":
		return a.ID
	case deviceid.IsGPU(a.UUID):
		return a.UUID
	}
	return a.Board
}

// Described is what a ResourceSlice has of a device.
type Described struct {
	Name string
	Attributes
	Counters []string // names of the counter sets that it draws on
	// Unhealthy: the driver reports that it cannot be used.
	Unhealthy bool
}

// Slice is what is kept of a ResourceSlice.
type Slice struct {
	pool              Pool
	generation, count int64
	devices           []Described
}

// Keeper keeps the slices of some drivers.
type Keeper struct{ Drivers map[string]bool }

func (k Keeper) Keep(obj any) (Slice, bool) {
	slice, ok := obj.(*resourcev1.ResourceSlice)
	if !ok || !k.Drivers[slice.Spec.Driver] {
		return Slice{}, false
	}
	kept := Slice{
		pool:       Pool{slice.Spec.Driver, slice.Spec.Pool.Name},
		generation: slice.Spec.Pool.Generation,
		count:      slice.Spec.Pool.ResourceSliceCount,
		devices:    make([]Described, 0, len(slice.Spec.Devices)),
	}
	for i := range slice.Spec.Devices {
		kept.devices = append(kept.devices, describe(&slice.Spec.Devices[i], slice.Spec.Driver))
	}
	return kept, true
}

func describe(d *resourcev1.Device, driver string) Described {
	attribute := func(name resourcev1.QualifiedName) resourcev1.DeviceAttribute {
		if a, ok := d.Attributes[name]; ok {
			return a
		}
		return d.Attributes[resourcev1.QualifiedName(driver)+"/"+name]
	}
	text := func(name resourcev1.QualifiedName) string {
		if a := attribute(name); a.StringValue != nil && IsID(*a.StringValue) {
			return *a.StringValue
		}
		return ""
	}
	healthy := attribute("healthy").BoolValue
	out := Described{Name: d.Name, Attributes: Attributes{
		Kind: text("type"), UUID: text("uuid"), Parent: text("parentUUID"), Serial: text("serial"),
		Profile: migprofile.Normal(cmp.Or(text("profile"), text("partitionProfile"))),
	}, Unhealthy: healthy != nil && !*healthy || text("health") == "Unhealthy"}
	// The drivers' names for the address, the newest first.
	for _, name := range []resourcev1.QualifiedName{"resource.kubernetes.io/pciBusID", "pciAddress", "pciAddr", "parentPciAddr"} {
		if out.PCI = pciAddress(text(name)); out.PCI != "" {
			break
		}
	}
	if out.PCI == "" && driver == DriverIntel {
		out.PCI = pciInName(d.Name)
	}
	for _, c := range d.ConsumesCounters {
		out.Counters = append(out.Counters, c.CounterSet)
	}
	return out
}

// pciAddress is a PCI address in Linux' form, "" for another text. Versions of AMD's driver
// have written 0000:19:00:0.
func pciAddress(text string) string {
	if strings.Count(text, ":") == 3 {
		i := strings.LastIndexByte(text, ':')
		text = text[:i] + "." + text[i+1:]
	}
	if address := deviceid.PCIAddress(text); deviceid.IsPCI(address) {
		return address
	}
	return ""
}

// pciInName is the address in a name as Intel's driver gives it, 0000-4d-00-0-0x0bda.
func pciInName(name string) string {
	parts := strings.Split(name, "-")
	if len(parts) != 5 {
		return ""
	}
	return pciAddress(parts[0] + ":" + parts[1] + ":" + parts[2] + "." + parts[3])
}

// Pools are all slices of a node, each pool as of its newest generation.
// It is immutable.
type Pools struct {
	Devices map[Device]Described
	// ordered are the devices of complete pools, those of which all slices are
	// there. A device that is missing in another may be in a slice to come.
	Ordered []Device
	MIG     map[string]Attributes // MIG devices by UUID
	Refused int                   // devices beyond max_devices
}

// NewPools reads slices, at most limit devices.
func NewPools(kept map[string]Slice, limit int) *Pools {
	generation := map[Pool]int64{}
	count := map[Pool]int64{}
	for _, s := range kept {
		switch newest, ok := generation[s.pool]; {
		case !ok || s.generation > newest:
			generation[s.pool], count[s.pool] = s.generation, 1
		case s.generation == newest:
			count[s.pool]++
		}
	}
	names := make([]string, 0, len(kept))
	for name := range kept {
		names = append(names, name)
	}
	slices.Sort(names)

	p := &Pools{Devices: map[Device]Described{}, MIG: map[string]Attributes{}}
	twice := map[Device]bool{}
	var complete []Device
	for _, name := range names {
		s := kept[name]
		if s.generation != generation[s.pool] {
			continue
		}
		for _, d := range s.devices {
			id := Device{s.pool, d.Name}
			if _, ok := p.Devices[id]; ok {
				twice[id] = true // which of the two it is cannot be known
				continue
			}
			if len(p.Devices) >= limit {
				p.Refused++
				continue
			}
			p.Devices[id] = d
			if d.Kind == KindMIG && d.UUID != "" {
				p.MIG[d.UUID] = d.Attributes
			}
			if count[s.pool] == s.count {
				complete = append(complete, id)
			}
		}
	}
	for id := range twice {
		p.Devices[id] = Described{Name: id.Device}
	}
	for _, id := range complete {
		if !twice[id] {
			p.Ordered = append(p.Ordered, id)
		}
	}
	return p
}

// ClaimID is a ResourceClaim with what the kubelet lists as allocated for it, so that
// another claim under the same name is distinguished from it.
type ClaimID struct {
	types.NamespacedName
	Allocation [32]byte // a digest
}

// Claim is what a ResourceClaim has of its devices: whether they are held, or only
// looked at (adminAccess), which the kubelet does not list.
type Claim struct{ Held, Looked map[Device]bool }
