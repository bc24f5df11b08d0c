// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package frame is what every measurement is made in: entries with rows that are measured
// in turns, the programs that rows start, and what these use while they are watched.
package frame

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

type m = map[string]any

// World is where entries find what they run.
type World struct {
	Root   string // of the repository
	Work   string // for logs and state; goes at the end
	Turns  int
	Window time.Duration // each measurement
	Warmup time.Duration // before it

	ends []func() // stop what was started, the last first

	building sync.Mutex // two contenders may start at once
}

// Close ends what entries started.
func (w *World) Close() {
	for _, end := range slices.Backward(w.ends) {
		end()
	}
}

// OnClose has close call end.
func (w *World) OnClose(end func()) { w.ends = append(w.ends, end) }

func (w *World) Bin(name string) string { return filepath.Join(w.Root, "bin", name) }

func (w *World) Config(name string) string { return filepath.Join(w.Root, "config", name) }

// Folder makes an empty folder.
func (w *World) Folder(name string) (string, error) { return os.MkdirTemp(w.Work, name+"-") }

// prometheus is the path of the server of the train, which is built where it is
// missing or of another version: what is reported beside the figures is that of go.mod.
func (w *World) prometheus(ctx context.Context) (string, error) {
	w.building.Lock()
	defer w.building.Unlock()
	all, err := Versions(w.Root)
	if err != nil {
		return "", err
	}
	path := w.Bin("prometheus")
	if isVersion(path, all["Prometheus"]) {
		return path, nil
	}
	build := Command(ctx, "go", "build", "-tags", Tags, "-trimpath", "-ldflags", "-s -w", "-o", path, "github.com/prometheus/prometheus/cmd/prometheus")
	build.Dir = filepath.Join(w.Root, "testbed", "store")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building prometheus: %w\n%s", err, out)
	}
	return path, nil
}

// isVersion reports whether a program is there and was built of this version of its
// module.
func isVersion(path, version string) bool {
	info, err := buildinfo.ReadFile(path)
	return err == nil && info.Main.Version == version
}

// Command is a program that ends with ctx, and all that it started with it: go
// itself leaves the tests and compilers behind that it runs.
func Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

const Tags = "remove_all_sd,enable_kubernetes_sd,enable_dns_sd"

// Overlay is a configuration as an argument of --config.
func Overlay(config m) string {
	text, err := json.Marshal(config)
	if err != nil {
		panic(err) // it is made of literals
	}
	return "yaml:" + string(text)
}

// Machine is what the figures are of.
type machine struct {
	Cores  int    `json:"cores"`
	Memory int    `json:"memory_gib"`
	CPU    string `json:"cpu"`
	System string `json:"system"`
	Go     string `json:"go"`
	Commit string `json:"commit"`
	Time   string `json:"time"`
	Load   string `json:"load"` // of the last minute before the measurement
	// Versions are those of what it was measured beside.
	Versions map[string]string `json:"versions"`
}

// String is all of it but the moment.
func (mc machine) String() string {
	text := fmt.Sprintf("%d cores (%s), %d GiB, %s, %s", mc.Cores, mc.CPU, mc.Memory, mc.System, mc.Go)
	for _, name := range slices.Sorted(maps.Keys(mc.Versions)) {
		text += ", " + name + " " + mc.Versions[name]
	}
	return text
}

// Busy reports whether the machine was used right before the measurement began: by
// others, or by the entry before.
func (mc machine) Busy() bool {
	load, err := strconv.ParseFloat(mc.Load, 64)
	return err == nil && load > float64(mc.Cores)/2
}

func (w *World) Machine() (machine, error) {
	others, err := Versions(w.Root)
	if err != nil {
		return machine{}, err
	}
	mc := machine{Cores: runtime.NumCPU(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Time: time.Now().UTC().Format("2006-01-02 15:04 UTC"), Versions: others}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kib int
		if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kib); err == nil {
			mc.Memory = (kib + 1<<19) >> 20
		}
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, ok := strings.CutPrefix(line, "model name\t: "); ok {
				mc.CPU = strings.TrimSpace(name)
				break
			}
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		mc.System += ", Linux " + strings.TrimSpace(string(text))
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		mc.Load, _, _ = strings.Cut(string(text), " ")
	}
	if out, err := exec.Command("git", "-C", w.Root, "rev-parse", "--short", "HEAD").Output(); err == nil {
		mc.Commit = strings.TrimSpace(string(out))
	}
	// What an entry before has written is no change of what is measured.
	if out, err := exec.Command("git", "-C", w.Root, "status", "--porcelain", "--", ".", ":!docs", ":!*.md").Output(); err == nil && len(out) > 0 {
		mc.Commit += " with changes"
	}
	return mc, nil
}

// Repository is the folder above that has the manifest.
func Repository() (string, error) {
	directory, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(directory, "builder-config.yaml")); err == nil {
			return directory, nil
		}
		parent := filepath.Dir(directory)
		if parent == directory {
			return "", errors.New("run it in the repository")
		}
		directory = parent
	}
}
