// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
)

// Kind are the features of a board that decide which inputs it can have.
type Kind uint16

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
	// CountsErrors: its exporter counts memory errors that could not be corrected.
	CountsErrors
	// Replays: its exporter counts repeated PCIe transfers.
	Replays
	// Throttles: its exporter reports what holds the clocks down.
	Throttles
	// OwnHealth: its exporter has a judgement of its own about the board.
	OwnHealth
)

// Kinds by vendor: what can be on the pages of its exporters. Those of NVIDIA have more, by
// model.
const (
	nvidia = NVIDIA | CountsErrors | Replays | Throttles
	amd    = CountsErrors | Replays | Throttles | OwnHealth
	gaudi  = Replays
	intel  = CountsErrors | OwnHealth
)

// Words of hw.model, without the size of the memory.
var (
	beforeAmpere = words("V100 V100S P100 P40 P6 P4 T4 T4G T10 K80 K40 K20 M60 M40 M10 M6 M4 TITAN QUADRO GTX TESLA")
	withoutLinks = words("T4 T4G P40 P6 P4 M60 M40 M10 M6 M4 K80 K40 K20 GTX L4 L40 L40S L20 L2 A2 A10 A10G A10M A16 ADA LAPTOP")
	withFabric   = words("H100 H200 H800 H20 B100 B200 B300 GB200 GB300")
	noFabric     = words("PCIE NVL")
	others       = map[string]Kind{
		"AMD": amd, "INSTINCT": amd, "RADEON": amd, "INTEL": intel, "INTEL(R)": intel, "GAUDI": gaudi, "HL": gaudi,
	}
)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// KindOf returns the features of a board by hw.id, which states its vendor, and by the
// name of its model, hw.model. A name that is not known is that of an NVIDIA board of today
// without a fabric.
func KindOf(id, model string) Kind {
	switch deviceid.MakeOf(id) {
	case deviceid.MakeAMD:
		return amd
	case deviceid.MakeGaudi:
		return gaudi
	case deviceid.MakeIntelGPU:
		return intel
	}
	is := nvidia | RemapsRows | NVLink
	old, fabric, plain := false, false, false
	for word := range strings.FieldsFuncSeq(strings.ToUpper(model), func(r rune) bool { return r == ' ' || r == '-' || r == '_' }) {
		if other := others[word]; other != 0 {
			return other
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
