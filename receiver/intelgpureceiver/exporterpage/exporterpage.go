// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package exporterpage is XPU Manager for programs that look at one of its pages without
// a receiver.
package exporterpage

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/vendorpage"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/intelgpureceiver/internal/intel"
)

// Vendor is what the mapping must know of the exporter, and Exporter what fetching a page
// and remedies must know of it.
var (
	Vendor   = Kind.Vendor
	Exporter = Kind.Exporter
)

// Kind is XPU Manager, 1.x and 2.x.
var Kind = vendorpage.Kind{
	Exporter: &intel.Exporter, Vendor: intel.NewVendor("", "host"), Pods: intel.Pods, OtherPorts: []int{intel.Port1},
	Version: version,
	Cards: []vendorpage.Card{
		{Name: "utilization", Metric: names.GPUUtilization.Name, Attribute: "general", Remedy: "1.x needs the capability SYS_ADMIN and, in XPUM_METRICS, metric 0; 2.x needs the engine groups all or compute-all of the driver"},
		{Name: "memory used", Metric: names.GPUMemoryUsage.Name, Remedy: "look at XPU Manager's log: it reads no memory"},
		{Name: "memory total", Metric: names.GPUMemoryLimit.Name, Remedy: "1.x prints no size: it is computed while at least 2 % of the memory is used"},
		{Name: "power", Metric: names.HwPower.Name, Remedy: "look at XPU Manager's log: it reads no power, and needs root for it"},
	},
	Never:    "tensor, DRAM, FP16 and FP32 activity",
	Settings: settings,
}

func version(p *vendorpage.Page) string {
	switch one, two := p.Has("xpum_"), p.Has("hw_"); {
	case one && two:
		return "1.x and 2.x"
	case one:
		return "1.x"
	default:
		return "2.x"
	}
}

func settings(p *vendorpage.Page) (all []vendorpage.Finding) {
	fault := func(seen, remedy string) {
		all = append(all, vendorpage.Finding{Fault: true, Seen: seen, Remedy: remedy})
	}
	if p.Has("xpum_") && p.Has("hw_") {
		fault("families of 1.x and of 2.x on one page", "two exporters are behind one address: scrape each by itself, and keep one of them")
	}
	if p.Has("xpum_") && !p.Has("xpum_eu_active_ratio") {
		all = append(all, vendorpage.Finding{Seen: "EU metrics are off: the card SM stays empty", Remedy: "only if it is wanted, since it costs the GPU time: add the EU metrics to XPUM_METRICS of xpumd"})
	}
	if p.Has("hw_") {
		all = append(all, vendorpage.Finding{Seen: "2.x names no owners: gpu_allocation reports who holds a device"})
	}
	return all
}
