// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package slurm

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
)

func TestSettings(t *testing.T) {
	const scripts = "Prolog=/etc/slurm/prolog.d/*\nEpilog=/etc/slurm/epilog.d/*\nTaskProlog=/etc/slurm/taskprolog.sh\n"
	for name, c := range map[string]struct {
		conf, more string
		contain    bool
		want       probe.Status
		seen       string
	}{
		"all set":             {scripts + "PrologFlags=Alloc", "", false, probe.OK, ""},
		"Contain is Alloc":    {scripts + "prologflags = X11,contain # both", "", true, probe.OK, ""},
		"X11 is Contain":      {scripts + "PrologFlags=X11", "", true, probe.OK, ""},
		"no Contain":          {scripts + "PrologFlags=Alloc", "", true, probe.Fail, "no Contain"},
		"no flags":            {scripts, "", false, probe.Warn, "no Alloc"},
		"no names":            {"Prolog=/a\nEpilog=/b\nPrologFlags=Alloc", "", false, probe.Warn, "TaskProlog is not set"},
		"no Epilog":           {"Prolog=/a\nTaskProlog=/b\nPrologFlags=Alloc", "", false, probe.Fail, "Epilog is not set"},
		"commented":           {"#Prolog=/a\nEpilog=/b\nTaskProlog=/c\nPrologFlags=Alloc", "", false, probe.Fail, "Prolog is not set"},
		"continued":           {scripts + "PrologFlags=NoHold,\\\nAlloc", "", false, probe.OK, ""},
		"in another file":     {"Include\tmore.conf\nPrologFlags=Alloc", scripts, false, probe.OK, ""},
		"a file that is none": {"include none.conf", "", false, probe.Skipped, "none.conf"},
		"no slurm.conf":       {"", "", false, probe.Skipped, "not on this machine"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "slurm.conf")
			if c.conf != "" {
				require.NoError(t, os.WriteFile(path, []byte(c.conf), 0o600))
			}
			if c.more != "" {
				require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "more.conf"), []byte(c.more), 0o600))
			}
			all := settings([]string{path + ".none", path}, c.contain)
			require.Len(t, all, 1)
			assert.Equal(t, c.want, all[0].Status, all[0].Seen)
			assert.Contains(t, all[0].Seen, c.seen)
			assert.Equal(t, c.want == probe.Fail || c.want == probe.Warn, all[0].Remedy != "")
		})
	}
}

func TestFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs")
	assert.Equal(t, probe.Fail, folder(path, formatOwn).Status)
	require.NoError(t, os.Mkdir(path, 0o755))
	if os.Getuid() != 0 {
		assert.Contains(t, folder(path, formatOwn).Seen, fmt.Sprint("by user ", os.Getuid()))
		return
	}
	assert.Contains(t, folder(path, formatOwn).Seen, "root's alone; files: 0")
	require.NoError(t, os.WriteFile(filepath.Join(path, "7.json"), []byte(`{"v":1,"job":7}`), 0o600))
	assert.Equal(t, probe.OK, folder(path, formatOwn).Status)
	require.NoError(t, os.WriteFile(filepath.Join(path, "8.json"), []byte(`{"v":1,"jo`), 0o600))
	bad := folder(path, formatOwn)
	assert.Equal(t, probe.Warn, bad.Status)
	assert.Contains(t, bad.Seen, "8.json")
	assert.Equal(t, probe.OK, folder(path, "ceems").Status)
	for mode, who := range map[os.FileMode]string{0o777: "everyone", 0o775: "its group"} {
		require.NoError(t, os.Chmod(path, mode))
		r := folder(path, formatOwn)
		assert.Equal(t, probe.Fail, r.Status)
		assert.Contains(t, r.Seen, who)
	}
	require.NoError(t, os.Chmod(path, 0o755))
	require.NoError(t, os.Chown(path, 65534, 65534))
	assert.Contains(t, folder(path, formatOwn).Seen, "by user 65534")
	assert.Equal(t, probe.Fail, folder(filepath.Join(path, "7.json"), formatOwn).Status)
}
