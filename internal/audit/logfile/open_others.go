// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package logfile // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit/logfile"

import (
	"errors"
	"os"
)

// Without flock and O_NOFOLLOW the file could not keep its promises: it cannot
// be written here. Verifying works everywhere.

func Open(path string, flags int) (*os.File, error) { return os.OpenFile(path, flags, 0o600) }

func Lock(string) (*os.File, error) {
	return nil, errors.New("an audit file cannot be written on this operating system")
}

func Passing(error) bool { return false }
