// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command fieldsdoc writes fields.md, the documentation of the field table, into
// the folder that it is called from.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/nvml"
)

func main() {
	if err := os.WriteFile("fields.md", []byte(markdown()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const intro = `<!-- Written by "go generate" from internal/nvml and internal/nvmlproto. DO NOT EDIT. -->

# Metrics of the nvml receiver

What each reading of the driver's library becomes. The names of readings are ours; [which call gives them](#calls) is below. The value of a metric is in its own unit. Each point has ` + "`hw.id`" + `; those of hw.power, hw.energy, hw.temperature, hw.temperature.limit, hw.fan.speed_ratio and hw.errors also ` + "`hw.type`" + `=gpu.

Scope: a **board** reading exists once a board, and never of a MIG instance. What a board does not have is absent. So is what the library cannot know; nothing is estimated.

Thresholds of temperature are read of boards before Ada alone: later ones have the margin.

`

const calls = `
## Calls

A reading is read with its group; ` + "`memory.total`" + ` with inventory as well, and ` + "`gpm.graphics`" + ` with utilization as well: a MIG instance has no other utilization. Numbers are field ids, ids of GPM metrics and kinds as in the library's header.

| Reading | Group | Call | Of MIG instances | Notes |
| --- | --- | --- | --- | --- |
`

func markdown() string {
	var b strings.Builder
	b.WriteString(nvml.Table.Markdown(devicetable.Words{
		Intro: intro, System: "NVML", Part: "instance",
		Source: "`server.address`=" + nvml.Address + " and `k8s.node.name`. During a release of the driver there is only `gpu.driver.released`=1 of the node, and once 0 afterwards",
	}))
	b.WriteString(calls)
	for i := range nvmlproto.Readings {
		r := &nvmlproto.Readings[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.Name, r.Group, call(r), yes(r.Instances), notes(r))
	}
	return b.String()
}

func call(r *nvmlproto.Reading) string {
	switch r.Method {
	case nvmlproto.MethodField, nvmlproto.MethodGPM, nvmlproto.MethodThreshold, nvmlproto.MethodClock, nvmlproto.MethodPCIe:
		return fmt.Sprintf("`%s`(%d)", r.Method, r.Argument)
	}
	return fmt.Sprintf("`%s`", r.Method)
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

func notes(r *nvmlproto.Reading) string {
	switch {
	case r.Hourly:
		return "once an hour"
	case r.Links:
		return "sum over the links"
	case r.Scope != 0:
		return "all links"
	case r.Method == nvmlproto.MethodPCIe:
		return "with `pcie_throughput`, of a board without GPM"
	case r.Method == nvmlproto.MethodLicence:
		return "of a vGPU"
	}
	return ""
}
