// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package child

import "syscall"

// attributes gives a program a group of its own, so that Ctrl-C in a terminal
// leaves the order of stopping to who started it, and ends it with its parent,
// whatever ends that.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
