// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package deviceid builds and reads hw.id, the identity of a device:
//
//	GPU-<uuid>                  a physical GPU
//	GPU-<uuid>/<GPU instance>   a MIG instance
//	<either>::<n>               a replica of a shared device
package deviceid

import (
	"strconv"
	"strings"
)

const (
	gpuPrefix = "GPU-"
	migPrefix = "MIG-" // of kubelet ids and UUIDs; an hw.id begins with the GPU's
)

// MIG is the hw.id of a GPU's MIG instance.
func MIG(gpu, instance string) string { return gpu + "/" + instance }

// Replica is the hw.id of one of the owners' parts of a shared device.
func Replica(device string, n int) string { return device + "::" + strconv.Itoa(n) }

// Parent is the hw.id of the device that a logical device is part of, and ""
// for a physical one. A replica of a MIG instance has the instance as parent.
func Parent(id string) string {
	if device, _, replica := strings.Cut(id, "::"); replica {
		return device
	}
	gpu, _, mig := strings.Cut(id, "/")
	if mig {
		return gpu
	}
	return ""
}

// HasGPU reports whether an id begins with that of a physical GPU, whatever follows: a
// MIG instance, a replica.
func HasGPU(id string) bool { return strings.HasPrefix(id, gpuPrefix) }

// Known reports whether a text is in the form of a device's id as exporters and device
// plugins have it. Attributes of the same name hold other ids too: a request's, a disk's.
func Known(id string) bool { return HasGPU(id) || strings.HasPrefix(id, migPrefix) }

// PCIAddress normalises a PCI address to the Linux form 0000:03:00.0, lower
// case: NVML and DCGM print a domain of eight digits. What is no PCI address
// comes back in lower case and otherwise unchanged.
func PCIAddress(s string) string {
	s = strings.ToLower(s)
	domain, rest, found := strings.Cut(s, ":")
	if !found || strings.Count(rest, ":") != 1 {
		return s
	}
	for len(domain) > 4 && domain[0] == '0' {
		domain = domain[1:]
	}
	return domain + ":" + rest
}
