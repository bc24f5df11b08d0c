// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package deviceid

import "strings"

// Make is the make of the device that an hw.id is of. Each make has a form of its own.
type Make uint8

// The makes.
const (
	MakeUnknown Make = iota
	MakeNVIDIA
	MakeAMD
	MakeGaudi
	MakeIntelGPU
)

// uniqueDigits are those of the id of a board of AMD.
const uniqueDigits = 16

// OthersPattern matches the ids of devices of all makes but NVIDIA's, and of their parts, as a
// regular expression of Prometheus.
const OthersPattern = gpuPrefix + "[0-9a-f]{16}(/.*|::.*)?|" + serialPrefix + ".*|" + gaudiPrefix + ".*|" + pciPrefix + ".*"

// MakeOf returns the make of a device, or of the device that it is a part of, by the form
// of its id; MakeUnknown where no vendor has ids of that form.
func MakeOf(id string) Make {
	if i := strings.IndexAny(id, "/:"); i >= 0 && !strings.HasPrefix(id, pciPrefix) {
		id = id[:i] // a part, or a replica
	}
	switch {
	case strings.HasPrefix(id, gaudiPrefix):
		return MakeGaudi
	case strings.HasPrefix(id, pciPrefix):
		return MakeIntelGPU
	case strings.HasPrefix(id, migPrefix):
		return MakeNVIDIA
	}
	rest, gpu := strings.CutPrefix(id, gpuPrefix)
	switch {
	case strings.HasPrefix(id, serialPrefix), gpu && len(rest) == uniqueDigits && UniqueID(rest) != 0:
		return MakeAMD
	case gpu && strings.Count(rest, "-") == 4:
		return MakeNVIDIA
	}
	return MakeUnknown
}
