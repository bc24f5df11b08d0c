// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"iter"
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvidia"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// Table is what the library reads and what becomes of it with all groups.
var Table = table(nvmlproto.Groups)

// readings are nvmlproto.Readings by their names.
var readings = func() map[string]*nvmlproto.Reading {
	byName := map[string]*nvmlproto.Reading{}
	for i := range nvmlproto.Readings {
		byName[nvmlproto.Readings[i].Name] = &nvmlproto.Readings[i]
	}
	return byName
}()

// table is the table of some groups. A reading that two groups need becomes the metrics
// of those that are there.
func table(groups []nvmlproto.Group) *devicetable.Table {
	all := slices.Concat(nvidia.Series, series)
	all = slices.DeleteFunc(all, func(s devicetable.Series) bool {
		for _, id := range s.From {
			if r := readings[fields[id].Name]; r != nil {
				return !slices.Contains(groups, r.Group) // that of the first reading
			}
		}
		return false
	})
	return devicetable.New(devicetable.Table{Fields: fields, Series: all, Derived: derived})
}

// Labels of a page's rows.
const (
	labelDriver   = "driver"
	labelFan      = "fan"
	labelHost     = "host"
	labelIndex    = "index"
	labelInstance = "instance"
	labelMIGUUID  = "mig_uuid"
	labelMinor    = "minor"
	labelModel    = "model"
	labelPCI      = "pci"
	labelProfile  = "profile"
	labelSerial   = "serial"
	labelUUID     = "uuid"
	labelVBIOS    = "vbios"
)

var labelKinds = map[string]exporterlabels.Label{
	labelUUID: exporterlabels.UUID, labelInstance: exporterlabels.MIGInstance, labelProfile: exporterlabels.MIGProfile,
	labelIndex: exporterlabels.Index, labelPCI: exporterlabels.PCIAddress, labelModel: exporterlabels.Model, labelHost: exporterlabels.Host,
	labelDriver: exporterlabels.Field, labelMIGUUID: exporterlabels.Field, labelMinor: exporterlabels.Field,
	labelSerial: exporterlabels.Field, labelVBIOS: exporterlabels.Field,
}

// newVendor is NVIDIA's library with some groups. Every row is one of a family in the
// table, and names its device.
func newVendor(groups []nvmlproto.Group, derive func() devicemap.Derivation) *devicemap.Vendor {
	return &devicemap.Vendor{
		Name: "nvml", HwVendor: names.HwVendorNVIDIA, System: "NVML", Devices: "GPUs and MIG instances",
		Prefixes: []string{""},

		Table: table(groups),
		Memory: devicemap.Memory{
			Used: []devicetable.ID{nvidia.FBUsed}, Total: []devicetable.ID{nvidia.FBTotal},
			Free: []devicetable.ID{nvidia.FBFree}, Reserved: []devicetable.ID{nvidia.FBReserved}, Bounded: true,
		},
		Moving: devicemap.Moving{
			Energy: []devicetable.ID{nvidia.Energy},
			Clocks: []devicetable.ID{nvidia.SMClock, nvidia.MemClock, nvidia.VideoClock},
		},
		Absent:   allOnes,
		Unmapped: func(family string) string { return family },

		Identify: identify,
		PartID:   deviceid.MIG,
		Part:     devicemap.PartAttributes{Number: names.GPUMIGInstanceID, Profile: names.GPUMIGProfile, UUID: names.GPUMIGUUID},
		Holders:  names.ExporterHolders,

		Label: func(key string) exporterlabels.Label { return labelKinds[key] },
		Facts: map[string]devicemap.Fact{
			labelDriver: devicemap.Driver, labelSerial: devicemap.Serial, labelVBIOS: devicemap.Firmware,
			labelMinor: devicemap.Minor, labelMIGUUID: devicemap.PartUUID,
		},
		Settle: settle, Derive: derive,
	}
}

// allOnes knows what stands for no value: all bits set, of 32 or of 64.
func allOnes(_ *devicetable.Field, v float64) bool { return v == 1<<32-1 || v >= 1<<64-1<<11 }

func identify(labels iter.Seq2[string, string]) (board, instance string) {
	for key, text := range labels {
		switch key {
		case labelUUID:
			board = text
		case labelInstance:
			instance = text
		}
	}
	return board, instance
}
