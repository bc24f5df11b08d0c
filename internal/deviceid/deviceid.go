// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package deviceid builds and reads hw.id, the identity of a device:
//
//	GPU-<uuid>                  a physical GPU of NVIDIA
//	GPU-<16 hex digits>         a board of AMD, by its unique_id
//	GPU-serial-<serial>         a board of AMD of which only the serial number is known
//	GAUDI-<serial>              a Gaudi accelerator
//	PCI-<node>@<PCI address>    a GPU of Intel, whose own ids repeat between hosts
//	<any of these>/<part>       a MIG instance, a partition, a tile
//	<any of these>::<n>         a replica of a shared device
package deviceid

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	gpuPrefix    = "GPU-"
	serialPrefix = "GPU-serial-"
	gaudiPrefix  = "GAUDI-"
	pciPrefix    = "PCI-"
	migPrefix    = "MIG-" // of kubelet ids and UUIDs; an hw.id begins with the GPU's
)

// maxName bounds a serial number and a node's name in an id, in bytes.
const maxName = 253

// AMD is the hw.id of a board of AMD: of the unique_id that the kernel has for its PCI device.
// It is "" for 0, which is no id.
func AMD(unique uint64) string {
	if unique == 0 {
		return ""
	}
	return fmt.Sprintf("%s%016x", gpuPrefix, unique)
}

// UniqueID reads a unique_id: 16 hexadecimal digits, as the kernel prints them, or fewer, in
// either case, with or without 0x. It is 0 for what is no such number.
func UniqueID(text string) uint64 {
	text = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(text)), "0x")
	unique, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		return 0
	}
	return unique
}

// AMDSerial is the hw.id of a board of AMD of which only the serial number is known. It is ""
// for a text that is no serial number.
func AMDSerial(serial string) string { return withSerial(serialPrefix, serial) }

// Gaudi is the hw.id of a Gaudi accelerator. It is "" for a text that is no serial number.
func Gaudi(serial string) string { return withSerial(gaudiPrefix, serial) }

// Intel is the hw.id of a GPU of Intel: of the node's name and the PCI address, in any form
// that PCIAddress reads. It is "" where one of them is not known.
func Intel(node, address string) string {
	address = PCIAddress(address)
	if !IsPCI(address) {
		return ""
	}
	if id := withName(pciPrefix, node); id != "" {
		return id + "@" + address
	}
	return ""
}

// withSerial is "" for what exporters print where they do not know the serial number.
func withSerial(prefix, serial string) string {
	switch strings.ToLower(serial) {
	case "na", "none", "unknown":
		return ""
	}
	return withName(prefix, serial)
}

// withName is "" where a name cannot stand in an id: Parent and CutReplica cut at "/" and "::".
func withName(prefix, name string) string {
	if name == "" || len(name) > maxName {
		return ""
	}
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c >= 0x7f || c == '/' || c == ':' || c == '@' {
			return ""
		}
	}
	return prefix + name
}

// MIG is the hw.id of a GPU's MIG instance.
func MIG(gpu, instance string) string { return Partition(gpu, instance) }

// Partition is the hw.id of a logical part of a board: a partition of AMD, a tile of Intel.
func Partition(board, part string) string { return board + "/" + part }

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

// HasGPU reports whether an id begins with that of a physical device of any vendor, whatever
// follows: a MIG instance, a replica.
func HasGPU(id string) bool {
	return strings.HasPrefix(id, gpuPrefix) || strings.HasPrefix(id, gaudiPrefix) ||
		strings.HasPrefix(id, pciPrefix) && strings.IndexByte(id, '@') > 0
}

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

// IsPCI reports whether s is a PCI address as PCIAddress gives it: dddd:bb:dd.f, with a
// domain of four digits or more.
func IsPCI(s string) bool {
	domain := len(s) - len(":bb:dd.f")
	if domain < 4 || domain > 8 {
		return false
	}
	for i := range len(s) {
		want := byte(0)
		switch i - domain {
		case 0, 3:
			want = ':'
		case 6:
			want = '.'
		}
		switch c := s[i]; {
		case want != 0:
			if c != want {
				return false
			}
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f':
		default:
			return false
		}
	}
	return true
}
