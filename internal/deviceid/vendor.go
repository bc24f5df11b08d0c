// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package deviceid

import "strings"

// Make is whose devices an hw.id is of. The form of an id is not that of another make.
type Make uint8

// The makes.
const (
	Unknown Make = iota
	NVIDIA
	AMD
	Gaudi
	IntelGPU
)

// What follows "GPU-", and the beginnings of other ids.
const (
	ofIntel    = "PCI-"
	ofGaudi    = "GAUDI-"
	ofSerial   = "serial-"
	ofUniqueID = 16 // hexadecimal digits
)

// MakeOf returns the make of a device, or of the device that it is a part of, by the form
// of its id; Unknown where no vendor has ids of that form.
func MakeOf(id string) Make {
	if i := strings.IndexAny(id, "/:"); i >= 0 && !strings.HasPrefix(id, ofIntel) {
		id = id[:i] // a part, or a replica
	}
	switch {
	case strings.HasPrefix(id, ofGaudi):
		return Gaudi
	case strings.HasPrefix(id, ofIntel):
		return IntelGPU
	case strings.HasPrefix(id, migPrefix):
		return NVIDIA
	}
	rest, gpu := strings.CutPrefix(id, gpuPrefix)
	switch {
	case !gpu:
		return Unknown
	case strings.HasPrefix(rest, ofSerial), len(rest) == ofUniqueID && strings.Trim(rest, "0123456789abcdefABCDEF") == "":
		return AMD
	case strings.Count(rest, "-") == 4:
		return NVIDIA
	}
	return Unknown
}
