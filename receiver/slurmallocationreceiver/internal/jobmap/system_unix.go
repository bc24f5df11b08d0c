// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package jobmap

import (
	"io/fs"
	"syscall"
)

// openFlags: what took a file's place is no link, and is not waited for.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// statOf is the owner of a file and its number; false where they are not known.
func statOf(info fs.FileInfo) (uid uint32, inode uint64, ok bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return s.Uid, uint64(s.Ino), true //nolint:unconvert // it is shorter on some systems
}
