// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package nvmlhelper finds the program that calls the driver's library, and why it was not
// started.
package nvmlhelper

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// Name is that of the program.
const Name = "otelcol-gpu-nvml"

// Find is the path of the helper: the configured one, else beside this program, else in PATH.
func Find(configured string) (string, error) {
	if configured != "" {
		_, err := os.Stat(configured)
		return configured, err
	}
	if own, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(own), Name)
		if info, err := os.Stat(beside); err == nil && !info.IsDir() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(Name)
	if err != nil {
		return "", fmt.Errorf("%s is neither beside this program nor in PATH", Name)
	}
	return path, nil
}

// StartCause is why a program that Find has found was not started.
func StartCause(path string, err error) nvmlproto.Cause {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, missing := os.Stat(path); missing == nil {
			return nvmlproto.CauseLoader // it is the interpreter that does not exist
		}
		return nvmlproto.CauseHelperMissing
	case errors.Is(err, syscall.ENOEXEC):
		return nvmlproto.CauseMachine
	case errors.Is(err, fs.ErrPermission):
		return nvmlproto.CauseNotExecutable
	}
	return nvmlproto.CauseHelperStart
}

// IsLoader reports whether a program's last line is its loader's.
func IsLoader(line string) bool {
	return strings.Contains(line, "error while loading shared libraries") || strings.Contains(line, "GLIBC_") || strings.Contains(line, "Error loading shared library")
}

// InContainer reports whether this process is in a container, as far as that can be known:
// remedies differ.
func InContainer() bool {
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" || os.Getenv("container") != "" {
		return true
	}
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(mark); err == nil {
			return true
		}
	}
	return false
}
