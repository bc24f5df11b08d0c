// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package gpucostconnector

import (
	"io/fs"
	"os"
	"syscall"
)

// notPrivate are the permissions that a private file does not have. One of another user,
// such as a file that Kubernetes mounts from a Secret with fsGroup, can only be read through
// its group.
func notPrivate(info fs.FileInfo) fs.FileMode {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
		return 0o037
	}
	return 0o077
}
