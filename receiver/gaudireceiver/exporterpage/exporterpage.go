// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package exporterpage is the Gaudi metric exporter for programs that look at one of its
// pages without a receiver.
package exporterpage

import (
	"fmt"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/vendorpage"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gaudireceiver/internal/gaudi"
)

const reading = "the exporter could not read it: look at its log and at hl-smi on the host"

// Vendor is what the mapping must know of the exporter, and Exporter what fetching a page
// and remedies must know of it.
var (
	Vendor   = Kind.Vendor
	Exporter = Kind.Exporter
)

// Kind is the Gaudi metric exporter.
var Kind = vendorpage.Kind{
	Exporter: &gaudi.Exporter, Vendor: &gaudi.Vendor, Pods: gaudi.Pods,
	Version: func(*vendorpage.Page) string { return "" }, // its families are the same in all of them
	Cards: []vendorpage.Card{
		{Name: "utilization", Metric: names.GPUUtilization.Name, Attribute: "general", Remedy: reading},
		{Name: "memory used", Metric: names.GPUMemoryUsage.Name, Remedy: reading},
		{Name: "memory total", Metric: names.GPUMemoryLimit.Name, Remedy: reading},
		{Name: "power", Metric: names.HwPower.Name, Remedy: reading},
	},
	Never: "tensor, SM, DRAM, FP16 and FP32 activity, ECC error counts and throttle reasons",
	Settings: func(p *vendorpage.Page) (all []vendorpage.Finding) {
		if p.NotRead > 0 {
			all = append(all, vendorpage.Finding{
				Fault: true, Seen: fmt.Sprintf("readings of a device failed, and the exporter prints 0 for them: %d", p.NotRead),
				Remedy: "look at dmesg for habanalabs and at hl-smi on the host",
			})
		}
		return append(all, vendorpage.Finding{Seen: "it answers at most one request in 5 s, of all scrapers together: a second one, this program included, gets 429"})
	},
}
