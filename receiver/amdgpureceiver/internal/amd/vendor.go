// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package amd is what AMD's Device Metrics Exporter prints, as data for the machinery
// that all vendors' receivers share: the table of families (fields.go, series.go, derived.go), which
// device a row is about (identity.go, survey.go), what is decided over the partitions of a
// board (settle.go), and what takes more than one family (events.go, throttle.go).
package amd

import (
	"iter"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Table is the table of the exporter's families.
var Table = devicetable.New(devicetable.Table{Fields: fields, Series: series, Derived: derived, Dropped: dropped})

var powers = []devicetable.ID{PackagePower, AveragePackagePower, PowerUsage}

// NewVendor returns AMD's Device Metrics Exporter. snapshot is what is known of the boards
// of this host, and may return nil; it is asked once a page.
func NewVendor(snapshot func() *gpusysfs.Snapshot) *devicemap.Vendor {
	if snapshot == nil {
		snapshot = func() *gpusysfs.Snapshot { return nil }
	}
	return &devicemap.Vendor{
		Name: "amd_gpu", HwVendor: names.HwVendorAMD, System: "AMD's exporter", Devices: "boards and partitions",
		Prefixes:    []string{"gpu_", "pcie_", "xgmi_", "sysfs_"},
		Family:      family,
		EmptyIsDown: true, OnlyDevices: true,

		Table:   Table,
		Memory:  devicemap.Memory{Used: []devicetable.ID{UsedVRAM}, Total: []devicetable.ID{TotalVRAM, TotalMemory}, Bounded: true},
		Moving:  devicemap.Moving{Energy: []devicetable.ID{Energy}, MustMove: true},
		Counted: []devicetable.ID{NodesTotal},

		Unmapped: func(name string) string { return names.AMDPrefix + family(name) },
		Survey: func(_ any, labels iter.Seq[*devicemap.Labels]) devicemap.Survey {
			return newSurvey(snapshot, labels)
		},
		PartID: deviceid.Partition,
		Part:   devicemap.PartAttributes{Number: names.GPUPartitionID, Profile: names.GPUPartitionProfile},
		Settle: settle,
		Derive: func() devicemap.Derivation { return &derivation{} },

		Label:             exporterlabels.AMD,
		PodNeedsContainer: true,
		AbsentText:        func(text string) bool { return text == notAvailable },
		Facts: map[string]devicemap.Fact{
			"driver_version": devicemap.Driver, "DRIVER_VERSION": devicemap.Driver,
			"serial_number": devicemap.Serial, "SERIAL_NUMBER": devicemap.Serial,
			"vbios_version": devicemap.Firmware, "VBIOS_VERSION": devicemap.Firmware,
		},
	}
}

// family is the name of a family without MetricsFieldPrefix, in the case of later versions.
func family(name string) string { return strings.TrimPrefix(strings.ToLower(name), "amd_") }
