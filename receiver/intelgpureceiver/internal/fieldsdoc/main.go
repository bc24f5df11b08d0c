// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command fieldsdoc writes fields.md, the documentation of the field table, into
// the folder that it is called from.
package main

import (
	"fmt"
	"os"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/intelgpureceiver/internal/intel"
)

func main() {
	if err := os.WriteFile("fields.md", []byte(markdown()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const intro = `<!-- Written by "go generate" from internal/intel. DO NOT EDIT. -->

# Metrics of the intel_gpu receiver

What each family of XPU Manager becomes: those of 1.x begin with ` + "`xpum_`" + `, those of 2.x with ` + "`hw_`" + `. Units on the page are the true ones, whatever TYPE and HELP state; the value of a metric is in its own unit. Each point has ` + "`hw.id`" + `; those of hw.power, hw.energy, hw.temperature and hw.errors also ` + "`hw.type`" + `=gpu.

Scope: rows of a tile belong to the tile, rows without one to the GPU.

Families that are not listed here leave as ` + "`xpum.<family>`" + ` (without xpum_ or hw_) with the type of the page and without unit, or not at all (` + "`unmapped: drop`" + `).

`

func markdown() string {
	return intel.Table.Markdown(devicetable.Words{Intro: intro, System: "XPU Manager", Part: "tile"})
}
