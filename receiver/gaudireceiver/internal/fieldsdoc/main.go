// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command fieldsdoc writes fields.md, the documentation of the field table, into
// the folder that it is called from.
package main

import (
	"fmt"
	"os"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gaudireceiver/internal/gaudi"
)

func main() {
	if err := os.WriteFile("fields.md", []byte(markdown()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const intro = `<!-- Written by "go generate" from internal/gaudi. DO NOT EDIT. -->

# Metrics of the gaudi receiver

What each family of the Gaudi metric exporter becomes. Units on the page are the true ones, whatever the family's name states; the exporter types every family gauge, and the kind of a metric is the one here. Each point has ` + "`hw.id`" + `; those of hw.power, hw.energy, hw.temperature and hw.temperature.limit also ` + "`hw.type`" + `=gpu.

Families that are not listed here leave as ` + "`habanalabs.<family>`" + ` (without habanalabs_) with the type of the page and without unit, or not at all (` + "`unmapped: drop`" + `).

`

func markdown() string {
	return gaudi.Table.Markdown(devicetable.Words{Intro: intro, System: "Exporter", Part: "device"})
}
