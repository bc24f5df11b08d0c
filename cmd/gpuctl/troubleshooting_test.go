// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor"
)

const troubleshooting = "../../docs/troubleshooting.md"

// Every gpuctl command of the guide is one, with flags that it has.
func TestTroubleshootingCommands(t *testing.T) {
	text, err := os.ReadFile(troubleshooting)
	require.NoError(t, err)
	commands := regexp.MustCompile("(?m)(?:`[^`\n]*?|^)gpuctl ([a-z][^`\n]*)").FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(commands), 15)
	for _, c := range commands {
		args := strings.Fields(c[1])
		found := newRoot()
		for len(args) > 0 && found.run == nil {
			i := slices.IndexFunc(found.subcommands, func(s *command) bool { return s.name == args[0] })
			require.GreaterOrEqual(t, i, 0, c[0])
			found, args = found.subcommands[i], args[1:]
		}
		require.NotNil(t, found.run, c[0])
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		if found.flags != nil {
			found.flags(flags)
		}
		require.NoError(t, flags.Parse(args), c[0])
		if found.name == "doctor" {
			for _, name := range flags.Args() {
				assert.Contains(t, doctor.Names, name, c[0])
			}
		}
	}
	for _, name := range doctor.Names {
		assert.Contains(t, string(text), "\n| `"+name+"` | ", "every check is described")
	}
}

// Every log line and metric of the guide is one that a component has, every link
// leads to a file.
func TestTroubleshootingIsTrue(t *testing.T) {
	text, err := os.ReadFile(troubleshooting)
	require.NoError(t, err)
	sources := read(t, ".go") + read(t, "documentation.md")
	// From "log:" to the own metrics, or to the end of a table's row.
	logged := regexp.MustCompile(`(?s)\blog: (.*?)(?:\nOwn metrics| \|\n)`).FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(logged), 5)
	for _, l := range logged {
		for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(l[1], -1) {
			assert.True(t, strings.Contains(sources, quoted[1]), "no component logs %q", quoted[1])
		}
	}
	for line := range strings.Lines(string(text)) {
		for _, metric := range regexp.MustCompile(`otelcol_[a-z_]+`).FindAllString(line, -1) {
			if regexp.MustCompile(`^otelcol_(receiver_refused|exporter_(queue|enqueue|send))_`).MatchString(metric) {
				continue // the Collector's own
			}
			assert.True(t, strings.Contains(sources, "### "+metric+"\n"), "no component has %s", metric)
		}
		for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(line, -1) {
			file, _, _ := strings.Cut(link[1], "#")
			assert.FileExists(t, filepath.Join("../../docs", file))
		}
	}
}

// read joins the files with this suffix of the components and of what they share.
func read(t *testing.T, suffix string) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range []string{"receiver", "processor", "connector", "exporter", "extension", "internal"} {
		require.NoError(t, filepath.WalkDir("../../"+dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, suffix) || strings.HasSuffix(path, "_test.go") {
				if e != nil && e.Name() == "node_modules" {
					return fs.SkipDir
				}
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		}))
	}
	return all.String()
}
