// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inventory // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// Vendor of the device, "" where its id is of no known form: no label has it.
func (d *Device) Vendor() string {
	switch deviceid.MakeOf(d.ID.Name) {
	case deviceid.MakeNVIDIA:
		return names.HwVendorNVIDIA
	case deviceid.MakeAMD:
		return names.HwVendorAMD
	case deviceid.MakeGaudi, deviceid.MakeIntelGPU:
		return names.HwVendorIntel
	default:
		return ""
	}
}

// Model of the device, "" where it is not known. No label has that of a Gaudi, but its id.
func (d *Device) Model() string {
	if m := d.Identity[queries.Model]; m != "" || deviceid.MakeOf(d.ID.Name) != deviceid.MakeGaudi {
		return string(m)
	}
	return "Gaudi"
}

// MeasuresPipes reports whether devices of its make usually have the activity of tensor
// pipe, SMs, DRAM, FP16 and FP32. Others have some of it with the right version of their
// exporter, and its profiler on.
func (d *Device) MeasuresPipes() bool {
	switch deviceid.MakeOf(d.ID.Name) {
	case deviceid.MakeAMD, deviceid.MakeGaudi, deviceid.MakeIntelGPU:
		return false
	default:
		return true
	}
}
