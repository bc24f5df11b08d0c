// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd

package embedded // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/embedded"

import "golang.org/x/sys/unix"

// FreeBytes is how much may still be written into a directory.
func FreeBytes(directory string) (free int64, known bool) {
	var s unix.Statfs_t
	if unix.Statfs(directory, &s) != nil {
		return 0, false
	}
	return int64(uint64(s.Bavail) * uint64(s.Bsize)), true
}
