// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

// put writes files of a repository.
func put(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

// A change of a component, of what it imports, or of a configuration marks what was
// measured before; one of a test or a comment does not.
func TestChanges(t *testing.T) {
	e, _ := made()
	e.Sources = []string{"receiver/a", "processor/b", "config/a.yaml", "web"}
	before := entries
	t.Cleanup(func() { entries = before })
	entries = []*frame.Entry{&e}
	files := map[string]string{
		"receiver/a/a.go":         "package a\n\nimport (\n\t\"fmt\"\n\n\t\"" + frame.Module + "internal/c\"\n)\n\nfunc A() { fmt.Println(c.C) }\n",
		"receiver/a/a_test.go":    "package a\n",
		"processor/b/b.go":        "package b\n\nconst B = 1\n",
		"internal/c/c.go":         "package c\n\nimport \"" + frame.Module + "internal/d\"\n\nconst C = d.D\n",
		"internal/d/d_windows.go": "package d\n\nconst D = 1\n",
		"config/a.yaml":           "# A comment.\na: 1\n",
		"web/assets/page.js":      "1",
	}
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nothing":              {nil, ""},
		"a component":          {map[string]string{"processor/b/b.go": "package b\n\nconst B = 2\n"}, "processor/b changed since"},
		"a new file":           {map[string]string{"processor/b/c.go": "package b\n"}, "processor/b changed since"},
		"an import's import":   {map[string]string{"internal/d/d_windows.go": "package d\n\nconst D = 2\n"}, "receiver/a changed since"},
		"a configuration":      {map[string]string{"config/a.yaml": "# A comment.\na: 2\n", "web/assets/page.js": "2"}, "config/a.yaml, web changed since"},
		"a test":               {map[string]string{"receiver/a/a_test.go": "package a\n\nvar x = 1\n", "internal/c/c_test.go": "package c\n"}, ""},
		"a comment":            {map[string]string{"processor/b/b.go": "// Package b is new.\npackage b\n\nconst B = 1 // one\n", "config/a.yaml": "# Another.\n\na: 1\n"}, ""},
		"a build constraint":   {map[string]string{"processor/b/b.go": "//go:build linux\n\npackage b\n\nconst B = 1\n"}, "processor/b changed since"},
		"what nobody measures": {map[string]string{"receiver/other/other.go": "package other\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			put(t, root, files)
			sources, err := frame.NewTree(root).Hashes(e.Sources)
			require.NoError(t, err)
			put(t, root, test.files)
			got, err := changes(root, map[string]frame.Result{"made": {Sources: sources}})
			require.NoError(t, err)
			assert.Equal(t, test.want, got["made"])
		})
	}

	t.Run("not recorded", func(t *testing.T) {
		got, err := changes(t.TempDir(), map[string]frame.Result{"made": {}})
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"made": unrecorded}, got)
	})
	t.Run("another source", func(t *testing.T) {
		root := t.TempDir()
		put(t, root, files)
		sources, err := frame.NewTree(root).Hashes(e.Sources[:3])
		require.NoError(t, err)
		got, err := changes(root, map[string]frame.Result{"made": {Sources: sources}})
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"made": "web changed since"}, got, "what it is measured with since then was not recorded")
	})
	t.Run("a source that is gone", func(t *testing.T) {
		_, err := changes(t.TempDir(), map[string]frame.Result{"made": {Sources: map[string]string{"receiver/a": "1"}}})
		assert.ErrorContains(t, err, "receiver/a")
	})
}

// A mark stands at the goals, in the section, and with what changed in the last table. A
// goal to which a figure of another entry is added depends on that too.
func TestStalePage(t *testing.T) {
	one, _ := made()
	other, _ := made()
	other.Name, other.Title = "other", "Other"
	beforeEntries, beforeGoals := entries, goals
	t.Cleanup(func() { entries, goals = beforeEntries, beforeGoals })
	entries = []*frame.Entry{&one, &other}
	goals = []goal{
		{what: "cheap", unit: "us", place: place{"made", "ours", "cpu"}, limit: 3},
		{what: "dear", unit: "us", place: place{"made", "ours", "cpu"}, limit: 1, cause: "It is slow."},
		{what: "another", unit: "us", place: place{"other", "ours", "cpu"}, limit: 3},
		{what: "both", unit: "us", place: place{"other", "ours", "cpu"}, plus: []term{{place{"made", "ours", "cpu"}, 0.5}}, limit: 3},
	}
	v := 2.
	row := []frame.RowResult{{Name: "ours", Figures: map[string][]*float64{"cpu": {&v}}}}
	measured := map[string]frame.Result{"made": {Rows: row, Sources: map[string]string{"receiver/a": "1"}}, "other": {Rows: row}}
	path := filepath.Join(t.TempDir(), "performance.json")
	require.NoError(t, save(path, measured))
	results, err := open(path)
	require.NoError(t, err)
	assert.Equal(t, measured["made"].Sources, results["made"].Sources)
	text, err := page(results, map[string]string{"made": "receiver/a changed since"})
	require.NoError(t, err)
	for _, line := range []string{
		"| at most 3 us | 2 | met (stale) |", "| at most 1 us | 2 | **missed by 100 %** (stale) |",
		"[another](#other) | at most 3 us | 2 | met |", "[both](#other) | at most 3 us | 3 | met (stale) |",
		"[made](#made-up): , commit , load ; stale: receiver/a changed since<br>", "\n\n[Stale](#repeat).\n",
	} {
		assert.Contains(t, string(text), line)
	}
	assert.Equal(t, 1, strings.Count(string(text), staleLink))
}

// What an entry measures is in the repository.
func TestEntriesHaveSources(t *testing.T) {
	root, _ := committed(t)
	tree := frame.NewTree(root)
	for _, e := range entries {
		assert.NotEmpty(t, e.Sources, e.Name)
		_, err := tree.Hashes(e.Sources)
		assert.NoError(t, err, e.Name)
		assert.Len(t, slices.Compact(slices.Sorted(slices.Values(e.Sources))), len(e.Sources), e.Name)
	}
}

// idle are components of a configuration that an entry runs and does not measure.
var idle = map[string][]string{
	"growth":          {"exporter/gpu_store", "extension/gpu_store", "extension/gpu_console"}, // replaced
	"webhooks":        waiting,
	"webhooks-faults": waiting,
	"go-alarm": {
		"receiver/gpu_allocation", "processor/app_guard", "connector/best_effort", "connector/gpu_cost", "exporter/gpu_store",
		"extension/gpu_store", "extension/gpu_console", "extension/request_limit", "extension/footprint",
	},
}

var waiting = []string{
	"receiver/dcgm", "receiver/gpu_allocation", "processor/app_guard", "processor/gpu_pod", "processor/gpu_summary", "connector/best_effort",
	"connector/gpu_events", "connector/gpu_cost", "extension/gpu_console", "extension/request_limit", "extension/footprint",
}

// An entry that runs a configuration names the components in it.
func TestConfigurationsHaveSources(t *testing.T) {
	root, _ := committed(t)
	folders := map[string]string{} // by class and type
	paths, err := filepath.Glob(filepath.Join(root, "*", "*", "metadata.yaml"))
	require.NoError(t, err)
	for _, path := range paths {
		var about struct {
			Type   string
			Status struct{ Class string }
		}
		read(t, path, &about)
		folder, err := filepath.Rel(root, filepath.Dir(path))
		require.NoError(t, err)
		folders[about.Status.Class+"/"+about.Type] = filepath.ToSlash(folder)
	}
	require.Contains(t, folders, "receiver/dcgm")
	for _, e := range entries {
		needed := map[string]bool{}
		for _, source := range e.Sources {
			if !strings.HasPrefix(source, "config/") {
				continue
			}
			var config map[string]any
			read(t, filepath.Join(root, source), &config)
			for section, components := range config {
				components, ok := components.(map[string]any)
				if !ok {
					continue
				}
				for id := range components {
					kind, _, _ := strings.Cut(id, "/")
					if component := strings.TrimSuffix(section, "s") + "/" + kind; folders[component] != "" {
						needed[component] = true
					}
				}
			}
		}
		for _, component := range slices.Sorted(maps.Keys(needed)) {
			assert.NotEqual(t, slices.Contains(idle[e.Name], component), slices.Contains(e.Sources, folders[component]), "%s: %s", e.Name, component)
		}
		for _, component := range idle[e.Name] {
			assert.True(t, needed[component], "%s runs no %s any more", e.Name, component)
		}
	}
}

// read decodes a YAML file.
func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into), path)
}
