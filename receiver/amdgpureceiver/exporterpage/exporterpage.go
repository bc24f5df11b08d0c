// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package exporterpage is AMD's Device Metrics Exporter for programs that look at one of
// its pages without a receiver.
package exporterpage

import (
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/vendorpage"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/amdgpureceiver/internal/amd"
)

const field = "add it to GPUConfig.Fields in the exporter's config, or leave Fields out"

// Vendor is what the mapping must know of the exporter, and Exporter what fetching a page
// and remedies must know of it.
var (
	Vendor   = Kind.Vendor
	Exporter = Kind.Exporter
)

// Kind is AMD's Device Metrics Exporter.
var Kind = vendorpage.Kind{
	Exporter: &amd.Exporter, Vendor: amd.NewVendor(nil), Pods: amd.Pods,
	Version: version,
	Cards: []vendorpage.Card{
		{Name: "utilization", Metric: names.GPUUtilization.Name, Attribute: "general", Remedy: "GPU_GFX_ACTIVITY: " + field},
		{Name: "memory used", Metric: names.GPUMemoryUsage.Name, Remedy: "GPU_USED_VRAM: " + field + "; of a board with missing partitions it is absent"},
		{Name: "memory total", Metric: names.GPUMemoryLimit.Name, Remedy: "GPU_TOTAL_VRAM: " + field},
		{Name: "power", Metric: names.HwPower.Name, Remedy: "GPU_PACKAGE_POWER: " + field + "; where the first reading was 0, it is absent until the exporter restarts"},
	},
	Never:    "DRAM, FP16 and FP32 activity",
	Settings: settings,
}

// versions are the families and labels by which a version is known, the newest first.
var versions = []struct {
	version string
	has     []string
}{
	{"1.5.0 or newer", []string{"gpu_ecc_deferred_", "gpu_process_cu_occupancy"}},
	{"1.4.2 or newer", []string{"gpu_min_clock", "gpu_max_clock", "gpu_afid_errors", "gpu_violation_ppt_residency_percentage"}},
	{"1.4.0 or newer", []string{"pcie_nack_sent_count", "gpu_violation_processor_hot_residency_accumulated"}},
	{"1.3.1 or newer", []string{"gpu_gfx_busy_instantaneous"}},
	{"before 1.4.0", []string{"pcie_nac_sent_count", "xgmi_neighbor_", "gpu_violation_proc_hot_"}},
}

func version(p *vendorpage.Page) string {
	for _, v := range versions {
		if p.Has(v.has...) {
			return v.version
		}
	}
	if p.Has("GPU_", "PCIE_") {
		return "(an early version)"
	}
	return ""
}

func settings(p *vendorpage.Page) (all []vendorpage.Finding) {
	fault := func(seen, remedy string) {
		all = append(all, vendorpage.Finding{Fault: true, Seen: seen, Remedy: remedy})
	}
	if !p.HasLabel("gpu_uuid") {
		fault("no label gpu_uuid: boards are identified by serial_number, and not at all where partitions or guests share one or have none",
			"add GPU_UUID to GPUConfig.Labels in the exporter's config; the ids change then")
	}
	if !p.HasLabel("card_series") || !p.HasLabel("driver_version") {
		fault("no label card_series or driver_version: hw.model is a part number, or the driver is unknown", "add CARD_SERIES and DRIVER_VERSION to GPUConfig.Labels in the exporter's config")
	}
	if p.Has("pcie_bandwidth") && slices.ContainsFunc(p.Models, func(model string) bool { return strings.Contains(model, "MI250") }) {
		fault("pcie_bandwidth on an MI250 or MI250X: reading it takes 1 s a board and scrape", "leave PCIE_BANDWIDTH out of GPUConfig.Fields in the exporter's config")
	}
	if !p.Has("gpu_prof_") {
		all = append(all, vendorpage.Finding{
			Seen:   "the profiler is off: the cards tensor and SM stay empty",
			Remedy: "only if they are wanted: ProfilerMetrics in the exporter's config; a job's own profiler cannot run beside it",
		})
	}
	return all
}
