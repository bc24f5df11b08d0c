// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// left is what the counters file does without, and why.
var left = map[string]string{
	"`gpu.pipe`=tensor_imma":              "GPUs before Hopper measure few profiling fields at once, and take turns for more",
	"`gpu.pipe`=tensor_hmma":              "as tensor_imma",
	"`gpu.pipe`=tensor_dfma":              "as tensor_imma",
	"`gpu.pipe`=int":                      "as tensor_imma",
	"`gpu.clock.domain`=video":            "no alert, page or summary needs it",
	"DCGM_FI_DEV_FAN_SPEED":               "no alert, page or summary needs it",
	"gpu.clock.frequency.application":     "no alert, page or summary needs it",
	"gpu.clock.frequency.max":             "no alert, page or summary needs it",
	"gpu.bar1.limit":                      "no alert, page or summary needs it",
	"gpu.bar1.usage":                      "no alert, page or summary needs it",
	"gpu.bar1.free":                       "no alert, page or summary needs it",
	"`gpu.throttle.reason`=app_clocks":    "a clock that was set is no fault",
	"`gpu.throttle.reason`=base_clocks":   "as app_clocks",
	"gpu.nvlink.lane.throughput":          "18 fields for what one has as a sum",
	"gpu.c2c.bandwidth.max":               "it never changes",
	"gpu.vgpu.memory.usage":               "of vGPUs, of which the exporter prints no rows",
	"DCGM_FI_PROF_PCIE_TX_BYTES_TOTAL":    "from DCGM 4.6 on",
	"DCGM_FI_PROF_PCIE_RX_BYTES_TOTAL":    "from DCGM 4.6 on",
	"DCGM_FI_DEV_NVLINK_COUNT_TX_BYTES":   "NVLink 5 alone",
	"DCGM_FI_DEV_NVLINK_COUNT_RX_BYTES":   "NVLink 5 alone",
	"DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY":   "not known to every version: one that does not know it does not start",
	"DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION": "likewise",
	"DCGM_EXP_P2P_STATUS":                 "where some GPUs are divided by MIG, its rows have the labels of other GPUs",
}

// countersFiles are for exporters up to 4.8, and from 4.9 on.
var countersFiles = []string{"counters.csv", "counters-4.9.csv"}

var (
	metricRow = regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| (gauge|counter|updowncounter) [^|]*\\| ([^|]*) \\| ([^|]*DCGM_[^|]*) \\|")
	fieldName = regexp.MustCompile("`(DCGM_[A-Z0-9_]+)`")
	// Name, other names and notes.
	fieldNotes = regexp.MustCompile("(?m)^\\| `(DCGM_[A-Z0-9_]+)` \\| (?:[0-9]+|exporter) \\| ([^|]*) \\| [^|]* \\| [^|]* \\| ([^|]*) \\|$")
	variantOf  = regexp.MustCompile("^as `(DCGM_[A-Z0-9_]+)`")
	fieldRow   = regexp.MustCompile("(?m)^\\| `(DCGM_[A-Z0-9_]+)` \\| (?:[0-9]+|exporter) \\| ([^|]*) \\|")
)

// Cards, events and dashboards are made of the receiver's metrics: the exporter
// that the chart installs prints a field for every one of them. A name that the
// receiver does not know would be a misspelt one, and stop the exporter.
func TestCountersHaveEveryFieldThatIsShown(t *testing.T) {
	for _, file := range countersFiles {
		t.Run(file, func(t *testing.T) { everyFieldThatIsShown(t, file) })
	}
}

func everyFieldThatIsShown(t *testing.T, file string) {
	table := read(t, root, "receiver", "dcgmreceiver", "fields.md")
	types := map[string]string{}
	for _, line := range strings.Split(read(t, chart, "charts", "dcgm-exporter", "files", file), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.SplitN(line, ",", 3)
		require.Len(t, parts, 3, line)
		name := strings.TrimSpace(parts[0])
		assert.NotContains(t, types, name, "twice")
		types[name] = strings.TrimSpace(parts[1])
		assert.Contains(t, []string{"gauge", "counter", "label"}, types[name], name)
	}

	known := map[string]bool{
		"DCGM_FI_DRIVER_VERSION": true, "DCGM_FI_DEV_SERIAL": true, "DCGM_FI_SYSTEM_DRIVER_VERSION": true, "DCGM_FI_DEV_BOARD_SERIAL": true,
	}
	fields := fieldRow.FindAllStringSubmatch(table, -1)
	require.Greater(t, len(fields), 50)
	for _, row := range fields {
		known[row[1]] = true
		for _, alias := range fieldName.FindAllStringSubmatch(row[2], -1) {
			known[alias[1]] = true
		}
	}
	for name := range types {
		assert.True(t, known[name], "%s is no field of receiver/dcgmreceiver/fields.md", name)
	}

	// The aliases of a field are the field.
	names := map[string][]string{}
	for _, row := range fields {
		names[row[1]] = []string{row[1]}
		for _, alias := range fieldName.FindAllStringSubmatch(row[2], -1) {
			names[row[1]] = append(names[row[1]], alias[1])
		}
	}
	metrics := metricRow.FindAllStringSubmatch(table, -1)
	require.Greater(t, len(metrics), 50)
	for _, row := range metrics {
		metric, kind, attributes, from := row[1], row[2], strings.TrimSpace(row[3]), fieldName.FindAllStringSubmatch(row[4], -1)
		printed := ""
		for _, field := range from {
			for _, name := range names[field[1]] {
				if types[name] != "" && printed == "" {
					printed = name
				}
			}
		}
		reason := left[attributes]
		if reason == "" {
			reason = left[metric]
		}
		if reason == "" {
			reason = left[from[0][1]]
		}
		if reason != "" {
			assert.Empty(t, printed, "%s %s is said to be left out: %s", metric, attributes, reason)
			continue
		}
		if assert.NotEmpty(t, printed, "%s %s: %s has no field for it", metric, attributes, file) && kind != "updowncounter" && metric != "gpu.xid.errors" {
			assert.Equal(t, kind, types[printed], "%s, which becomes %s", printed, metric)
		}
	}
}

// The files for both kinds of exporters have the same quantities, line by line. What an
// exporter of 4.8 does not know is in that for 4.9 alone.
func TestCountersOfBothVersions(t *testing.T) {
	fields := fieldNotes.FindAllStringSubmatch(read(t, root, "receiver", "dcgmreceiver", "fields.md"), -1)
	require.Greater(t, len(fields), 100)
	canonical := map[string]string{"DCGM_FI_SYSTEM_DRIVER_VERSION": "DCGM_FI_DRIVER_VERSION", "DCGM_FI_DEV_BOARD_SERIAL": "DCGM_FI_DEV_SERIAL"}
	bases := map[string]bool{}
	for _, row := range fields {
		canonical[row[1]] = row[1]
		for _, alias := range fieldName.FindAllStringSubmatch(row[2], -1) {
			canonical[alias[1]] = row[1]
		}
		if of := variantOf.FindStringSubmatch(row[3]); of != nil {
			canonical[row[1]], bases[row[1]] = of[1], true
		}
	}
	var quantities [2][]string
	for i, file := range countersFiles {
		for line := range strings.Lines(read(t, chart, "charts", "dcgm-exporter", "files", file)) {
			parts := strings.SplitN(strings.TrimSpace(line), ",", 3)
			if len(parts) < 3 || strings.HasPrefix(line, "#") {
				continue
			}
			name := canonical[parts[0]]
			if name == "" {
				name = parts[0]
			}
			quantities[i] = append(quantities[i], name+","+parts[1])
			assert.False(t, i == 0 && bases[parts[0]], "%s: an exporter of 4.8 ends over %s", file, parts[0])
		}
		assert.Equal(t, read(t, chart, "charts", "dcgm-exporter", "files", file), read(t, root, "docs", "examples", "compose", file), "copy the chart's")
	}
	assert.Equal(t, quantities[0], quantities[1])
}

// Every reason against a board is judged with the fields of the counters files, or
// docs/health.md has the field that it needs, and why it is left out.
func TestCountersHaveWhatHealthIsJudgedBy(t *testing.T) {
	table, page := read(t, root, "receiver", "dcgmreceiver", "fields.md"), read(t, root, "docs", "health.md")
	aliases := map[string][]string{}
	for _, row := range fieldRow.FindAllStringSubmatch(table, -1) {
		aliases[row[1]] = []string{row[1]}
		for _, alias := range fieldName.FindAllStringSubmatch(row[2], -1) {
			aliases[row[1]] = append(aliases[row[1]], alias[1])
		}
	}
	for _, file := range countersFiles { // TestCountersOfBothVersions: everywhere the same
		path := []string{chart, "charts", "dcgm-exporter", "files", file}
		printed := map[string]bool{}
		for _, line := range strings.Split(read(t, path...), "\n") {
			name, _, _ := strings.Cut(line, ",")
			printed[strings.TrimSpace(name)] = true
		}
		there, fields := map[string]bool{}, map[string][]string{}
		for _, row := range metricRow.FindAllStringSubmatch(table, -1) {
			for _, field := range fieldName.FindAllStringSubmatch(row[4], -1) {
				fields[row[1]] = append(fields[row[1]], field[1])
				for _, name := range aliases[field[1]] {
					there[row[1]] = there[row[1]] || printed[name]
				}
			}
		}
		for _, r := range names.HealthReasons() {
			if !r.Check() || r.Judged(func(metric string) bool { return there[metric] }) {
				continue
			}
			for _, metric := range r.Metrics {
				for _, field := range fields[metric] {
					assert.NotEmpty(t, left[field], "%s cannot be judged: %v lacks %s", r.Name, path, field)
					assert.Contains(t, page, "| `"+field+"` | `"+r.Name+"` |", "docs/health.md does not name it as left out")
				}
				assert.NotEmpty(t, fields[metric], "%s: no field becomes %s", r.Name, metric)
			}
		}
	}
}
