// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kmsg

import (
	"io/fs"
	"syscall"
)

// kernelLog is the number of /dev/kmsg: 1:11, which the kernel fixes.
const kernelLog = 1<<8 | 11

// otherDevice reports whether a file is a device, and not the kernel log.
func otherDevice(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeDevice != 0 && stat.Rdev != kernelLog
}
