// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
)

// identity is what the labels of a row contain about its device.
type identity struct {
	unique          uint64 // unique_id of the board, 0 without one
	pciID           uint16 // PCI device id, likewise
	serial          string
	index           string // gpu_id, "" where it is no number
	part            string // gpu_partition_id, likewise
	compute, memory string // mode, in lower case; "" for none
	series, card    string // card_series, card_model
	profile         string // gpu_partition_profile, of a board that is read from its driver
}

// readIdentity reads labels. The oldest exporters have keys in upper case.
func readIdentity(l *devicemap.Labels) (i identity) {
	for key, text := range l.All() {
		if text == notAvailable {
			continue
		}
		switch strings.ToLower(key) {
		case "gpu_uuid":
			i.unique, i.pciID = parseUUID(text)
		case "serial_number":
			i.serial = text
		case "gpu_id":
			i.index = number(text)
		case "gpu_partition_id":
			i.part = number(text)
		case "gpu_compute_partition_type":
			i.compute = mode(text)
		case "gpu_memory_partition_type":
			i.memory = mode(text)
		case "card_series":
			i.series = text
		case "card_model":
			i.card = text
		case "gpu_partition_profile":
			i.profile = text
		}
	}
	return i
}

// notAvailable is what the exporter prints for a label that it has no value for.
const notAvailable = "N/A"

// parseUUID reads gpu_uuid, AAFFDDDD-xxxx-xxxx-vvBB-CCCCDDDDDDDD: the unique_id of the
// board is AABBCCCCDDDDDDDD, and the first DDDD the PCI device id (AMD's library,
// amd_smi_uuid.cc). FF and the x are no identity: they differ between versions, and the
// partition may stand there. 0 for what is no such uuid.
func parseUUID(text string) (unique uint64, pciID uint16) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return 0, 0
	}
	digits := strings.ReplaceAll(text, "-", "")
	if len(digits) != 32 {
		return 0, 0
	}
	high, err := strconv.ParseUint(digits[:16], 16, 64)
	if err != nil {
		return 0, 0
	}
	low, err := strconv.ParseUint(digits[16:], 16, 64)
	if err != nil {
		return 0, 0
	}
	unique = high>>56<<56 | low&(1<<56-1)
	if unique == 0 {
		return 0, 0
	}
	return unique, uint16(high >> 32)
}

// number returns text if it is a small number, in decimal without leading zeros, or "":
// the exporter prints NA, or all bits set, for no number.
func number(text string) string {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// mode reads a partition mode. Without partitions it is "" or spx, for the memory nps1.
func mode(text string) string {
	text = strings.ToLower(text)
	for _, of := range [...]string{"compute", "memory"} { // the name of AMD's constant
		text = strings.TrimPrefix(text, "gpu_"+of+"_partition_type_")
	}
	switch text {
	case "none", "n/a", "na":
		return ""
	}
	if len(text) > 8 || strings.ContainsAny(text, "/:") {
		return ""
	}
	return text
}

// hwModel is the product for people: its name, else its PCI device id, else its part
// number.
func (i *identity) hwModel() string {
	switch {
	case i.series != "":
		return i.series
	case i.pciID != 0:
		return "0x" + strconv.FormatUint(uint64(i.pciID), 16)
	default:
		return i.card
	}
}

// serials are the serial numbers of a page.
type serials map[string]*serial

// serial is which rows of a page have a serial number.
type serial struct {
	unique bool              // one with a unique_id
	parts  map[string]string // of those without: gpu_id, by partition
	shared bool              // two boards have it
}

// note notes the row's serial number. Two rows of one partition with different gpu_id are
// of two boards. One without a unique_id beside one with it may be of another board.
func (s serials) note(i *identity) {
	if i.serial == "" {
		return
	}
	known := s[i.serial]
	if known == nil {
		known = &serial{parts: map[string]string{}}
		s[i.serial] = known
	}
	if i.unique != 0 {
		known.unique = true
	} else {
		index, seen := known.parts[i.part]
		known.shared = known.shared || seen && index != i.index
		known.parts[i.part] = i.index
	}
	known.shared = known.shared || known.unique && len(known.parts) > 0
}

// mixed reports whether one board without partitions and one with some have the serial
// number. A row of a partition may lack its number.
func (s *serial) mixed() bool {
	index, whole := s.parts[""]
	if !whole || index == "" || len(s.parts) == 1 {
		return false
	}
	for part, other := range s.parts {
		if part != "" && other == index {
			return false
		}
	}
	return true
}

// board is the hw.id of the board that labels are about; "" where it cannot be known. In
// this order: by the unique_id; by that of the host's only board with the serial number; by
// the serial number. The latter two only where no two boards of the page have it.
func (s *survey) board(i *identity) string {
	if i.unique != 0 {
		return deviceid.AMD(i.unique)
	}
	if known := s.serials[i.serial]; known == nil || known.shared || known.mixed() {
		return ""
	}
	if host := s.sysfs.BySerial(i.serial); host != nil && host.UniqueID != 0 {
		return deviceid.AMD(host.UniqueID)
	}
	return deviceid.AMDSerial(i.serial)
}
