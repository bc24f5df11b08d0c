// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intel

import "github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"

// Pods matches the labels of the exporter's pods, see scrape.Exporter.
const Pods = ".*(intel-xpumanager|xpumd).*"

// Port1 is the port that 1.x listens on by default.
const Port1 = 29999

// Exporter has the names of XPU Manager, and what to do where it fails.
var Exporter = fetch.Exporter{
	Type: "intel_gpu", Program: "XPU Manager", Port: 8080,
	Remedies: map[fetch.Outcome]string{
		fetch.Parse:    "the answer is no page in the Prometheus text format (HTML is a login page or another server): use XPU Manager's /metrics",
		fetch.Empty:    "XPU Manager prints nothing: look at its log; it has just started, or its container has no access to /dev/dri",
		fetch.NoValue:  "XPU Manager gives no values: look at its log and at dmesg, then restart it",
		fetch.Status:   "XPU Manager 1.x answers 500 with #nodata while it starts, and when its daemon xpumd fails: look at the logs of both containers; a proxy before it answers 502 to 504",
		fetch.NoDevice: "no row has the label pci_bdf, by which a GPU is identified: check the labels that XPU Manager prints, and scrape::metric_relabel_configs",
	},
	TextLine:   "look at that line of XPU Manager's page: its value is a text",
	Line:       "look at that line of XPU Manager's page, and at its pods' labels",
	Repeated:   "XPU Manager 1.x is known to print a series twice: update it; else look for two exporters behind one address",
	Long:       "take the label off by scrape::metric_relabel_configs (labeldrop), or raise the limit that the cause names",
	NoIdentity: "a GPU is identified by its node and PCI address: look for rows without the label pci_bdf, and set node_name to a name without blanks and slashes",
	Over:       "scrape the exporter of each node by itself, not one page of many nodes (a federated one)",
}
