// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package sysfs

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Most bytes of a file. The kernel writes a page of 4,096 bytes at most, except for the
// list of bad pages, which has about 30 bytes for each.
const (
	mostOfFile     = 4096
	mostOfBadPages = 1 << 20
)

var errTooLong = fmt.Errorf("%w: it is too long", errMalformed)

// kernel is the real files.
type kernel struct{}

func (kernel) Read(path string, buf []byte, limit int) ([]byte, error) {
	return readFile(path, buf, limit)
}

// readFile reads a file of at most limit bytes into buf, which may grow. It does not use
// package os, which would wait for the file to become readable where the driver answers
// EAGAIN, and sysfs has no such moment.
func readFile(path string, buf []byte, limit int) ([]byte, error) {
	fail := func(op string, err error) ([]byte, error) {
		return buf[:0], &os.PathError{Op: op, Path: path, Err: err}
	}
	fd, err := retried(func() (int, error) { return syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0) })
	if err != nil {
		return fail("open", err)
	}
	defer func() { _ = syscall.Close(fd) }()
	buf = buf[:0]
	for {
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), 2*cap(buf)+mostOfFile)
			copy(grown, buf)
			buf = grown
		}
		n, err := retried(func() (int, error) { return syscall.Read(fd, buf[len(buf):cap(buf)]) })
		if err != nil {
			return fail("read", err)
		}
		if n == 0 {
			return buf, nil
		}
		if buf = buf[:len(buf)+n]; len(buf) > limit {
			return fail("read", errTooLong)
		}
	}
}

// retried calls f again where a signal interrupted it.
func retried(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}
