// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

import (
	"errors"
	"os"
)

// Without flock and O_NOFOLLOW the file could not keep its promises: it cannot
// be written here. Verifying works everywhere.

func openFile(path string, flags int) (*os.File, error) { return os.OpenFile(path, flags, 0o600) }

func lock(string) (*os.File, error) {
	return nil, errors.New("an audit file cannot be written on this operating system")
}

func syncFolder(string) error { return nil }

func passing(error) bool { return false }
