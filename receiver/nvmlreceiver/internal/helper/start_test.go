// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlhelper"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// TestStart: programs that cannot be started, by cause.
func TestStart(t *testing.T) {
	folder := t.TempDir()
	program := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(content), mode))
		return path
	}
	for name, c := range map[string]struct {
		path string
		want nvmlproto.Cause
	}{
		"none":           {filepath.Join(folder, "none"), nvmlproto.CauseHelperMissing},
		"no interpreter": {program("alpine", "#!/lib64/none\n", 0o755), nvmlproto.CauseLoader},
		"not executable": {program("file", "", 0o600), nvmlproto.CauseNotExecutable},
		"no program":     {program("arm", "\x7fELF", 0o755), nvmlproto.CauseMachine},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := Find(c.path)
			if err == nil {
				_, err = Start(path, "")
			}
			known := &Error{}
			require.ErrorAs(t, err, &known)
			assert.Equal(t, c.want, known.Cause)
			assert.NotEmpty(t, known.Cause.Remedy(false))
		})
	}
	t.Setenv("PATH", folder)
	_, err := Find("")
	require.Error(t, err)
	want := program(nvmlhelper.Name, "", 0o755)
	got, err := Find("")
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// A script in place of the helper leaves nothing behind: what it has started ends with the
// standard input, or is killed with it.
func TestScriptLeavesNothingBehind(t *testing.T) {
	for name, end := range map[string]func(*Process){
		"asked":  func(p *Process) { _ = p.child.Terminate() },
		"killed": func(p *Process) { _ = p.child.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "script")
			require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\nexec 3<&0\ncat <&3 &\necho started >&2\nwait\n"), 0o755))
			child, err := Start(path, "")
			require.NoError(t, err)
			started := make(chan struct{})
			p := run(child, Options{Line: func(string) { close(started) }})
			<-started
			end(p)
			select {
			case <-p.done: // its output is closed: cat has ended
			case <-time.After(10 * time.Second):
				t.Fatal("what the script started runs on")
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	assert.Equal(t, []string{"LD_LIBRARY_PATH=/x", "NVIDIA_VISIBLE_DEVICES=all", "GOMAXPROCS=2"},
		environment([]string{"LD_LIBRARY_PATH=/x", "TOKEN=secret", "NVIDIA_VISIBLE_DEVICES=all", "HOME=/root"}))
}
