// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/markdown"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

// short is what docs/performance.md has about an entry; the full report has its text.
var short = map[string]string{
	"agent-15s":       "One node of 8 GPUs with owners, every field on the page, on a real control plane. All contenders run at the same time. `agent.yaml` and `standalone.yaml` have `footprint`, and the agent `GOGC=50`; the stock Collector is the same binary with prometheusreceiver alone.",
	"agent-1s":        "The same, with a collection every second.",
	"scrape":          "Exporters of 8 GPUs with all fields, scraped every 15 s by one process that discards what it reads. Prometheus in agent mode writes it to a server that discards it.",
	"partitions":      "The page of AMD's exporter on a node of 8 MI300X in mode CPX, scraped every 15 s by a Collector with one receiver that discards what it reads.",
	"gateway":         "1,250 nodes send 60 points per GPU over OTLP every 10 s. A collector that only receives runs beside each row; the difference is the cost of the components. *receive* compares two of the same: its difference is noise.",
	"growth":          "`gateway.yaml` behind agents with `agent-raw.yaml`: 10 points per GPU every 15 s, 60 in the row with everything. Rows with `scale-out-gateway.yaml` write to a remote store, as is meant for large fleets. The generator runs on the same cores.",
	"correctness":     "Services with a known utilization, and faults at known moments, 15 times faster than the defaults. An answer is right within 0.5 points of the truth. *avg with care* is PromQL that was written with these faults in mind.",
	"webhooks":        "2,000 events, 100 per second, each to five endpoints that respond at once. `standalone.yaml` stores deliveries with fsync, and an audit record of every attempt; Alertmanager stores neither.",
	"webhooks-faults": "500 events to five endpoints: two work, one responds 503 for 30 s, one not at all for 30 s, one drops every third request. The sender is killed after 10 s and restarted. Lost is what was acknowledged and neither delivered nor given up on record.",
	"start":           "Until the health check responds, with a warm page cache.",
	"build":           "From source with an empty build cache and a full module cache.",
	"go-dcgm":         "The dcgm receiver beside prometheusreceiver, which maps nothing, on the same exporters.",
	"go-components":   "Benchmarks of the components on one core, without exporter and network.",
	"go-vendors":      "Reading and mapping a page of 64 partitions, and a collection of 8 boards from sysfs.",
	"go-cost":         "`gpu_cost` on one core: points, memory, a flush, and a report over a month.",
	"go-scheduling":   "`gpu_scheduling`: 50,000 pods on 5,000 nodes. `slurm_allocation`: 50,000 jobs an hour.",
	"go-attribution":  "`gpu_pod` beside `k8s_attributes`, on the same resources.",
	"go-inference":    "The `inference` processor beside transform, which only renames thirty families, and alone.",
	"go-summary":      "`gpu_summary` beside stock processors, which need a service in one batch.",
	"go-delivery":     "CPU time of a delivery, and the latency of other endpoints while one hangs.",
	"go-alarm":        "Seconds from an exporter's death or XID to the webhook, with the shipped configurations.",
	"go-console":      "The embedded store and a Prometheus server with the same day, queried by the same console.",
	"go-store":        "Appending scrapes and querying averages, in the store and over HTTP from Prometheus.",
}

// inPage reports whether docs/performance.md has a row of an entry; the full report has all.
func inPage(entry, row string) bool {
	switch entry {
	case "agent-1s":
		return row == "stock Collector" || row == "agent.yaml"
	case "scrape":
		return !strings.HasPrefix(row, "100 ")
	case "gateway":
		return row != "gpu_summary" && row != "stock: groupbyattrs by service"
	case "growth":
		return !strings.HasPrefix(row, "10 ") && !strings.HasPrefix(row, "100 ")
	case "correctness":
		return strings.HasPrefix(row, "**All faults")
	default:
		return true
	}
}

// wrapped breaks lines of text, which is a paragraph; a mark begins it.
func wrapped(mark, text string) string {
	var b strings.Builder
	markdown.Wrap(&b, mark, text)
	return b.String()
}

// page is docs/performance.md: goals, causes of those missed, the comparisons, and how to
// repeat them. entries that were never measured have a section too, so that links to it
// lead somewhere. Those with changes are marked.
func page(results map[string]frame.Result, changes map[string]string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("<!-- Written by testbed/kubernetes/bench: make bench. Do not edit. -->\n# Performance\n\n" +
		wrapped("", "Medians, measured by `make bench` ([how](../testbed/kubernetes/bench/README.md)). "+
			"Rows of one table ran in turns on one machine: compare rows, not tables. **×** is the ratio to the first row. "+
			"*Stale* figures are older than the code that they measure ([what changed](#repeat)).") + "\n")
	if err := renderGoals(&b, results, changes); err != nil {
		return nil, err
	}
	for _, e := range entries {
		text := short[e.Name]
		if changes[e.Name] != "" {
			text += " " + staleMark + "."
		}
		// A link's target is not part of a line's width.
		text = strings.Replace(wrapped("", text), staleMark, staleLink, 1)
		fmt.Fprintf(&b, "\n## %s\n\n%s", e.Title, text)
		r, ok := results[e.Name]
		switch {
		case !ok:
			fmt.Fprintf(&b, "\nNot measured yet.\n")
		case e.Columns != nil:
			renderTables(&b, e, &r, func(row string) bool { return inPage(e.Name, row) })
		}
		renderFailed(&b, &r)
	}
	b.WriteString("\n## Repeat\n\n" + wrapped("", "`make bench BENCH='-only NAME'` measures one entry, `make bench` all of them, which takes hours; leave the machine alone. "+
		"Both write this page, the figures in other guides, and a report with every row and turn to `bin/performance.md`. The medians of all rows are in [performance.json](performance.json). "+
		"`load` is that of the minute before: near the number of cores, ratios mean more than times.") + "\n")
	b.WriteString(wrapped("", versionsOf(results)) + "\n")
	renderRuns(&b, results, changes)
	return b.Bytes(), nil
}

// renderRuns lists the machines, each with the entries that were measured on it, and what
// changed since.
func renderRuns(b *bytes.Buffer, results map[string]frame.Result, changes map[string]string) {
	var machines []string
	runs := map[string][]string{}
	for _, e := range entries {
		if r, ok := results[e.Name]; ok {
			mc := r.Machine
			machine := fmt.Sprintf("%d cores, %s, %s", mc.Cores, mc.CPU, mc.System)
			if runs[machine] == nil {
				machines = append(machines, machine)
			}
			line := fmt.Sprintf("[%s](#%s): %s, commit %s, load %s", e.Name, slug(e.Title), mc.Time, mc.Commit, mc.Load)
			if change := changes[e.Name]; change != "" {
				line += "; stale: " + change
			}
			runs[machine] = append(runs[machine], line)
		}
	}
	b.WriteString("| machine | measured |\n|---|---|\n")
	for _, machine := range machines {
		fmt.Fprintf(b, "| %s | %s |\n", machine, strings.Join(runs[machine], "<br>"))
	}
}

// versionsOf names what was measured, with each version that there was.
func versionsOf(results map[string]frame.Result) string {
	seen := map[string]bool{}
	for _, r := range results {
		seen["Go "+strings.TrimPrefix(r.Machine.Go, "go")] = true
		for name, version := range r.Machine.Versions {
			seen[name+" "+version] = true
		}
	}
	return "Versions: " + strings.Join(slices.Sorted(maps.Keys(seen)), ", ") + "."
}

// renderGoals is the table of goals, and the causes of those that are missed.
func renderGoals(b *bytes.Buffer, results map[string]frame.Result, changes map[string]string) error {
	b.WriteString("## Goals\n\n| what | goal | measured | result |\n|---|---|---|---|\n")
	var causes []string
	missed := map[string][]string{} // by the cause
	for _, g := range goals {
		most := "at most"
		if g.least {
			most = "at least"
		}
		limit := strings.TrimSpace(fmt.Sprintf("%s %v %s", most, g.limit, g.unit))
		fmt.Fprintf(b, "| [%s](#%s) | %s |", g.what, slug(entryOf(g.entry).Title), limit)
		all, err := g.measured(results)
		switch {
		case errors.Is(err, errFailed):
			b.WriteString(" failed | **missed**: it could not be measured, as its section shows |\n")
		case errors.Is(err, errUnmeasured):
			b.WriteString(" not measured yet | |\n")
		case err != nil:
			return fmt.Errorf("goal %q: %w", g.what, err)
		default:
			verdict, cause := g.verdict(all, results)
			if g.stale(changes) {
				verdict += " (stale)"
			}
			fmt.Fprintf(b, " %s | %s |\n", number(frame.Median(all), -1), verdict)
			if cause != "" {
				if missed[cause] == nil {
					causes = append(causes, cause)
				}
				missed[cause] = append(missed[cause], "**"+g.what+"**")
			}
		}
	}
	if len(causes) > 0 {
		b.WriteString("\nWhy a goal is missed:\n\n")
		for _, cause := range causes {
			b.WriteString(wrapped("- ", strings.Join(missed[cause], ", ")+": "+cause))
		}
	}
	return nil
}
