// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package intel is what Intel's XPU Manager prints, as data for the machinery that all
// vendors' receivers share. Two programs have that name: 1.x has families of its own
// (xpum_*), 2.x is an OpenTelemetry Collector (hw_*).
package intel

import (
	"iter"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Table is the table of XPU Manager's families.
var Table = devicetable.New(devicetable.Table{})

// NewVendor returns XPU Manager on a node.
func NewVendor(string) *devicemap.Vendor {
	return &devicemap.Vendor{
		Name: "intel_gpu", HwVendor: names.HwVendorIntel, System: "XPU Manager", Devices: "GPUs and tiles",
		Prefixes: []string{"xpum_", "hw_"}, EmptyIsDown: true,

		Table:    Table,
		Unmapped: unmapped,
		Identify: func(iter.Seq2[string, string]) (gpu, tile string) { return "", "" },
		PartID:   deviceid.MIG,
		Label:    exporterlabels.Classify,
	}
}

// unmapped is the name of a family that the table does not know: xpum.<family>, without
// xpum_ or hw_.
func unmapped(family string) string {
	name := strings.TrimPrefix(family, "xpum_")
	return names.IntelPrefix + strings.TrimPrefix(name, "hw_")
}
