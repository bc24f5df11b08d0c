// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A log with a panic in it is reported, whichever life it was.
func TestOutcry(t *testing.T) {
	p := &Process{Name: "x", Dir: t.TempDir(), lives: 2}
	require.NoError(t, os.WriteFile(p.Log(1), []byte("well\n"), 0o600))
	require.NoError(t, os.WriteFile(p.Log(2), []byte("well\ngoroutine 7: panic: no\nwell\n"), 0o600))
	line, err := p.Outcry(1)
	require.NoError(t, err)
	assert.Contains(t, line, "x-2.log: goroutine 7: panic: no")
	p.lives = 1
	line, err = p.Outcry(1)
	require.NoError(t, err)
	assert.Empty(t, line)
	p.lives = 3
	_, err = p.Outcry(3)
	assert.Error(t, err, "a log that is not there")
}

// program is a process of a shell script in place of the collector.
func program(t *testing.T, script string) (p *Process, died, ended chan error) {
	t.Helper()
	dir := t.TempDir()
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	binary := filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(binary, []byte("#!"+sh+"\n"+script+"\n"), 0o755))
	died, ended = make(chan error, 10), make(chan error, 10)
	p = &Process{
		Name: "x", Binary: binary, Dir: dir,
		Died: func(_ *Process, err error) { died <- err }, Ended: func(*Process) { ended <- nil },
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p, died, ended
}

// A process that ends by itself is reported, one that is ended is not.
func TestProcess(t *testing.T) {
	p, died, _ := program(t, "exit 3")
	require.NoError(t, p.Start())
	assert.ErrorContains(t, <-died, "exit status 3")
	assert.ErrorContains(t, p.Terminate(), "exit status 3", "and again when it should end")

	p, died, ended := program(t, "while :; do sleep 1; done")
	require.NoError(t, p.Start())
	c, since := p.Running()
	require.NotNil(t, c)
	assert.WithinDuration(t, time.Now(), since, time.Minute)
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	require.NoError(t, p.Kill(), "also one that stands still")
	<-ended
	c, _ = p.Running()
	assert.Nil(t, c)
	assert.NoError(t, p.Kill(), "it is gone already")
	require.NoError(t, p.Start())
	assert.Equal(t, 2, p.lives)
	require.NoError(t, p.Kill())
	assert.Empty(t, died)
}

// A full disk: no file takes anything, until it is over.
func TestLimitFiles(t *testing.T) {
	p, _, _ := program(t, `cd "$(dirname "$0")"; trap "" XFSZ; while :; do rm -f no yes; if echo x 2>/dev/null >file; then echo x >yes; else : >no; fi; sleep 0.05; done`)
	require.NoError(t, p.Start())
	there := func(name string) func() bool {
		return func() bool { _, err := os.Stat(filepath.Join(p.Dir, name)); return err == nil }
	}
	require.Eventually(t, there("yes"), time.Minute, time.Millisecond)
	require.NoError(t, p.LimitFiles(true))
	require.Eventually(t, there("no"), time.Minute, time.Millisecond)
	require.NoError(t, p.LimitFiles(false))
	require.Eventually(t, there("yes"), time.Minute, time.Millisecond)
}
