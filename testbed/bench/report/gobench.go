// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// goBench is an entry of Go benchmarks: a row for each benchmark and unit.
func goBench(name, title, text, directory string, arguments ...string) entry {
	return entry{
		name: name, title: title, text: text,
		columns: []column{{Key: "value", Title: "median", Decimals: -1}},
		all: func(ctx context.Context, w *world) ([]named, error) {
			args := append([]string{"test", "-tags", tags, "-run", "^$", "-timeout", "60m"}, arguments...)
			cmd := exec.CommandContext(ctx, "go", args...)
			cmd.Dir = filepath.Join(w.root, directory)
			cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false")
			out, err := cmd.CombinedOutput()
			if err != nil {
				return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
			}
			return readBenchmarks(out)
		},
	}
}

// readBenchmarks reads what go test -bench prints. Of a benchmark that ran several
// times the median is taken.
func readBenchmarks(out []byte) (all []named, err error) {
	values := map[string][]float64{}
	var order []string
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		if _, err := strconv.ParseInt(fields[1], 10, 64); err != nil {
			continue // a line that only begins like one
		}
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("line %q: %w", lines.Text(), err)
			}
			name := strings.TrimPrefix(fields[0], "Benchmark") + ", " + fields[i+1]
			if !slices.Contains(order, name) {
				order = append(order, name)
			}
			values[name] = append(values[name], value)
		}
	}
	if len(order) == 0 {
		return nil, errors.New("no benchmark ran")
	}
	for _, name := range order {
		all = append(all, named{name, figures{"value": median(values[name])}})
	}
	return all, lines.Err()
}
