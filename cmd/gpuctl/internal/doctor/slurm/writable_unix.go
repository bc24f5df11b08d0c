// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package slurm

import (
	"fmt"
	"os"
	"syscall"
)

// writable is who may write to a folder beside root, "" for no one. One with the sticky bit lets no
// one remove what is another's.
func writable(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Uid != 0 {
		return fmt.Sprintf("user %d", s.Uid)
	}
	switch mode := info.Mode(); {
	case mode&os.ModeSticky != 0:
		return ""
	case mode&0o002 != 0:
		return "everyone"
	case mode&0o020 != 0:
		return "its group"
	}
	return ""
}
