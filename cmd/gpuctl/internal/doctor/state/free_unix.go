// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package state

import "golang.org/x/sys/unix"

// freeBytes is what an ordinary user can still write there.
func freeBytes(folder string) (uint64, bool) {
	var s unix.Statfs_t
	if unix.Statfs(folder, &s) != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
