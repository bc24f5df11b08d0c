// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

var buildEntry = entry{
	name:  "build",
	title: "Build",
	turns: 1, // minutes each
	text: "From source with an empty build cache, as `make build` builds it; the module cache is full, so nothing is downloaded. Prometheus is its server's command of the same train, with the same flags, tags and kind of machine. " +
		"CPU is that of go and all that it starts, and memory the most that one of these processes had resident: the largest package's compiler, or the linker.",
	columns: []column{
		{Key: "wall", Title: "takes, s", Decimals: 0, Ratio: true},
		{Key: "cpu", Title: "CPU, s", Decimals: 0, Ratio: true},
		{Key: "peak", Title: "largest process, MiB", Decimals: 0, Ratio: true},
		{Key: "size", Title: "binary, MiB", Decimals: 1, Ratio: true},
	},
	rows: func(*world) []row {
		at := func(name, directory string, args ...string) row {
			return row{name: name, measure: func(ctx context.Context, w *world) (figures, error) {
				return measureBuild(ctx, w, directory, args)
			}}
		}
		return []row{
			at("Prometheus server", "testbed/store", "-tags", tags, "github.com/prometheus/prometheus/cmd/prometheus"),
			at("otelcol-gpu", "cmd/otelcol-gpu", "-tags", tags, "."),
			at("gpuctl", ".", "./cmd/gpuctl"),
		}
	},
}

// measureBuild builds a command with an empty cache.
func measureBuild(ctx context.Context, w *world, directory string, args []string) (figures, error) {
	folder, err := w.folder("build")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder) // gigabytes
	// Whatever has to be downloaded is, before the time begins.
	list := command(ctx, "go", append([]string{"list", "-deps", "-f", "{{/* nothing */}}"}, args...)...)
	list.Dir = filepath.Join(w.root, directory)
	if out, err := list.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, out)
	}
	binary := filepath.Join(folder, "binary")
	cmd := command(ctx, "go", append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", binary}, args...)...)
	cmd.Dir = list.Dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOPROXY=off", "GOCACHE="+filepath.Join(folder, "cache"))
	begin := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	took := time.Since(begin)
	info, err := os.Stat(binary)
	if err != nil {
		return nil, err
	}
	used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return nil, fmt.Errorf("this system does not report what a process used")
	}
	return figures{
		"wall": took.Seconds(), "cpu": (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(),
		"peak": float64(used.Maxrss) / 1024, "size": float64(info.Size()) / (1 << 20),
	}, nil
}
