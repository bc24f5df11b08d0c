// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package intel is what Intel's XPU Manager prints, as data for the machinery that all
// vendors' receivers share. Two programs have that name: 1.x has families of its own
// (xpum_*), 2.x is an OpenTelemetry Collector (hw_*). The table is in fields.go and
// series.go; settle.go has what takes several rows, and state.go what takes several pages.
package intel

import (
	"cmp"
	"iter"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Table is the table of XPU Manager's families.
var Table = devicetable.New(devicetable.Table{Fields: fields, Series: series, Derived: derived, Dropped: dropped})

// NewVendor returns XPU Manager on a node. The node's name is a part of the ids of its
// GPUs: node where it is configured, else what the page names, else host.
func NewVendor(node, host string) *devicemap.Vendor {
	return &devicemap.Vendor{
		Name: "intel_gpu", HwVendor: names.HwVendorIntel, System: "XPU Manager", Devices: "GPUs and tiles",
		Prefixes: []string{"xpum_", "hw_"}, EmptyIsDown: true,

		Table:  Table,
		Memory: devicemap.Memory{Used: ids(MemoryUsed, Used), Total: ids(Size), Bounded: true},
		Moving: devicemap.Moving{
			Energy: ids(EnergyJoules, Energy), Clocks: ids(SMClock, MemoryClock, MediaClock), MustMove: true,
		},
		Unmapped: unmapped,

		Identify: func(labels iter.Seq2[string, string]) (gpu, tile string) { return identify(labels, node, host) },
		Lesser:   lesser,
		PartID:   deviceid.Partition,
		Part:     devicemap.PartAttributes{Number: names.GPUPartitionID},

		HeldWhole: true, // the device plugin knows no tiles

		Label:      classify,
		AbsentText: absentText,
		Facts:      map[string]devicemap.Fact{"hw_serial_number": devicemap.Serial, "hw_firmware_version": devicemap.Firmware},
		Settle:     settle,
		Derive:     func() devicemap.Derivation { return &state{} },
	}
}

// identify finds the GPU, by its node and PCI address, since the ids that XPU Manager
// prints repeat between hosts; and on the rows of one of its tiles the tile.
func identify(labels iter.Seq2[string, string], node, host string) (gpu, tile string) {
	var address, named string
	card := false
	for key, text := range labels {
		switch key {
		case "pci_bdf":
			address = text
		case "node":
			named = text
		case "sub_dev", "com_intel_subdevice_id":
			tile = text
		case "card":
			card = true
		}
	}
	if address == "" && card {
		return devicemap.DropRows, "" // the sum over the GPUs of a card
	}
	if gpu = deviceid.Intel(cmp.Or(node, named, host), address); gpu == "" {
		return "", ""
	}
	if !isTile(tile) {
		tile = ""
	}
	return gpu, tile
}

// isTile reports whether a text is the number of a tile.
func isTile(text string) bool {
	return len(text) <= 3 && strings.Trim(text, "0123456789") == ""
}

// lesser knows the rows that 1.x computes from those of tiles.
func lesser(labels *devicemap.Labels) bool {
	src := labels.Get("src")
	return src == "sum" || src == "avg"
}

// classify knows the labels of both versions. What identifies or describes a device is
// not an attribute of the points of unmapped families.
func classify(key string) exporterlabels.Label {
	switch key {
	case "pci_bdf":
		return exporterlabels.PCIAddress
	case "dev_name", "hw_model":
		return exporterlabels.Model
	case "hw_serial_number", "hw_firmware_version":
		return exporterlabels.Field
	case "kube_pod":
		return exporterlabels.Pod
	case "kube_namespace":
		return exporterlabels.Namespace
	case "kube_container":
		return exporterlabels.Container
	case "uuid", "hw_id", "sub_dev", "com_intel_subdevice_id", "node", "src", "dev_file",
		"vendor", "hw_vendor", "pci_dev", "pci_vendor_id", "pci_device_id":
		return exporterlabels.UUID
	}
	if strings.HasPrefix(key, "otel_scope_") {
		return exporterlabels.Scrape
	}
	return exporterlabels.Classify(key)
}

// absentText knows the texts that stand for no value.
func absentText(text string) bool {
	switch text {
	case "unknown", "n/a", "N/A":
		return true
	}
	return false
}

// unmapped is the name of a family that the table does not know: xpum.<family>, without
// xpum_ or hw_.
func unmapped(family string) string {
	name := strings.TrimPrefix(family, "xpum_")
	return names.IntelPrefix + strings.TrimPrefix(name, "hw_")
}
