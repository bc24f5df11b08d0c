// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command rulesdoc writes what lists the rules of gpu_events: the tables of the README and
// of docs/health.md, the runbooks of the reasons, the lists of events and of reasons in
// internal/names, and the values of the chart with their schema.
// It is called from the connector's folder.
package main

import (
	"fmt"
	"go/format"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/board"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules"
)

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write updates the files of the repository in which the connector's folder is dir.
func write(dir string) error {
	files, err := generate(dir)
	if err != nil {
		return err
	}
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the files with the rules in them, by path.
func generate(dir string) (files map[string]string, err error) {
	all := rules.All()
	root := filepath.Join(dir, "..", "..")
	files = map[string]string{}
	for _, f := range []struct {
		path     string
		sections []section
	}{
		{filepath.Join(dir, "README.md"), []section{
			{"<!-- rules: events -->\n", "<!-- end of rules -->", events(all)},
			{"<!-- rules: keys -->\n", "<!-- end of rules -->", keys(all)},
			{"<!-- rules: reasons -->\n", "<!-- end of rules -->", table(board.Reasons)},
		}},
		{filepath.Join(root, "docs", "health.md"), []section{
			{"<!-- rules: reasons -->\n", "<!-- end of rules -->", reasonTable(documented())},
		}},
		{filepath.Join(root, "charts", "otelcol-gpu", "values.yaml"), []section{
			{"  # Every event can be switched off with enabled: false.\n  events:\n", "\n", values(all)},
		}},
		{filepath.Join(root, "charts", "otelcol-gpu", "values.schema.json"), []section{
			{"        \"events\": {\n          \"type\": \"object\",\n", "        }\n", schema(all)},
		}},
	} {
		text, err := os.ReadFile(f.path)
		if err != nil {
			return nil, err
		}
		if files[f.path], err = replace(string(text), f.sections); err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
	}
	for _, r := range documented() {
		files[filepath.Join(root, "docs", "runbooks", runbookOf(r))] = runbook(r)
	}
	for name, source := range map[string]string{"generated_events.go": eventList(all), "generated_health.go": reasons(board.Reasons)} {
		text, err := format.Source([]byte(source))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[filepath.Join(root, "internal", "names", name)] = string(text)
	}
	return files, nil
}

// section is the text between a beginning and the first line that is the end.
type section struct{ begin, end, text string }

func replace(text string, sections []section) (string, error) {
	for _, s := range sections {
		before, after, found := strings.Cut(text, s.begin)
		i := strings.Index("\n"+after, "\n"+s.end)
		if !found || i < 0 {
			return "", fmt.Errorf("%q, or its end, is not there", s.begin)
		}
		text = before + s.begin + s.text + after[i:]
	}
	return text, nil
}

func events(all []*rule.Rule) string {
	var b strings.Builder
	b.WriteString("| event | set | raised | cleared | severity | key: the name, and |\n|---|---|---|---|---|---|\n")
	for _, r := range all {
		cleared := r.Doc.Cleared
		if r.Notice {
			cleared = "a notice"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", r.Event, r.Set, r.Doc.Raised, cleared, r.Doc.Severity, r.Doc.Key)
	}
	return b.String()
}

func keys(all []*rule.Rule) string {
	b := strings.Builder{}
	b.WriteString("```yaml\nevents:\n")
	for _, r := range all {
		var pairs []string
		for _, k := range r.Keys {
			pairs = append(pairs, k.Name+": "+value(k.Default))
		}
		if len(pairs) > 0 {
			fmt.Fprintf(&b, "  %s: {%s}\n", r.Event, strings.Join(pairs, ", "))
		}
	}
	b.WriteString("```\n")
	return b.String()
}

func values(all []*rule.Rule) string {
	var b strings.Builder
	for _, r := range all {
		if r.Doc.Chart != "" {
			fmt.Fprintf(&b, "    # %s\n", r.Doc.Chart)
		}
		pairs := []string{"enabled: true"}
		for _, k := range r.Keys {
			v := value(k.Default)
			if k.FromInterval {
				v = `""`
			}
			pairs = append(pairs, k.Name+": "+v)
		}
		fmt.Fprintf(&b, "    %s: {%s}\n", r.Event, strings.Join(pairs, ", "))
	}
	return b.String()
}

// value is a default as people write it: 2m, and not 2m0s.
func value(v any) string {
	d, ok := v.(time.Duration)
	if !ok {
		return fmt.Sprint(v)
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// schema requires no event and no key: helm upgrade --reuse-values keeps the values of
// the release before, which have none of those that are new. The connector has
// defaults for them.
func schema(all []*rule.Rule) string {
	var blocks []string
	for _, r := range all {
		properties := []string{`"enabled": {"type": "boolean"}`}
		for _, k := range r.Keys {
			if k.FromInterval {
				properties = append(properties, fmt.Sprintf(`"%s": {"$ref": "#/definitions/durationOrEmpty"}`, k.Name))
				continue
			}
			properties = append(properties, fmt.Sprintf(`"%s": %s`, k.Name, k.Schema))
		}
		blocks = append(blocks, fmt.Sprintf(`            "%s": {
              "type": "object",
              "additionalProperties": false,
              "properties": {
                %s
              }
            }`, r.Event, strings.Join(properties, ",\n                ")))
	}
	return fmt.Sprintf(`          "additionalProperties": false,
          "properties": {
%s
          }
`, strings.Join(blocks, ",\n"))
}

// generated is the beginning of a file of internal/names.
const generated = `// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Code generated by connector/gpueventsconnector/internal/rulesdoc. DO NOT EDIT.

package names

`

func eventList(all []*rule.Rule) string {
	var b strings.Builder
	b.WriteString(generated + "var eventRules = []EventRule{\n")
	for _, r := range all {
		var metrics []string
		for _, in := range r.Reads {
			metrics = append(metrics, fmt.Sprintf("%q", in.Metric.Name))
		}
		fmt.Fprintf(&b, "{Event: %q, Set: %q,%s Metrics: []string{%s}},\n", r.Event, r.Set, map[bool]string{true: " Notice: true,"}[r.Notice], strings.Join(metrics, ", "))
	}
	b.WriteString("}\n")
	return b.String()
}

func reasons(all []*board.Reason) string {
	var b strings.Builder
	b.WriteString(generated + "var healthReasons = []HealthReason{\n")
	for _, r := range all {
		fmt.Fprintf(&b, "{Name: %q, State: %q, Action: %q", r.Name, r.State, r.Action)
		if metrics := metricsOf(r); len(metrics) > 0 {
			fmt.Fprintf(&b, ", Metrics: %s, Needs: [][]string{", list(metrics))
			for _, set := range needs(r, metrics) {
				b.WriteString(strings.TrimPrefix(list(set), "[]string") + ",")
			}
			b.WriteString("}")
		}
		if r.Needs != 0 {
			fmt.Fprintf(&b, ", Of: %d", r.Needs)
		}
		if r.Only != 0 {
			fmt.Fprintf(&b, ", Only: %d", r.Only)
		}
		if r.Vital {
			b.WriteString(", Vital: true")
		}
		fmt.Fprintf(&b, ", Means: %q", strings.ReplaceAll(r.Doc.Means, "`", ""))
		b.WriteString("},\n")
	}
	b.WriteString("}\n\nvar healthMetrics = map[string]string{\n")
	written := map[string]bool{}
	for _, r := range all {
		for _, in := range r.Reads {
			if m := in.Metric; !written[m.Name] {
				written[m.Name] = true
				fmt.Fprintf(&b, "%q: %q,\n", m.Name, m.Prometheus())
			}
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// table is the README's table of reasons: what they read, and what they do to a board.
func table(all []*board.Reason) string {
	var b strings.Builder
	b.WriteString("| reason | reads | state, action | weight |\n|---|---|---|---|\n")
	for _, r := range all {
		reads, weight := "", ""
		if metrics := metricsOf(r); len(metrics) > 0 {
			reads = "`" + strings.Join(metrics, "`, `") + "`"
		}
		if r.Weight > 0 {
			weight = fmt.Sprint(r.Weight)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s, %s | %s |\n", r.Name, reads, r.State, r.Action, weight)
	}
	return b.String()
}

func list(texts []string) string {
	return `[]string{"` + strings.Join(texts, `", "`) + `"}`
}

func metricsOf(r *board.Reason) (metrics []string) {
	for _, in := range r.Reads {
		metrics = append(metrics, in.Metric.Name)
	}
	slices.Sort(metrics)
	return slices.Compact(metrics)
}

// needs are the smallest sets of metrics with which a reason is judged: it is tried with
// every set of those that it reads.
func needs(r *board.Reason, metrics []string) (sets [][]string) {
	for size := 1; size <= len(metrics); size++ {
		for chosen := range 1 << len(metrics) {
			var set []string
			for i, m := range metrics {
				if chosen>>i&1 == 1 {
					set = append(set, m)
				}
			}
			if len(set) == size && !slices.ContainsFunc(sets, func(smaller []string) bool { return within(smaller, set) }) && judged(r, set) {
				sets = append(sets, set)
			}
		}
	}
	return sets
}

func within(smaller, set []string) bool {
	return !slices.ContainsFunc(smaller, func(m string) bool { return !slices.Contains(set, m) })
}

// judged reports whether a reason is judged with these metrics alone.
func judged(r *board.Reason, metrics []string) bool {
	if r.Judge == nil {
		return true // any of them
	}
	readings := board.Readings{}
	for _, in := range r.Reads {
		places := max(1, len(in.Values))
		if in.Count {
			places *= 2 // the count, and what was counted in a page
		}
		v := math.NaN()
		if slices.Contains(metrics, in.Metric.Name) {
			v = 0
		}
		for range places {
			readings.Index = append(readings.Index, len(readings.Values))
			readings.Values = append(readings.Values, v)
		}
	}
	return r.Judge(readings, &board.Memory{}, 1).Known
}
