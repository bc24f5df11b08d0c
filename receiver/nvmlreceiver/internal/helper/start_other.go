// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package helper

import (
	"os"
	"syscall"
)

func attributes() *syscall.SysProcAttr { return nil }

func kill(p *os.Process) error { return p.Kill() }
