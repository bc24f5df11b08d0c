// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package state is the probe of the folders that a collector writes.
package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
)

// littleSpace is worth a warning: the store stops before the disk is full.
const littleSpace = 512 << 20 // bytes

// Probe looks at the folders of what is kept across restarts.
func Probe(_ context.Context, env probe.Env) []probe.Result {
	var folders []string
	add := func(folder string) {
		if folder != "" && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	for _, c := range append(env.Config.Of("extensions", "file_storage"), env.Config.Of("extensions", "gpu_store")...) {
		var cfg struct {
			Directory string `mapstructure:"directory"`
		}
		if c.Read(&cfg) == nil {
			add(cfg.Directory)
		}
	}
	for _, c := range env.Config.Of("exporters", "webhook") {
		var cfg struct {
			Audit struct {
				Path string `mapstructure:"path"`
			} `mapstructure:"audit"`
		}
		if c.Read(&cfg) == nil && cfg.Audit.Path != "" {
			add(filepath.Dir(cfg.Audit.Path))
		}
	}
	var results []probe.Result
	for _, folder := range folders {
		results = append(results, stateOf(folder))
	}
	if len(results) == 0 {
		return []probe.Result{probe.New("", probe.Skipped, "the configuration keeps nothing on disk", "")}
	}
	return results
}

// stateOf makes a file in the folder and removes it again: nothing else proves that
// it can be written.
func stateOf(folder string) probe.Result {
	r := probe.Result{Subject: folder, Status: probe.Fail}
	f, err := os.CreateTemp(folder, ".gpuctl-doctor-")
	if err == nil {
		_, err = f.WriteString("gpuctl doctor\n")
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		r.Status, r.Seen = probe.Warn, "there is no such folder"
		r.Remedy = "the collector makes it at its start; if it runs, it has another STATE_DIRECTORY or working directory: run this as it is run"
		return r
	case errors.Is(err, fs.ErrPermission):
		r.Seen, r.Remedy = probe.User()+" may not write there", "give the folder to the user of the collector (fsGroup in the pod); run this as that user"
		return r
	case errors.Is(err, syscall.EROFS):
		r.Seen, r.Remedy = "it is read-only", "mount the volume writable; a disk with errors is made read-only by the kernel: look at dmesg"
		return r
	case errors.Is(err, syscall.ENOSPC):
		r.Seen, r.Remedy = "the disk is full", "a larger volume, or a shorter gpu_store::retention and gpu_store::max_bytes; the store stops storing, the rest goes on"
		return r
	default:
		r.Seen, r.Remedy = err.Error(), "look at dmesg and at the volume"
		return r
	}
	r.Status, r.Seen = probe.OK, "writable"
	if free, known := freeBytes(folder); known {
		r.Seen += fmt.Sprintf(", %.1f GiB free", float64(free)/(1<<30))
		if free < littleSpace {
			r.Status, r.Remedy = probe.Warn, "a larger volume, or a shorter gpu_store::retention: the store stops before the disk is full"
		}
	}
	return r
}
