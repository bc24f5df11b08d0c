// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package deviceid

import "strings"

// Kubelet is what the kubelet's id of a device, an opaque text of its device
// plugin, means for the device.
type Kubelet struct {
	// ID is the hw.id if Resolved, else the kubelet's id as it is.
	ID string
	// Device is the device that ID is a part of: ID without its replica, and
	// ID itself where nothing is shared. Ids of one Device share it in equal
	// parts: replicas, or the compute instances of one MIG instance.
	Device string
	// Shared reports whether the id names a replica of Device.
	Shared bool
	// Resolved reports whether ID is an hw.id, which can be joined to telemetry.
	Resolved bool
	// MIG is the MIG-<uuid> that the id names, "" where it names none.
	MIG string
	// Local is the name that the id has for the device on its host, if the host's sysfs is
	// what resolves it: a PCI address, amdgpu_xcp_<N> or card<N>. Else "".
	Local string
}

// WithHwID is k, an id with Local, resolved: it names the device with this hw.id, or its
// replica if k is one.
func (k Kubelet) WithHwID(id string) Kubelet {
	out := Kubelet{ID: id, Device: id, Shared: k.Shared, Resolved: true}
	if k.Shared {
		out.ID += "::" + strings.TrimPrefix(k.ID, k.Local+"-")
	}
	return out
}

// ParseKubelet reads the kubelet's id of a device of an extended resource. It knows, of
// amd.com, habana.ai and gpu.intel.com:
//
//	0000:19:00.0                    AMD: a board, or its first partition
//	amdgpu_xcp_<N>, amdgpu_xcp.<N>  AMD: a partition
//	<serial number>                 Gaudi, resolved
//	card<N>-<M>                     Intel: replica M of a GPU
//
// and of every other resource:
//
//	GPU-<uuid>                      NVIDIA's plugin: a physical GPU
//	MIG-GPU-<uuid>/<gi>/<ci>        drivers before 470: the MIG instance GPU-<uuid>/<gi>
//	MIG-<uuid>                      a MIG instance; its GPU is not known from this: not resolved
//	<any of these>::<n>             a replica (time-slicing, MPS)
//	nvidia<N>[/gi<G>][/vgpu<K>]     GKE's plugin: minor N, MIG instance G, replica K; not resolved
//	GPU-<uuid>-<i>                  HAMi: one of the parts that it splits the GPU into; not resolved,
//	                                since it may give the container another GPU than the kubelet chose
//
// Every other text is a device that is not resolved. It never fails.
func ParseKubelet(resource, id string) Kubelet {
	domain, _, _ := strings.Cut(resource, "/")
	switch domain {
	case "amd.com":
		return parseAMD(id)
	case "habana.ai":
		if resolved := Gaudi(id); resolved != "" {
			return Kubelet{ID: resolved, Device: resolved, Resolved: true}
		}
		return Kubelet{ID: id, Device: id}
	case "gpu.intel.com":
		return parseIntel(id)
	}
	return parseNVIDIA(id)
}

func parseNVIDIA(id string) Kubelet {
	device, replica, shared := strings.Cut(id, "::")
	if shared && !isNumber(replica) {
		return Kubelet{ID: id, Device: id}
	}
	if resolved, ok := resolve(device); ok {
		k := Kubelet{ID: resolved, Device: resolved, Shared: shared, Resolved: true}
		if shared {
			k.ID += "::" + replica
		}
		return k
	}
	if !shared {
		if gke, ok := cutGKEReplica(id); ok {
			return Kubelet{ID: id, Device: gke, Shared: true}
		}
		if gpu, ok := cutHAMiPart(id); ok {
			return Kubelet{ID: id, Device: gpu, Shared: true}
		}
	}
	k := Kubelet{ID: id, Device: device, Shared: shared}
	if IsMIG(device) {
		k.MIG = device
	}
	return k
}

// xcpPrefix is that of the kernel's names of AMD's partitions other than the first.
const xcpPrefix = "amdgpu_xcp_"

func parseAMD(id string) Kubelet {
	k := Kubelet{ID: id, Device: id}
	if address := PCIAddress(id); IsPCI(address) {
		k.Local = address
	} else if number, ok := strings.CutPrefix(strings.Replace(id, "amdgpu_xcp.", xcpPrefix, 1), xcpPrefix); ok && isNumber(number) {
		k.Local = xcpPrefix + number
	}
	return k
}

func parseIntel(id string) Kubelet {
	card, replica, ok := strings.Cut(id, "-")
	if !ok || !isNumbered(card, "card") || !isNumber(replica) {
		return Kubelet{ID: id, Device: id}
	}
	return Kubelet{ID: id, Device: card, Shared: true, Local: card}
}

// Unresolved is the hw.id that gpu.allocation gives a device without a known
// one: unique in a cluster, and never that of a device in telemetry.
func Unresolved(node, kubeletID string) string { return node + "/" + kubeletID }

// resolve gives the hw.id of a device that is no replica.
func resolve(device string) (string, bool) {
	if gpu, old := strings.CutPrefix(device, migPrefix); old && HasGPU(gpu) {
		gpu, instances, _ := strings.Cut(gpu, "/")
		gi, ci, ok := strings.Cut(instances, "/")
		if !ok || !IsGPU(gpu) || !isNumber(gi) || !isNumber(ci) {
			return "", false
		}
		return MIG(gpu, gi), true
	}
	return device, IsGPU(device)
}

// cutGKEReplica cuts the replica off nvidia<N>[/gi<G>]/vgpu<K>, and reports
// whether id is of that form.
func cutGKEReplica(id string) (device string, ok bool) {
	parts := strings.Split(id, "/")
	last := len(parts) - 1
	switch last {
	case 1:
		ok = isNumbered(parts[0], "nvidia") && isNumbered(parts[1], "vgpu")
	case 2:
		ok = isNumbered(parts[0], "nvidia") && isNumbered(parts[1], "gi") && isNumbered(parts[2], "vgpu")
	}
	if !ok {
		return "", false
	}
	return strings.Join(parts[:last], "/"), true
}

// cutHAMiPart cuts the number off GPU-<uuid>-<i>, and reports whether id is of
// that form.
func cutHAMiPart(id string) (gpu string, ok bool) {
	dash := strings.LastIndexByte(id, '-')
	if dash < 0 || !IsGPU(id[:dash]) || !isNumber(id[dash+1:]) {
		return "", false
	}
	return id[:dash], true
}

// IsGPU reports whether s is GPU-<uuid> exactly: other plugins put more behind.
func IsGPU(s string) bool {
	uuid, ok := strings.CutPrefix(s, gpuPrefix)
	return ok && isUUID(uuid)
}

// IsMIG reports whether s is MIG-<uuid> exactly.
func IsMIG(s string) bool {
	uuid, ok := strings.CutPrefix(s, migPrefix)
	return ok && isUUID(uuid)
}

func isUUID(uuid string) bool {
	if len(uuid) != 36 {
		return false
	}
	for i := range len(uuid) {
		switch c := uuid[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
		default:
			return false
		}
	}
	return true
}

func isNumbered(s, prefix string) bool {
	number, ok := strings.CutPrefix(s, prefix)
	return ok && isNumber(number)
}

// isNumber reports whether s is a decimal number of one to ten digits.
func isNumber(s string) bool {
	if s == "" || len(s) > 10 {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
