// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command fieldsdoc writes fields.md, the documentation of the field table, into
// the folder that it is called from.
package main

import (
	"fmt"
	"os"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/amdgpureceiver/internal/amd"
)

func main() {
	if err := os.WriteFile("fields.md", []byte(markdown()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const intro = `<!-- Written by "go generate" from internal/amd. DO NOT EDIT. -->

# Metrics of the amd_gpu receiver

What each family of AMD's Device Metrics Exporter becomes. Every family is typed gauge on the page; what it really is stands here. Units on the page are the true ones, whatever HELP states; the value of a metric is in its own unit. Each point has ` + "`hw.id`" + `; those of hw.power, hw.energy, hw.temperature and hw.errors also ` + "`hw.type`" + `=gpu.

Scope: a **board** family exists once a board. On a partitioned board the exporter prints it for partition 0, and it goes to the board. The other families belong to the partition.

A family may begin with ` + "`amd_`" + ` (MetricsFieldPrefix), and may be in upper case. Families that are not listed here leave as ` + "`amd.<family>`" + ` with the type of the page and without unit, or not at all (` + "`unmapped: drop`" + `).

`

func markdown() string {
	return amd.Table.Markdown(devicetable.Words{Intro: intro, System: "Exporter's", Part: "partition"})
}
