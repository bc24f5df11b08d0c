// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package gaudi is what Intel's Gaudi metric exporter prints, as data for the machinery
// that all vendors' receivers share: the table of its families (fields.go, series.go), its
// labels, and how a device of which all readings failed is known.
package gaudi

import (
	"iter"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Table is the table of the exporter's families.
var Table = devicetable.New(devicetable.Table{Fields: fields, Series: series, Derived: derived, Dropped: dropped})

// Vendor is Intel's Gaudi metric exporter.
var Vendor = devicemap.Vendor{
	Name: "gaudi", HwVendor: names.HwVendorIntel, System: "the Gaudi metric exporter", Devices: "devices",
	Prefixes:    []string{"habanalabs_", "accelerator_"},
	EmptyIsDown: true, OnlyDevices: true,

	Table:    Table,
	Memory:   devicemap.Memory{Used: from(MemoryUsed), Total: from(MemoryTotal), Free: from(MemoryFree), Bounded: true},
	Moving:   devicemap.Moving{Energy: from(Energy), Clocks: from(Clock), MustMove: true},
	Unmapped: func(family string) string { return names.GaudiPrefix + strings.TrimPrefix(family, "habanalabs_") },

	Identify:   identify,
	PartID:     deviceid.Partition, // no version of the exporter names parts
	Label:      exporterlabels.Gaudi,
	AbsentText: absentText,
	Facts: map[string]devicemap.Fact{
		"Serial": devicemap.Serial, "driver": devicemap.Driver, "fit": devicemap.Firmware,
	},
	Settle: settle,
}

// identify finds the device by its serial number, which the label device repeats.
func identify(labels iter.Seq2[string, string]) (device, part string) {
	for key, text := range labels {
		if (key == "Serial" || key == "device" && device == "") && !absentText(text) {
			device = deviceid.Gaudi(text)
		}
	}
	return device, ""
}

// absentText knows what the exporter prints for a text that it could not read.
func absentText(text string) bool {
	return strings.EqualFold(text, "na") || strings.EqualFold(text, "n/a")
}

// settle takes the zeros of a device away of which the readings failed: each of them prints
// 0, and a device has memory. What is a flag becomes 0 or 1.
func settle(d *devicemap.Device) {
	if total := d.Reading(MemoryTotal); total.Known() && total.V == 0 {
		d.RefuseZeros(devicemap.NoSensor)
	}
	if x := d.Reading(ReplacementPending); x.Known() {
		d.Set(ReplacementPending, min(x.V, 1)) // a flag
	}
	for port, x := range d.Rows(PortStatus) {
		d.SetRow(PortStatus, port, min(x.V, 1)) // likewise
	}
}
