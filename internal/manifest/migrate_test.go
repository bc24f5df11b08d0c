// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the table of docs/migrate.md anew")

const (
	tableBegin = "<!-- table: dcgm -->\n"
	tableEnd   = "<!-- end of table -->"
)

var cell = regexp.MustCompile("`([^`]+)`")

// rows are the cells of a table's lines that begin with begin, "| `" for those
// with code in the first cell.
func rows(text, begin string) [][]string {
	var found [][]string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, begin) {
			continue
		}
		var cells []string
		for _, c := range strings.Split(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(c))
		}
		found = append(found, cells)
	}
	return found
}

// section is the part of a Markdown text below a heading.
func section(t *testing.T, text, title string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, "\n## "+title+"\n")
	require.True(t, found, title)
	rest, _, _ = strings.Cut(rest, "\n## ")
	return rest
}

// prometheus is a metric of fields.md as Prometheus has it: its name, and its
// attributes as a selector.
func prometheus(t *testing.T, metric, kindAndUnit, attributes string) string {
	t.Helper()
	kind, unit, _ := strings.Cut(kindAndUnit, " ")
	kinds := map[string]otlptranslator.MetricType{
		"gauge": otlptranslator.MetricTypeGauge, "counter": otlptranslator.MetricTypeMonotonicCounter,
		"updowncounter": otlptranslator.MetricTypeNonMonotonicCounter,
	}
	require.Contains(t, kinds, kind)
	namer := otlptranslator.MetricNamer{WithMetricSuffixes: true}
	name, err := namer.Build(otlptranslator.Metric{Name: metric, Unit: unit, Type: kinds[kind]})
	require.NoError(t, err)
	var labels []string
	for _, a := range regexp.MustCompile("`([^`]+)`=([a-z0-9_]+)").FindAllStringSubmatch(attributes, -1) {
		labels = append(labels, fmt.Sprintf("%s=%q", strings.ReplaceAll(a[1], ".", "_"), a[2]))
	}
	if len(labels) == 0 {
		return name
	}
	return name + "{" + strings.Join(labels, ",") + "}"
}

// conversions are what becomes of a value of the old series, by the page's unit
// and the metric's.
var conversions = map[string]string{
	"% to 1": "divide by 100", "MiB to By": "multiply by 1048576", "mJ to J": "divide by 1000", "MHz to Hz": "multiply by 1000000",
	"ns to s": "divide by 1000000000", "1000 KiBy/s to By/s": "multiply by 1024000", "MBy/s to By/s": "multiply by 1000000",
}

// migration is the table of old and new series, from the receiver's field table.
func migration(t *testing.T) string {
	t.Helper()
	fields := string(read(t, "receiver", "dcgmreceiver", "fields.md"))
	units := map[string]string{}
	for _, row := range rows(section(t, fields, "Fields"), "| `") {
		units[cell.FindStringSubmatch(row[0])[1]] = row[3]
	}
	// instead is the field that is read where the page has it.
	type pair struct{ old, series, unit, instead string }
	var pairs []pair
	seen := map[string]bool{}
	for _, row := range rows(section(t, fields, "One field, one series"), "| `") {
		sources := cell.FindAllStringSubmatch(strings.Split(row[3], ";")[0], -1)
		for i, field := range sources {
			series := prometheus(t, strings.Trim(row[0], "`"), row[1], row[2])
			// The second place where a field is read is that of its own metric.
			if key := field[1] + series; !seen[key] {
				seen[key] = true
				_, unit, _ := strings.Cut(row[1], " ")
				one := pair{field[1], series, unit, ""}
				if i > 0 {
					one.instead = sources[0][1]
				}
				pairs = append(pairs, one)
			}
		}
	}
	pairs = append(pairs,
		pair{"DCGM_FI_DEV_FB_USED_BYTES", prometheus(t, "hw.gpu.memory.usage", "updowncounter By", ""), "By", ""},
		pair{"DCGM_FI_DEV_FB_CAPACITY_BYTES", prometheus(t, "hw.gpu.memory.limit", "updowncounter By", ""), "By", ""},
		pair{"DCGM_FI_DEV_FB_USED", prometheus(t, "hw.gpu.memory.usage", "updowncounter By", ""), "By", ""},
		pair{"DCGM_FI_DEV_FB_TOTAL", prometheus(t, "hw.gpu.memory.limit", "updowncounter By", ""), "By", ""})
	var out strings.Builder
	out.WriteString("| old | new | then |\n|---|---|---|\n")
	for _, p := range pairs {
		then := ""
		if from := units[p.old]; from != p.unit {
			then = conversions[from+" to "+p.unit]
			require.True(t, then != "" || from == "bit mask" || p.unit == "{code}" || p.unit == "1" || strings.HasPrefix(from, "{"), "%s is in %s and %s in %s", p.old, from, p.series, p.unit)
		}
		if p.instead != "" {
			then = strings.TrimPrefix(then+"; where the page has no `"+p.instead+"`", "; ")
		}
		fmt.Fprintf(&out, "| `%s` | `%s` | %s |\n", p.old, p.series, then)
	}
	return out.String()
}

// The guide's table of series is what the receiver does. `go test -update` here
// writes it.
func TestMigrationTable(t *testing.T) {
	guide := string(read(t, "docs", "migrate.md"))
	before, rest, found := strings.Cut(guide, tableBegin)
	require.True(t, found)
	table, after, found := strings.Cut(rest, tableEnd)
	require.True(t, found)
	want := migration(t)
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join(root, "docs", "migrate.md"), []byte(before+tableBegin+want+tableEnd+after), 0o644))
		return
	}
	assert.Equal(t, want, table, "run go test ./internal/manifest -run TestMigrationTable -update")
}

// ours are the metric, attribute and event names that the sources know.
func ours(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	files, err := filepath.Glob(filepath.Join(root, "internal", "names", "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range append(files, filepath.Join(root, "receiver", "dcgmreceiver", "fields.md"), filepath.Join(root, "docs", "reference", "telemetry.md"), filepath.Join(root, "internal", "queries", "names.go"), filepath.Join(root, "internal", "queries", "mixin_names.go")) {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}

var (
	ownName    = regexp.MustCompile(`^(?:gpu|hw|gen_ai|inference|nccl|slurm|training)\.`)
	recorded   = regexp.MustCompile(`^[a-z_]+:[a-z_]+:[0-9a-z]+$`)
	alertNames = regexp.MustCompile(`\[([A-Z]\w+)\]\(runbooks/`)
)

// What the second column of the guide's tables calls ours is ours: names, series,
// recorded series, alerts, and keys of configurations.
func TestNamesInTheMigrationGuide(t *testing.T) {
	guide := string(read(t, "docs", "migrate.md"))
	vocabulary := ours(t)
	readmes := map[string]string{
		"dcgm": "receiver/dcgmreceiver", "gpu_summary": "processor/gpusummaryprocessor", "gpu_store": "extension/gpustoreextension",
		"gpu_console": "extension/gpuconsoleextension", "webhook": "exporter/webhookexporter",
	}
	rules := ""
	files, err := filepath.Glob(filepath.Join(root, "mixin", "rules", "*.yaml"))
	require.NoError(t, err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		rules += string(text)
	}
	// Components are no series.
	vocabulary += string(read(t, "docs", "custom-distribution.md"))
	checked := 0
	for _, row := range rows(guide, "|") {
		if len(row) < 2 {
			continue
		}
		for _, alert := range alertNames.FindAllStringSubmatch(row[1], -1) {
			checked++
			assert.Contains(t, rules, "alert: "+alert[1]+"\n", "there is no such alert")
		}
		for _, found := range cell.FindAllStringSubmatch(row[1], -1) {
			word := strings.TrimSpace(found[1])
			if recorded.MatchString(word) {
				checked++
				assert.Contains(t, rules, "record: "+word+"\n", "there is no such recorded series")
				continue
			}
			name := regexp.MustCompile(`^[a-z0-9_.]+`).FindString(word)
			component, key, isKey := strings.Cut(word, "::")
			switch {
			case isKey:
				checked++
				require.Contains(t, readmes, component)
				assert.Contains(t, string(read(t, readmes[component], "README.md")), "`"+key+"`", "%s has no such key", component)
			case ownName.MatchString(name):
				checked++
				assert.True(t, strings.Contains(vocabulary, `"`+name+`"`) || strings.Contains(vocabulary, "`"+name+"`"), "%s is no name of ours", name)
			}
		}
		for _, series := range regexp.MustCompile(`\b(?:gpu|hw)_[a-z0-9_]+`).FindAllString(strings.Join(row[1:], " "), -1) {
			if strings.Contains(row[1], series+"::") || strings.Contains(row[1], ":"+series+":") {
				continue
			}
			checked++
			assert.True(t, strings.Contains(vocabulary, `"`+series+`"`) || strings.Contains(vocabulary, "`"+series+"`") || strings.Contains(migration(t), series), "%s is no series or label of ours", series)
		}
	}
	assert.Greater(t, checked, 120)
}

// Guides speak of metrics, attributes, events and series that there are. That of
// migration is checked above: it also has the names of others.
func TestNamesInGuides(t *testing.T) {
	vocabulary := ours(t)
	for _, component := range []string{"connector/gpueventsconnector", "processor/gpusummaryprocessor", "receiver/gpuallocationreceiver"} {
		vocabulary += string(read(t, component, "README.md"))
	}
	vocabulary += string(read(t, "exporter", "webhookexporter", "replay.go")) // the event of a test
	known := func(name string) bool {
		return strings.Contains(vocabulary, `"`+name+`"`) || strings.Contains(vocabulary, "`"+name+"`") || strings.Contains(vocabulary, "`"+name+":")
	}
	checked := 0
	guides, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	for _, guide := range guides {
		if filepath.Base(guide) == "migrate.md" {
			continue
		}
		text, err := os.ReadFile(guide)
		require.NoError(t, err)
		for _, found := range cell.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1) {
			name := regexp.MustCompile(`^(?:gpu|hw)\.[a-z0-9_.]*[a-z0-9]$`).FindString(found[1])
			if name == "" {
				continue
			}
			checked++
			assert.True(t, known(name), "%s: %s is no name of ours", filepath.Base(guide), name)
		}
	}
	assert.Greater(t, checked, 15)
}
