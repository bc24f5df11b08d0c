// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func cmdline(args ...string) []byte { return []byte(strings.Join(args, "\x00") + "\x00") }

func TestConfigsOf(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want []string
	}{
		"as the chart starts it": {[]string{"/usr/local/bin/otelcol-gpu", "--config", "/etc/a.yaml", "--config", "/etc/b.yaml"}, []string{"/etc/a.yaml", "/etc/b.yaml"}},
		"in one":                 {[]string{"otelcol-gpu", "--config=a.yaml", "--feature-gates", "x", "-config=yaml:a: b=c"}, []string{"a.yaml", "yaml:a: b=c"}},
		"validating":             {[]string{"otelcol-gpu", "validate", "--config", "a.yaml"}, nil},
		"another program":        {[]string{"vi", "--config", "otelcol-gpu"}, nil},
		"cut off":                {[]string{"otelcol-gpu", "--config"}, nil},
		"a kernel's thread":      {nil, nil},
	} {
		assert.Equal(t, tt.want, configsOf(cmdline(tt.args...)), name)
	}
}

func FuzzConfigsOf(f *testing.F) {
	f.Add(cmdline("otelcol-gpu", "--config", "a", "--config=b"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, c := range configsOf(raw) {
			if c == "" || !bytes.Contains(raw, []byte(c)) {
				t.Fatalf("%q is not of the command line", c)
			}
		}
	})
}

func TestFindAndAdoptCollectors(t *testing.T) {
	proc, home := t.TempDir(), t.TempDir()
	process := func(pid string, args ...string) {
		dir := filepath.Join(proc, pid)
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "cmdline"), cmdline(args...), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "environ"), cmdline("DOCTOR_OURS=theirs", "DOCTOR_THEIRS=theirs", "broken"), 0o600))
		require.NoError(t, os.Symlink(home, filepath.Join(dir, "cwd")))
	}
	process("1", "/sbin/init")
	assert.Empty(t, findCollectors(proc), "there is none")
	process("7", "otelcol-gpu", "--config", "a.yaml")
	all := findCollectors(proc)
	require.Len(t, all, 1)
	found := all[0]
	assert.Equal(t, 7, found.PID)
	assert.Equal(t, []string{"a.yaml"}, found.Configs)

	t.Chdir(".") // puts things back
	t.Setenv("DOCTOR_OURS", "ours")
	t.Setenv("DOCTOR_THEIRS", "")
	require.NoError(t, os.Unsetenv("DOCTOR_THEIRS"))
	found.Adopt()
	assert.Equal(t, "ours", os.Getenv("DOCTOR_OURS"), "what is set here stays")
	assert.Equal(t, "theirs", os.Getenv("DOCTOR_THEIRS"))
	dir, err := os.Getwd()
	require.NoError(t, err)
	same, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	want, err := filepath.EvalSymlinks(home)
	require.NoError(t, err)
	assert.Equal(t, want, same)

	process("8", "otelcol-gpu", "--config", "b.yaml")
	assert.Len(t, findCollectors(proc), 2)
	assert.Empty(t, findCollectors(proc+"-none"))
}
