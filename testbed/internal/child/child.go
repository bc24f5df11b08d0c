// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package child starts programs that must not outlive the one that starts them.
package child

import (
	"os/exec"
	"runtime"
)

// Start starts a program in a process group of its own and returns when it
// runs; ended is called with the result of Wait when it has ended.
func Start(cmd *exec.Cmd, ended func(error)) error {
	cmd.SysProcAttr = attributes()
	started := make(chan error)
	go func() {
		// The program ends with its parent, which is the thread that started
		// it: keep that thread until the program has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended(cmd.Wait())
		}
	}()
	return <-started
}
