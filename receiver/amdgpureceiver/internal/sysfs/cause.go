// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package sysfs

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpumetrics"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
)

// NoData is a file of a reading that this board or driver does not have.
const NoData gpusysfs.Cause = "no_data"

// Causes are why a file gives no reading, with what to do about each.
var Causes = map[gpusysfs.Cause]string{
	gpusysfs.Denied:    "run the collector as a user, and in a container with rights, that may read the file",
	gpusysfs.Failed:    "the board does not answer the driver: look at dmesg for amdgpu",
	gpusysfs.Busy:      "nothing while the board is reset; if it lasts, look at dmesg for amdgpu",
	NoData:             "nothing: this board, or this version of its driver, has no such reading",
	gpusysfs.Blocked:   "the driver does not return from a read: look at dmesg for amdgpu. The board is read again once it does",
	gpusysfs.Malformed: "report the file, the board and the version of the driver",
}

// causeOf is the cause of an error; "" for a file that is not there.
func causeOf(err error) gpusysfs.Cause {
	is := func(targets ...error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
	switch {
	case is(fs.ErrNotExist, syscall.ENODEV):
		return ""
	case is(fs.ErrPermission):
		return gpusysfs.Denied
	case is(syscall.EBUSY, syscall.EAGAIN, errInaccessible):
		return gpusysfs.Busy
	case is(syscall.ENODATA, syscall.EOPNOTSUPP, syscall.EINVAL, syscall.ENXIO):
		return NoData
	case is(errMalformed, gpumetrics.ErrFormat, gpumetrics.ErrSize, gpumetrics.ErrTruncated):
		return gpusysfs.Malformed
	default:
		return gpusysfs.Failed
	}
}
