// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

const noIdentity = "add GPU_UUID to GPUConfig.Labels in the exporter's config; a guest without uuid and serial number cannot be identified"

// Pods matches the labels of the exporter's pods, see scrape.Exporter.
const Pods = ".*;metrics-exporter;.*"

// Exporter has the names of AMD's exporter, and what to do where it fails.
var Exporter = fetch.Exporter{
	Type: "amd_gpu", Program: "Device Metrics Exporter", Port: 5000,
	Remedies: map[fetch.Outcome]string{
		fetch.Parse:    "the answer is no page in the Prometheus text format (HTML is a login page or another server): use the exporter's /metrics",
		fetch.Empty:    "the exporter has no device: its agent has just started, sees no GPU, or needs more than 15 s for all of them, as on nodes with many partitions (look at the exporter's log; collect less often, and leave profiler metrics and PCIE_BANDWIDTH out of GPUConfig.Fields)",
		fetch.NoValue:  "the exporter names boards and has no value of any: look at its log, and at dmesg for amdgpu",
		fetch.NoDevice: "no row names a board, and no metric is emitted: " + noIdentity,
	},
	TextLine:   "a family prints a text as its value: look at that line, and at the exporter's version",
	Line:       "look at that line, and at what stands between the exporter and this receiver",
	Repeated:   "look for two exporters behind one address, one of them with MetricsFieldPrefix",
	Long:       "take the label out of ExtraPodLabels or CustomLabels in the exporter's config, or off by scrape::metric_relabel_configs (labeldrop), or raise the limit that the cause names",
	NoIdentity: noIdentity,
	Missing:    "the exporter's agent cannot read them, or GPUConfig.Selector leaves them out: look at the exporter's log; of boards with missing partitions there is no memory usage and no utilization",
	OverLimits: map[devicemap.Over]string{
		devicemap.OverUnmapped: "take families out by scrape::metric_relabel_configs or by GPUConfig.Fields in the exporter's config, or set unmapped: drop",
		devicemap.OverOwners:   "no board has so many: look at what prints the page, and at the labels that a proxy or relabelling puts on it",
	},
	Over: "scrape the exporter of each node by itself, not one page of many nodes (a federated one), or take families out by GPUConfig.Fields in the exporter's config",
}
