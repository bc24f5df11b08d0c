// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gaudi

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

// Labels of the exporter's pods, see scrape.Exporter.
const (
	Pods       = ".*(metric-exporter-ds|habana-ai).*"
	SharedPods = ".*habana-ai.*" // the operator's driver and plugin have it, too
)

// Exporter has the names of the Gaudi metric exporter, and what to do where it fails.
var Exporter = fetch.Exporter{
	Type: "gaudi", Program: "the Gaudi metric exporter", Port: 41611,
	Remedies: map[fetch.Outcome]string{
		fetch.Parse:       "the answer is no page in the Prometheus text format (HTML is a login page or another server): use the exporter's /metrics",
		fetch.Empty:       "the exporter answers without devices when its helper program or its request to the kubelet fails: look at its log, then at dmesg for habanalabs; hl-smi on the host shows whether the driver answers",
		fetch.NoValue:     "the driver gives no values: look at dmesg for habanalabs and at hl-smi on the host, then restart the exporter",
		fetch.NoDevice:    noSerial,
		fetch.RateLimited: "another scraper uses up the exporter's limit of one request in 5 s: let one program scrape it (remove its ServiceMonitor, or take the metrics from this collector), or raise collection_interval",
	},
	TextLine:   "look at that line of the exporter's page: its value is a text",
	Line:       "look at that line of the exporter's page, and at what stands between it and this collector",
	Repeated:   "look for two exporters behind one address",
	Long:       "take the label off by scrape::metric_relabel_configs (labeldrop), or raise the limit that the cause names",
	NoIdentity: noSerial,
	OverLimits: map[devicemap.Over]string{
		devicemap.OverUnmapped: "take families out by scrape::metric_relabel_configs, or set unmapped: drop",
		devicemap.OverOwners:   "no device has so many: look at what prints the page, and at the labels that a proxy or relabelling puts on it",
	},
	Over: "scrape the exporter of each node by itself, not one page of many nodes (a federated one)",
}

const noSerial = "a device without serial number cannot be identified: its readings fail; look at dmesg for habanalabs and at hl-smi on the host, and keep the label Serial in scrape::metric_relabel_configs"
