// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package devicemaptest has an invented vendor, for tests of what all vendors share.
package devicemaptest

import (
	"iter"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	load devicetable.ID = iota
	energy
)

// Acme has two fields, acme_load in percent and acme_energy in millijoules, and labels as
// dcgm-exporter has them.
var Acme = devicemap.Vendor{
	Name: "acme", HwVendor: "Acme", System: "Acme", Devices: "devices", Prefixes: []string{"acme_"},
	Table: devicetable.New(devicetable.Table{
		Fields: []devicetable.Field{
			load:   {Name: "acme_load", Unit: "%", Div: 100},
			energy: {Name: "acme_energy", Unit: "mJ", Div: 1000},
		},
		Series: []devicetable.Series{
			{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "general", From: []devicetable.ID{load}},
			{Metric: &names.HwEnergy, From: []devicetable.ID{energy}},
		},
	}),
	Moving:   devicemap.Moving{Energy: []devicetable.ID{energy}},
	Label:    exporterlabels.Classify,
	Unmapped: func(family string) string { return strings.Replace(family, "acme_", "acme.", 1) },
	Identify: func(labels iter.Seq2[string, string]) (board, part string) {
		for key, text := range labels {
			if exporterlabels.Classify(key) == exporterlabels.UUID {
				board = text
			}
		}
		return board, ""
	},
	PartID: func(board, part string) string { return board + "/" + part },
}
