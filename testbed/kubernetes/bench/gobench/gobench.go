// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package gobench makes entries of Go benchmarks.
package gobench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

// goBench is an entry of Go benchmarks: a row for each benchmark, a column for
// each unit that they report.
func goBench(name, title, text, directory string, sources []string, arguments ...string) frame.Entry {
	return frame.Entry{
		Name: name, Title: title, Text: text, Directory: directory, Sources: sources,
		All: func(ctx context.Context, w *frame.World) ([]frame.Named, error) {
			args := append([]string{"test", "-tags", frame.Tags, "-run", "^$", "-timeout", "90m"}, arguments...)
			cmd := frame.Command(ctx, "go", args...)
			cmd.Dir = filepath.Join(w.Root, directory)
			cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false")
			out, err := cmd.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
			}
			// One that fails costs no other.
			all, unread := ReadBenchmarks(out)
			return all, errors.Join(err, unread)
		},
	}
}

// processors is what Go appends to a benchmark's name unless there is one.
var processors = regexp.MustCompile(`-\d+$`)

// ReadBenchmarks reads what go test -bench prints: a benchmark that ran several
// times is there as often. Where several packages have benchmarks, the package
// stands before the name: two have a BenchmarkMemory.
func ReadBenchmarks(out []byte) (all []frame.Named, err error) {
	type line struct {
		of, name string
		frame.Figures
	}
	var read []line
	var packages []string
	current, cores := "", true
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "pkg: "); ok {
			current = strings.TrimPrefix(name, frame.Module)
			continue
		}
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		if _, err := strconv.ParseInt(fields[1], 10, 64); err != nil {
			continue // a line that only begins like one
		}
		got := line{of: current, name: strings.TrimPrefix(fields[0], "Benchmark"), Figures: frame.Figures{}}
		for i := 2; i+1 < len(fields); i += 2 {
			if got.Figures[fields[i+1]], err = strconv.ParseFloat(fields[i], 64); err != nil {
				return nil, fmt.Errorf("line %q: %w", lines.Text(), err)
			}
		}
		cores = cores && processors.MatchString(got.name)
		read = append(read, got)
		if !slices.Contains(packages, current) {
			packages = append(packages, current)
		}
	}
	if len(read) == 0 {
		return nil, errors.New("no benchmark ran")
	}
	for _, l := range read {
		name := l.name
		if cores { // all have it, or none
			name = processors.ReplaceAllString(name, "")
		}
		if len(packages) > 1 {
			name = l.of + ": " + name
		}
		all = append(all, frame.Named{Row: name, Figures: l.Figures})
	}
	return all, lines.Err()
}
