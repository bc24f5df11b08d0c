// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package exporterlabels knows every spelling of the labels that dcgm-exporter
// has printed since DCGM 1.x, before and after a scrape by Prometheus.
//
// Only spellings are known here; what a label means for a device is decided by
// the dcgm receiver and the gpu_pod processor, which both read labels.
package exporterlabels

import "strings"

// Label is the meaning of a label, whatever its spelling.
type Label uint8

const (
	// Other is a label that is neither identity nor owner: a dimension of its
	// family (xid, window_size_in_ms, peer_gpu).
	Other Label = iota

	// UUID is the physical GPU's UUID, on the series of MIG instances too.
	UUID
	// Index is the GPU's index on its host, which is not identity.
	Index
	// PCIAddress is the PCI address with a domain of 4 or 8 digits.
	PCIAddress
	// Device is "nvidia" and the index.
	Device
	// Model is the product's name.
	Model
	// Host is the host's name as the exporter sees it.
	Host
	// MIGInstance is the GPU instance's number.
	MIGInstance
	// MIGProfile is the GPU instance's profile, such as 1g.10gb.
	MIGProfile
	// Field is a DCGM field of type label: DCGM_FI_DRIVER_VERSION and others.
	Field
	// Scrape is put there by a scraper or repeats the family's name:
	// job and instance of the exporter, err_code and err_msg of an XID.
	Scrape

	// The labels from here on name the owner of the device.

	// Pod is the owner's pod.
	Pod
	// Namespace is the owner's namespace.
	Namespace
	// Container is the owner's container.
	Container
	// PodUID is the owner's pod UID.
	PodUID
	// PodLabel is a label of the owner's pod: pod_label_<key, sanitised>.
	PodLabel
	// VGPU is the replica of a shared device.
	VGPU
	// HPCJob is the batch job that holds the device.
	HPCJob
	// DRA names the claim that the device was given through.
	DRA
)

// NamesOwner reports whether the label names the owner of a device.
func (l Label) NamesOwner() bool { return l >= Pod }

// Classify returns what the label named key is about. Keys are case-sensitive, as
// Prometheus labels are.
//
// A scraper that puts its own pod labels on a target renames the exporter's to
// exported_*. Where both are there the exported one is the owner's; the plain
// one names the exporter itself. See Exported.
func Classify(key string) Label {
	switch key {
	case "UUID", "uuid", "gpu_uuid":
		return UUID
	case "gpu":
		return Index
	case "pci_bus_id":
		return PCIAddress
	case "device":
		return Device
	case "modelName", "model_name":
		return Model
	case "Hostname", "hostname":
		return Host
	case "GPU_I_ID":
		return MIGInstance
	case "GPU_I_PROFILE":
		return MIGProfile
	case "job", "instance", "err_code", "err_msg", "exported_job", "exported_instance":
		return Scrape
	case "pod", "pod_name", "exported_pod":
		return Pod
	case "namespace", "pod_namespace", "exported_namespace":
		return Namespace
	case "container", "container_name", "exported_container":
		return Container
	case "pod_uid", "exported_pod_uid":
		return PodUID
	case "vgpu":
		return VGPU
	case "hpc_job":
		return HPCJob
	}
	switch {
	case strings.HasPrefix(key, "DCGM_FI_"):
		return Field
	case strings.HasPrefix(key, "pod_label_"):
		return PodLabel
	case strings.HasPrefix(key, "dra_"):
		return DRA
	}
	return Other
}

// Exported reports whether key is a label that a scraper renamed because the
// target had one of that name already. Its value is the exporter's own word and
// wins over the plain spelling beside it.
func Exported(key string) bool { return strings.HasPrefix(key, "exported_") }

// OfPart reports whether a label of a claim names a part of a GPU, as dra_mig_profile does.
func OfPart(key string) bool { return strings.HasPrefix(key, "dra_mig_") }
