// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "strings"

// Kind are the features of a board that decide which inputs it can have.
type Kind uint8

const (
	// NVIDIA boards have XIDs, a recovery action and DCGM's health watches.
	NVIDIA Kind = 1 << iota
	// RemapsRows: it replaces faulty rows of its memory, from Ampere on.
	RemapsRows
	// RetiresPages: it retires faulty pages of its memory, before Ampere.
	RetiresPages
	// NVLink: it has links, or can be given them.
	NVLink
	// Fabric: its links are part of a fabric of which it reports the health.
	Fabric
)

// Words of hw.model, without the size of the memory.
var (
	beforeAmpere = words("V100 V100S P100 P40 P6 P4 T4 T4G T10 K80 K40 K20 M60 M40 M10 M6 M4 TITAN QUADRO GTX TESLA")
	withoutLinks = words("T4 T4G P40 P6 P4 M60 M40 M10 M6 M4 K80 K40 K20 GTX L4 L40 L40S L20 L2 A2 A10 A10G A10M A16 ADA LAPTOP")
	withFabric   = words("H100 H200 H800 H20 B100 B200 B300 GB200 GB300")
	noFabric     = words("PCIE NVL")
	others       = words("AMD INSTINCT RADEON INTEL INTEL(R) GAUDI HL")
)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// KindOf returns the features of a model by its name, hw.model. A name that is not known
// is that of an NVIDIA board of today without a fabric.
func KindOf(model string) Kind {
	is := NVIDIA | RemapsRows | NVLink
	old, fabric, plain := false, false, false
	for word := range strings.FieldsFuncSeq(strings.ToUpper(model), func(r rune) bool { return r == ' ' || r == '-' || r == '_' }) {
		if others[word] {
			return 0
		}
		old, fabric, plain = old || beforeAmpere[word], fabric || withFabric[word], plain || noFabric[word]
		if withoutLinks[word] {
			is &^= NVLink
		}
	}
	if old {
		is = is&^RemapsRows | RetiresPages
	}
	if fabric && !plain {
		is |= Fabric
	}
	return is
}
