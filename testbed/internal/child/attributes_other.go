// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package child

import "syscall"

// attributes gives a program a group of its own. Only Linux ends it with its
// parent: elsewhere a parent that is killed leaves its programs behind.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
