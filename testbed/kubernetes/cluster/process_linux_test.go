// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const parentOf = "CLUSTER_TEST_PARENT_OF"

// A test that is killed cannot stop what it has started: the kernel does.
func TestProgramsEndWithTheirParent(t *testing.T) {
	if bin := os.Getenv(parentOf); bin != "" { // the parent, which is killed below
		p, err := startProcess(bin, t.TempDir(), nil, "600")
		require.NoError(t, err)
		fmt.Println(p.pid)
		<-p.done
		return
	}
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	parent := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	parent.Env = append(os.Environ(), parentOf+"="+sleep)
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	var pid int
	_, err = fmt.Fscan(out, &pid)
	require.NoError(t, err)
	defer func() {
		if t.Failed() { // it may be another's pid else
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	require.NoError(t, syscall.Kill(pid, 0))

	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	require.NoError(t, (&Cluster{programs: &programs{}}).Wait(ctx, "the program's end", func(context.Context) error {
		if syscall.Kill(pid, 0) == nil && !zombie(pid) {
			return errors.New("it runs")
		}
		return nil
	}))
}

// zombie is whether a process has ended and was not waited for.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	var id int
	var name string
	var state rune
	if err != nil {
		return true
	}
	_, err = fmt.Sscanf(string(stat), "%d %s %c", &id, &name, &state)
	return err == nil && state == 'Z'
}
