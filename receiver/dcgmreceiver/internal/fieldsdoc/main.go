// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command fieldsdoc writes fields.md, the documentation of the field table, into
// the folder that it is called from.
package main

import (
	"fmt"
	"os"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/dcgm"
)

func main() {
	if err := os.WriteFile("fields.md", []byte(markdown()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const intro = `<!-- Written by "go generate" from internal/dcgm. DO NOT EDIT. -->

# Metrics of the dcgm receiver

What each DCGM field becomes. Units on the page are the field's true ones (DCGM 4.6, ` + "`dcgm_fields.h`" + `, and its field reference for 4.7), whatever TYPE and HELP state; the value of a metric is in its own unit. Each point has ` + "`hw.id`" + `; those of hw.power, hw.energy, hw.temperature and hw.errors also ` + "`hw.type`" + `=gpu.

Scope: a **board** field exists once a board. In MIG mode the exporter repeats it on every instance; it goes once to the GPU. The other fields belong to the instance.

A page may have a quantity under several names, as where an exporter's counters file lists old and new ones. The one with the finer unit counts. ` + "`DCGM_FI_DEV_GPU_UTIL_RATIO`" + ` is a percentage until DCGM 4.6 and a ratio from 4.7 on: [how that is decided](README.md#one-name-two-units).

Families that are not listed here leave as ` + "`dcgm.<field>`" + ` (lower case, without DCGM_FI_ and DCGM_) with the type of the page and without unit, or not at all (` + "`unmapped: drop`" + `).

`

func markdown() string {
	return dcgm.Table.Markdown(devicetable.Words{Intro: intro, System: "DCGM", Part: "instance"})
}
