// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package library loads the driver's library (libnvidia-ml.so.1) and calls its functions
// without cgo. Nothing else in this repository imports purego, and only the program
// otelcol-gpu-nvml imports this package: a binary with purego needs the C library's loader,
// and what crashes in the library ends the process.
package library

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// Name is the library's SONAME.
const Name = "libnvidia-ml.so.1"

// A Function is a function of the library. Its arguments are integers and addresses; the
// caller keeps what they point to alive during the call, and off the stack.
type Function func(arguments ...uintptr) uintptr

// A Library is loaded. It is never unloaded: unloading libnvidia-ml aborts the process
// (NVIDIA/nvidia-container-toolkit #1676).
type Library struct {
	path   string
	handle uintptr
}

// Folders are where the library is looked for after the loader's own folders: of packages, of
// GKE's and of the GPU operator's driver containers, of NixOS, and of WSL.
func Folders() []string {
	triplet := "x86_64-linux-gnu"
	if runtime.GOARCH == "arm64" {
		triplet = "aarch64-linux-gnu"
	}
	return []string{
		"/usr/lib64",
		"/usr/lib/" + triplet,
		"/usr/local/nvidia/lib64",
		"/run/nvidia/driver/usr/lib/" + triplet,
		"/run/nvidia/driver/usr/lib64",
		"/run/opengl-driver/lib",
		"/usr/lib/wsl/lib",
	}
}

// Open loads the library: that at path, or, where path is empty, the first that loads of the
// loader's own folders and the given ones. tried has each path that did not load, with its
// error; err is set where none did.
func Open(path string, folders []string) (library *Library, tried []string, err error) {
	if !supported {
		return nil, nil, fmt.Errorf("the driver's library cannot be called on %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	var candidates []string
	if path != "" {
		candidates = []string{path}
	} else {
		candidates = append(candidates, Name)
		for _, folder := range folders {
			candidates = append(candidates, filepath.Join(folder, Name))
		}
	}
	for _, candidate := range candidates {
		handle, err := load(candidate)
		if err != nil {
			tried = append(tried, describe(candidate, err))
			continue
		}
		return &Library{path: loadedFrom(candidate), handle: handle}, tried, nil
	}
	return nil, tried, errors.New("no " + Name + " could be loaded")
}

// Path is the file that was loaded.
func (l *Library) Path() string { return l.path }

// Find returns a function by its symbol, and whether the library has it.
func (l *Library) Find(symbol string) (Function, bool) { return find(l.handle, symbol) }

// describe returns a path with the error of loading it, which often names the path itself.
func describe(path string, err error) string {
	text := err.Error()
	if strings.HasPrefix(text, path+": ") {
		return text
	}
	return path + ": " + text
}
