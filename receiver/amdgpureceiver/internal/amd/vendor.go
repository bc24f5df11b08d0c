// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package amd is what AMD's Device Metrics Exporter prints, as data for the machinery
// that all vendors' receivers share.
package amd

import (
	"iter"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
)

// Table is the table of the exporter's families.
var Table = devicetable.New(devicetable.Table{})

// NewVendor returns AMD's Device Metrics Exporter on a host, of which host is what is known; nil: nothing.
func NewVendor(func() *gpusysfs.Snapshot) *devicemap.Vendor {
	return &devicemap.Vendor{
		Name: "amd_gpu", HwVendor: "AMD", System: "AMD's exporter", Devices: "boards and partitions",
		Prefixes:    []string{"gpu_", "pcie_", "amd_gpu_", "amd_pcie_", "GPU_", "PCIE_"},
		EmptyIsDown: true,
		Table:       Table,
		Unmapped:    func(family string) string { return "amd." + strings.TrimPrefix(strings.ToLower(family), "amd_") },
		Identify:    func(iter.Seq2[string, string]) (board, part string) { return "", "" },
		PartID:      func(board, part string) string { return board + "/" + part },
		Label:       exporterlabels.Classify,
	}
}
