// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

// Exporter has the names of AMD's exporter, and what to do where it fails.
var Exporter = fetch.Exporter{
	Type: "amd_gpu", Program: "Device Metrics Exporter", Port: 5000,
	Remedies: map[fetch.Outcome]string{
		fetch.Parse:    "the answer is no page in the Prometheus text format (HTML is a login page or another server): use the exporter's /metrics",
		fetch.Empty:    "the exporter prints nothing: look at its log",
		fetch.NoValue:  "the exporter names devices without a value: look at its log and at dmesg for amdgpu",
		fetch.NoDevice: "no row names a board: add GPU_UUID to GPUConfig.Labels in the exporter's config. If the page has no row of a device, its agent did not answer in time: look at its log, and collect less often",
	},
	TextLine: "a field prints a text as its value: look at that line and at the exporter's version",
	Line:     "look at that line, and at what stands between the exporter and this receiver",
	Repeated: "look for two exporters behind one address, with and without MetricsFieldPrefix",
	Long:     "take the label out of ExtraPodLabels or CustomLabels in the exporter's config, or off by scrape::metric_relabel_configs (labeldrop), or raise the limit that the cause names",
	OverLimits: map[devicemap.Over]string{
		devicemap.OverUnmapped: "take families out by scrape::metric_relabel_configs or by GPUConfig.Fields in the exporter's config, or set unmapped: drop",
	},
	Over: "scrape the exporter of each node by itself, not one page of many nodes (a federated one), or take families out by GPUConfig.Fields in the exporter's config",
}
