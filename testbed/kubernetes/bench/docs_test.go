// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

// committed is what the repository's figures are from.
func committed(t *testing.T) (root string, results map[string]frame.Result) {
	t.Helper()
	root, err := frame.Repository()
	require.NoError(t, err)
	results, err = open(dataPath(root))
	require.NoError(t, err)
	require.NotEmpty(t, results)
	return root, results
}

const again = "run: cd testbed/kubernetes/bench && go run . -render"

// docs/performance.md is what the command writes, the marks of what is stale included.
func TestReportIsWritten(t *testing.T) {
	root, results := committed(t)
	changes, err := changes(root, results)
	require.NoError(t, err)
	want, err := page(results, changes)
	require.NoError(t, err)
	got, err := os.ReadFile(reportPath(root))
	require.NoError(t, err)
	assert.True(t, string(want) == string(got), "docs/performance.md is not what docs/performance.json gives, or a component has changed and made rows stale that measure it; "+again)
}

// Every figure that a guide repeats is that of the report, or stands for one that
// is not measured yet.
func TestGuidesAreFilled(t *testing.T) {
	root, results := committed(t)
	paths, err := guides(root)
	require.NoError(t, err)
	found := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, parts := range marker.FindAllStringSubmatch(string(text), -1) {
			found++
			fields := strings.Split(parts[1], ";")
			if len(fields) > 2 {
				assert.NoError(t, declared(root, place{strings.TrimSpace(fields[0]), strings.TrimSpace(fields[1]), strings.TrimSpace(fields[2])}), path)
			}
		}
		want, err := fill(string(text), results)
		require.NoError(t, err, path)
		assert.True(t, want == string(text), "%s has figures that docs/performance.json does not give; %s", path, again)
	}
	assert.Greater(t, found, 10)
}

// Results are of entries that there are.
func TestResultsHaveEntries(t *testing.T) {
	_, results := committed(t)
	for name := range results {
		assert.True(t, slices.ContainsFunc(entries, func(e *frame.Entry) bool { return e.Name == name }), "%s: it is not measured any more; remove it from docs/performance.json", name)
	}
}

// What a goal is for is measured by its entry, as far as is known before it ran.
func TestGoalsArePlaces(t *testing.T) {
	root, results := committed(t)
	for _, g := range goals {
		assert.NoError(t, declared(root, g.place), g.what)
		if g.beside != "" {
			assert.NoError(t, declared(root, place{g.entry, g.beside, g.column}), g.what)
		}
		if g.peer != "" {
			assert.NoError(t, declared(root, place{g.entry, g.peer, g.column}), g.what)
		}
		for _, p := range g.plus {
			assert.NoError(t, declared(root, p.place), g.what)
		}
		if _, err := g.measured(results); err != nil {
			assert.ErrorIs(t, err, errUnmeasured, g.what)
		}
		assert.NotEmpty(t, g.cause, g.what)
		assert.NotRegexp(t, `\d`, g.cause, "a cause has no figures: they would not be those of the next run")
	}
}

// A row that is misspelt is reported, whatever kind of entry it is.
func TestDeclared(t *testing.T) {
	root, _ := committed(t)
	assert.NoError(t, declared(root, place{"agent-15s", "agent.yaml", "rss"}))
	assert.NoError(t, declared(root, place{"go-components", "connector/gpueventsconnector: Memory", "B/device"}))
	for _, p := range []place{
		{"agent", "agent.yaml", "rss"}, {"agent-15s", "agent", "rss"}, {"agent-15s", "agent.yaml", "RSS"},
		{"go-components", "connector/gpueventsconnector: Memories", "B/device"}, {"go-attribution", "Decisions", "ns/op"},
	} {
		assert.Error(t, declared(root, p), p)
	}
}

// declared fails where an entry will not have such a place. What units a Go
// benchmark has is known only from its run.
func declared(root string, p place) error {
	i := slices.IndexFunc(entries, func(e *frame.Entry) bool { return e.Name == p.entry })
	if i < 0 {
		return noPlace(p)
	}
	e := entries[i]
	if e.Columns != nil && !slices.ContainsFunc(e.Columns, func(c frame.Column) bool { return c.Key == p.column }) {
		return noPlace(p)
	}
	if e.Rows != nil {
		if !slices.ContainsFunc(e.Rows(&frame.World{}), func(r frame.Row) bool { return r.Name == p.row }) {
			return noPlace(p)
		}
		return nil
	}
	if e.Directory == "" {
		return nil
	}
	directory, name := e.Directory, p.row
	if of, benchmark, ok := strings.Cut(p.row, ": "); ok {
		directory, name = of, benchmark
	}
	name, _, _ = strings.Cut(name, "/")
	found := false
	err := filepath.WalkDir(filepath.Join(root, directory), func(path string, d os.DirEntry, err error) error {
		if err == nil && !found && strings.HasSuffix(path, "_test.go") {
			text, err := os.ReadFile(path)
			found = strings.Contains(string(text), "func Benchmark"+name+"(")
			return err
		}
		return err
	})
	if err == nil && !found {
		return noPlace(p)
	}
	return err
}

type noPlace place

func (p noPlace) Error() string { return "no entry will have " + place(p).String() }

// No two entries have the same title: a link would find the section of the first.
func TestTitles(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range entries {
		assert.False(t, seen[slug(e.Title)], e.Title)
		seen[slug(e.Title)] = true
		assert.NotEmpty(t, e.Text, e.Name)
	}
}

// A figure is the median, changed as its marker demands; one that was not measured is
// none; and what does not exist is an error.
func TestFill(t *testing.T) {
	a, b := 2048.0, math.Pi*1024
	results := map[string]frame.Result{"agent-15s": {Rows: []frame.RowResult{{Name: "agent.yaml", Figures: map[string][]*float64{"rss": {&a, &b, nil}, "anon": {nil}}}}}}
	for expression, want := range map[string]string{
		"agent-15s; agent.yaml; rss":                    "2632.5",
		"agent-15s; agent.yaml; rss; / 1024; * 2; .2":   "5.14",
		"agent-15s; agent.yaml; anon":                   unmeasured,
		"growth; 10 nodes, 80 GPUs; points; * 8; .0":    unmeasured,
		"go-components; whatever/it: is; ns/op; / 1000": unmeasured,
	} {
		got, err := fill("A <!-- bench: "+expression+" -->old<!-- /bench --> MiB", results)
		require.NoError(t, err, expression)
		assert.Equal(t, "A <!-- bench: "+expression+" -->"+want+"<!-- /bench --> MiB", got)
	}
	for expression, message := range map[string]string{
		"nobody; agent.yaml; rss":           "no entry",
		"agent-15s; agent; rss":             "no row",
		"agent-15s; agent.yaml; cpu":        "no column",
		"agent-15s; agent.yaml":             "are needed",
		"agent-15s; agent.yaml; rss; x 2":   "is no step",
		"agent-15s; agent.yaml; rss; * two": "invalid syntax",
		"agent-15s; agent.yaml; rss;":       "nothing stands",
	} {
		_, err := fill("<!-- bench: "+expression+" -->1<!-- /bench -->", results)
		assert.ErrorContains(t, err, message, expression)
	}
	_, err := fill("<!-- bench: agent-15s; agent.yaml; rss -->1", results)
	assert.ErrorContains(t, err, "1 figures begin, and 0 end")
}

// Guides are written, wherever they are; the report and what is not ours are not.
func TestFillGuides(t *testing.T) {
	root := t.TempDir()
	const before = "<!-- bench: growth; 10 nodes, 80 GPUs; points -->1<!-- /bench -->"
	paths := map[string]bool{
		"README.md": true, "docs/sizing.md": true, "receiver/x/README.md": true,
		"docs/performance.md": false, "web/node_modules/x/README.md": false, ".tools/README.md": false, "docs/sizing.txt": false,
	}
	for path := range paths {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(before), 0o600))
	}
	v := 57.6
	require.NoError(t, fillGuides(root, map[string]frame.Result{"growth": {Rows: []frame.RowResult{{Name: "10 nodes, 80 GPUs", Figures: map[string][]*float64{"points": {&v}}}}}}))
	for path, ours := range paths {
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		assert.Equal(t, ours, string(text) == strings.Replace(before, ">1<", ">58<", 1), "%s: %s", path, text)
	}
	assert.ErrorContains(t, fillGuides(root, map[string]frame.Result{"growth": {}}), "README.md")
}

// quantity is a number with a unit that measurements have.
var quantity = regexp.MustCompile(`[0-9][0-9,.]* ?(?:[KMG]i?B|kB|bytes|[mnuµ]s|%)(?:[^A-Za-z]|$)`)

// configured are the lines of docs/sizing.md with quantities that no benchmark gives,
// by what they hold, with the reason.
var configured = map[string]string{
	"90 points × 11 bytes":             "computed from the rows above, which scripts/measure-traffic printed",
	"1,000 × 66 bytes":                 "computed from what scripts/measure-traffic printed",
	"queues while the gateway is away": "configuration",
	"more queues":                      "configuration",
	"Request 100m":                     "configuration",
	"to begin with and a limit of":     "configuration",
	"the volume 10 GiB":                "configuration",
	"refuses data at":                  "configuration",
	"`max_bytes` (2 GiB)":              "configuration",
	"gpu_store::max_bytes":             "configuration",
	"a queue of 256 MiB":               "configuration",
	"audit files, at most":             "configuration",
}

// docs/sizing.md has no figure that was typed.
func TestSizingIsMeasured(t *testing.T) {
	root, _ := committed(t)
	text, err := os.ReadFile(sizingSource(root))
	require.NoError(t, err)
	written, err := os.ReadFile(sizingPath(root))
	require.NoError(t, err)
	assert.True(t, sizing(string(text)) == string(written), "docs/sizing.md is not what its source gives; "+again)
	used := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		found := quantity.FindString(marker.ReplaceAllString(line, "") + " ")
		if found == "" {
			continue
		}
		why := ""
		for part := range configured {
			if strings.Contains(line, part) {
				why, used[part] = part, true
			}
		}
		assert.NotEmpty(t, why, "%q was typed by hand: %s", found, line)
	}
	for part := range configured {
		assert.True(t, used[part], "no line of docs/sizing.md needs %q any more", part)
	}
}
