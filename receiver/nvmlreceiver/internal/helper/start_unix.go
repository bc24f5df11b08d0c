// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package helper

import (
	"os"
	"syscall"
)

// attributes give the helper a process group of its own: Ctrl-C in a terminal is for the
// program that started it, which ends the helper itself.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// kill ends the helper with all that it has started, such as that of a script.
func kill(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
