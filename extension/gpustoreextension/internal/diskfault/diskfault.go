// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package diskfault names the causes of writes that failed.
package diskfault // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/diskfault"

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// Cause is the cause of a failed write.
func Cause(err error) store.Refusal {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return store.DiskFull
	case errors.Is(err, syscall.EROFS), errors.Is(err, os.ErrPermission):
		return store.DiskReadOnly
	default:
		return store.WriteFailed
	}
}

// Explain adds the remedy to an error of the operating system; others it
// returns as they are.
func Explain(directory string, err error) error {
	if errno := syscall.Errno(0); !errors.As(err, &errno) {
		return err
	}
	switch Cause(err) {
	case store.DiskFull:
		return fmt.Errorf("directory %s is on a full disk; make room, or set directory to another: %w", directory, err)
	case store.DiskReadOnly:
		return fmt.Errorf("directory %s cannot be written; make it writable for this user, or set directory to another: %w", directory, err)
	default:
		return fmt.Errorf("the disk of directory %s has failed; look at it and at the kernel's log: %w", directory, err)
	}
}
