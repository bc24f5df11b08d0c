// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package library

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ebitengine/purego"
)

const supported = true

// load opens a shared object. Symbols are resolved when they are needed: an older library
// lacks some.
func load(path string) (uintptr, error) {
	// The text of an error belongs to the thread that caused it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlopen(path, purego.RTLD_LAZY|purego.RTLD_LOCAL)
}

func find(handle uintptr, symbol string) (Function, bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	address, err := purego.Dlsym(handle, symbol)
	if err != nil || address == 0 {
		return nil, false
	}
	return func(arguments ...uintptr) uintptr {
		result, _, _ := purego.SyscallN(address, arguments...)
		return result
	}, true
}

// loadedFrom returns the file that the loader found under a name without a folder, or the
// name where that cannot be known.
func loadedFrom(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return name
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		// The file is the sixth field: the library may be a link to one with a version.
		if i := strings.IndexByte(lines.Text(), '/'); i >= 0 && strings.HasPrefix(filepath.Base(lines.Text()[i:]), "libnvidia-ml.so") {
			return lines.Text()[i:]
		}
	}
	return name
}
