// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pagetext

import (
	"iter"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
)

// vendor is one without a table: a reader needs no more.
var vendor = &devicemap.Vendor{
	Name: "acme", Prefixes: []string{"DCGM_"}, Table: devicetable.New(devicetable.Table{}),
	Label:    exporterlabels.Classify,
	Unmapped: func(family string) string { return family },
	Identify: func(labels iter.Seq2[string, string]) (board, part string) {
		for key, text := range labels {
			if exporterlabels.Classify(key) == exporterlabels.UUID {
				board = text
			}
		}
		return board, ""
	},
}
