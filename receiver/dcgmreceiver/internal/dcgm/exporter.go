// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvidia"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

// Exporter has the names of dcgm-exporter, and what to do where it fails.
var Exporter = fetch.Exporter{
	Type: "dcgm", Program: "dcgm-exporter", Port: 9400,
	Remedies: map[fetch.Outcome]string{
		fetch.Parse:    "the answer is no page in the Prometheus text format (HTML is a login page or another server): use the exporter's /metrics; if it is that page, a field in its counters file prints a text as its value: type it label (STRING) or take it out (BINARY)",
		fetch.Empty:    "the exporter prints nothing: look at its log; it has just started, sees no GPU, or its counters file names no field that the GPU has",
		fetch.NoValue:  "the host engine behind the exporter gives no values: look at dmesg for XIDs (79, 119), then restart nv-hostengine or dcgm-exporter",
		fetch.NoDevice: "no row names a GPU: check the exporter's counters file and its options for devices, and scrape::metric_relabel_configs",
	},
	TextLine: "a field prints a text as its value: in the exporter's counters file take the field of that line out (BINARY) or type it label (STRING)",
	Line:     "look at that line, and at the exporter's counters file and its pods' labels",
	Repeated: "look for a field that the exporter's counters file has twice, under one name or two",
	Long:     "take the label off in the exporter or by scrape::metric_relabel_configs (labeldrop), or raise the limit that the cause names",
	Doubt:    "take the field out of the exporter's counters file and have it print DCGM_FI_DEV_GPU_UTIL, which every version knows and prints in one unit; if a program between changes the page, scrape the exporter itself",
	OverLimits: map[devicemap.Over]string{
		devicemap.OverUnmapped: "take families out by scrape::metric_relabel_configs or in the exporter's counters file, or set unmapped: drop",
		devicemap.OverOwners:   impossible,
		nvidia.OverXIDCodes:    impossible,
	},
	Over: "scrape the exporter of each node by itself, not one page of many nodes (a federated one), or take families out in the exporter's counters file",
}

const impossible = "no GPU has so many: look at what prints the page, and at the labels that a proxy or relabelling puts on it"
