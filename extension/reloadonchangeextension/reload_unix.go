// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package reloadonchangeextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/reloadonchangeextension"

import "syscall"

// hangUp sends this process the signal upon which a Collector reads its
// configuration again.
func hangUp() error { return syscall.Kill(syscall.Getpid(), syscall.SIGHUP) }
