// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package binaries measures how long the binary takes to build and to start.
package binaries

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

var BuildEntry = frame.Entry{
	Name:  "build",
	Title: "Build",
	// A build compiles little but the modules of others.
	Sources: []string{"builder-config.yaml", "go.mod", "cmd/gpuctl"},
	Turns:   1, // minutes each
	Text: "From source with an empty build cache, as `make build` builds it; the module cache is full, so nothing is downloaded. Prometheus is its server's command of the same train, with the same flags, tags and kind of machine. " +
		"CPU is that of go and all that it starts, and memory the most that one of these processes had resident: the largest package's compiler, or the linker.",
	Columns: []frame.Column{
		{Key: "wall", Title: "takes, s", Decimals: 0, Ratio: true},
		{Key: "cpu", Title: "CPU, s", Decimals: 0, Ratio: true},
		{Key: "peak", Title: "largest process, MiB", Decimals: 0, Ratio: true},
		{Key: "size", Title: "binary, MiB", Decimals: 1, Ratio: true},
	},
	Rows: func(*frame.World) []frame.Row {
		at := func(name, directory string, args ...string) frame.Row {
			return frame.Row{Name: name, Measure: func(ctx context.Context, w *frame.World) (frame.Figures, error) {
				return measureBuild(ctx, w, directory, args)
			}}
		}
		return []frame.Row{
			at("Prometheus server", "testbed/store", "-tags", frame.Tags, "github.com/prometheus/prometheus/cmd/prometheus"),
			at("otelcol-gpu", "cmd/otelcol-gpu", "-tags", frame.Tags, "."),
			at("gpuctl", ".", "./cmd/gpuctl"),
		}
	},
}

// measureBuild builds a command with an empty cache.
func measureBuild(ctx context.Context, w *frame.World, directory string, args []string) (frame.Figures, error) {
	folder, err := w.Folder("build")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder) // gigabytes
	// Whatever has to be downloaded is, before the time begins.
	list := frame.Command(ctx, "go", append([]string{"list", "-deps", "-f", "{{/* nothing */}}"}, args...)...)
	list.Dir = filepath.Join(w.Root, directory)
	if out, err := list.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, out)
	}
	binary := filepath.Join(folder, "binary")
	cmd := frame.Command(ctx, "go", append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", binary}, args...)...)
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
	return frame.Figures{
		"wall": took.Seconds(), "cpu": (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(),
		"peak": float64(used.Maxrss) / 1024, "size": float64(info.Size()) / (1 << 20),
	}, nil
}
