// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package dcgm is what dcgm-exporter prints, as data for the machinery that all vendors'
// receivers share: the table of DCGM fields (fields.go), DCGM's values for no value, and the
// labels. What the fields become is in internal/nvidia.
package dcgm

import (
	"iter"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvidia"
	"github.com/otelcol-gpu/otelcol-gpu/internal/seendevices"
)

// Table is the table of DCGM fields.
var Table = devicetable.New(devicetable.Table{Fields: fields, Series: nvidia.Series, Derived: nvidia.Derived, Passed: passed})

// passed are fields beside those of the table that have names like theirs.
var passed = []string{
	"DCGM_EXP_XID_ERRORS_COUNT", "DCGM_FI_DEV_FB_USED_PERCENT", "DCGM_FI_DEV_FB_USED_RATIO", "DCGM_FI_DEV_POWER_USAGE_INSTANT",
}

// Vendor is NVIDIA's dcgm-exporter.
var Vendor = devicemap.Vendor{
	Name: "dcgm", HwVendor: names.HwVendorNVIDIA, System: "DCGM", Devices: "GPUs and MIG instances",
	Prefixes: []string{"DCGM_", "dcgm_"},

	Table: Table,
	Memory: devicemap.Memory{
		Used: []devicetable.ID{nvidia.FBUsed}, Total: []devicetable.ID{nvidia.FBTotal},
		Free: []devicetable.ID{nvidia.FBFree}, Reserved: []devicetable.ID{nvidia.FBReserved},
	},
	Shares: &devicemap.Shares{Memory: nvidia.FBUsed, Utilization: nvidia.GPUUtil},
	Moving: devicemap.Moving{
		Energy: []devicetable.ID{nvidia.Energy},
		Clocks: []devicetable.ID{nvidia.SMClock, nvidia.MemClock, nvidia.VideoClock},
	},
	Absent:   sentinel,
	Unmapped: unmapped,
	Falls:    mistypedCounter,
	Evidence: evidence,
	Meaning:  meaning,

	Identify: identify,
	PartID:   deviceid.MIG,
	Part:     devicemap.PartAttributes{Number: names.GPUMIGInstanceID, Profile: names.GPUMIGProfile, UUID: names.GPUMIGUUID},
	Holders:  names.ExporterHolders,

	Label:      exporterlabels.Classify,
	AbsentText: textSentinel,
	Facts: map[string]devicemap.Fact{
		oldDriverLabel:              devicemap.Driver,
		newDriverLabel:              devicemap.Driver,
		"DCGM_FI_DEV_SERIAL":        devicemap.Serial,
		"DCGM_FI_DEV_BOARD_SERIAL":  devicemap.Serial,
		"DCGM_FI_DEV_VBIOS_VERSION": devicemap.Firmware,
		"dra_mig_device_uuid":       devicemap.PartUUID,
	},
	PodLabel: unprefixedPodLabel,
	Derive:   nvidia.Derive(seendevices.Process.XIDsCounted),
}

// identify finds the GPU, and the GPU instance in MIG mode.
func identify(labels iter.Seq2[string, string]) (gpu, instance string) {
	for key, text := range labels {
		if textSentinel(text) {
			continue
		}
		switch exporterlabels.Classify(key) {
		case exporterlabels.UUID:
			gpu = text
		case exporterlabels.MIGInstance:
			instance = text
		}
	}
	return gpu, instance
}

// unprefixedPodLabel knows the labels of a pod that can name its service, as
// exporters before 4.8.3 print them: without pod_label_. Only on pages that we
// scraped ourselves: elsewhere such a label may be the exporter pod's own.
func unprefixedPodLabel(key string) bool {
	switch key {
	case "app", "app_kubernetes_io_name", "app_kubernetes_io_instance":
		return true
	default:
		return false
	}
}

// unmapped is the name of a family or label-type field that the table does
// not know: dcgm.<field>, lower case, without DCGM_FI_ or DCGM_.
func unmapped(family string) string {
	name := strings.TrimPrefix(strings.ToLower(family), "dcgm_")
	return names.DCGMPrefix + strings.TrimPrefix(name, "fi_")
}
