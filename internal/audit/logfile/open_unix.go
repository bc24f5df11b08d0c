// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package logfile // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit/logfile"

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Open opens one of the log's files, never through a symbolic link, and
// never anything but a regular file (a pipe would hang the writer).
func Open(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) {
		return nil, fmt.Errorf("%s is a symbolic link, which is not followed; name the file itself", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Lock takes the lock that keeps a second writer out, in this process or
// another. It ends with the file, so also with the process, however that ends.
func Lock(path string) (*os.File, error) {
	f, err := Open(path+".lock", os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("%s is being written by another exporter or process; every exporter needs a file of its own", path)
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Passing reports whether an error is one of the medium, which may go away,
// rather than of the configuration.
func Passing(err error) bool {
	for _, e := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ESTALE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
