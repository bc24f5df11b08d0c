// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scripts/requirements comes before every build: on a machine that lacks something
// it reports what, and what to do.
func TestRequirementsReportsWhatIsMissing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tools map[string]string // name to shell script, in place of this machine's
		hide  string
		tier  string // full where it is empty
		want  string
	}{
		"nothing":                                {},
		"no Go":                                  {hide: "go", want: "Go is missing: install Go 1."},
		"no git":                                 {hide: "git", want: "git is missing: install it"},
		"an old Go":                              {tools: map[string]string{"go": `case $2 in GOVERSION) echo go1.19.3;; *) echo /tmp;; esac`}, want: "Go 1.19.3 is too old: install Go 1."},
		"no compiler":                            {hide: "gcc", want: "a C compiler is missing, which the race detector and the fake library of the tests of nvml need: install one"},
		"no compiler, and no test that needs it": {hide: "gcc", tier: "check"},
		"no Chromium, without the page":          {hide: "chromium", tier: "check"},
		"no Chromium":                            {hide: "chromium", want: "Chromium is missing, which the tests of the console's page need: install it"},
		"no npm":                                 {hide: "npm", want: "node 20.19 or 22.12 and npm are missing"},
		"an old node":                            {tools: map[string]string{"node": "exit 1"}, want: "node 20.19 or 22.12 and npm are missing"},
		"a full disk":                            {tools: map[string]string{"df": `printf 'Filesystem 1024-blocks Used Available\n/dev/x 100000 99000 51200\n'`}, want: "only 50 MiB are free for Go's build cache"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin := t.TempDir()
			// Not as root, which would install what is missing; and with the tools of
			// the console's page, which this machine may lack.
			scripts := map[string]string{"id": "echo 1000", "chromium": "", "node": "", "npm": ""}
			maps.Copy(scripts, tc.tools)
			for _, tool := range []string{"bash", "env", "dirname", "sed", "sort", "head", "awk", "df", "mkdir", "git", "go", "gcc", "id", "chromium", "node", "npm"} {
				script, replaced := scripts[tool]
				switch {
				case tool == tc.hide:
				case replaced:
					require.NoError(t, os.WriteFile(filepath.Join(bin, tool), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
				default:
					path, err := exec.LookPath(tool)
					require.NoError(t, err)
					require.NoError(t, os.Symlink(path, filepath.Join(bin, tool)))
				}
			}
			tier := cmp.Or(tc.tier, "full")
			cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "scripts", "requirements"), tier)
			cmd.Env = []string{"CC=", "PATH=" + bin, "HOME=" + os.Getenv("HOME")}
			out, err := cmd.CombinedOutput()
			if tc.want == "" {
				assert.NoError(t, err, string(out))
				assert.Empty(t, string(out))
				return
			}
			assert.Error(t, err)
			assert.Contains(t, string(out), tc.want)
		})
	}
}
