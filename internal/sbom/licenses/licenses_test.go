// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package licenses

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// put writes files into a folder, which stands for a module.
func put(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// Texts are found by name, also those of code that a module has copied; code and
// what is not linked in are left out.
func TestTexts(t *testing.T) {
	found, err := texts(put(t, map[string]string{
		"LICENSE": "", "NOTICE.txt": "", "COPYING": "", "License-MIT.md": "", "internal/third_party/x/LICENSE": "", "UNLICENSE": "",
		"license.go": "", "licensed/main.go": "", "testdata/LICENSE": "", ".github/LICENSE": "", "node_modules/a/LICENSE": "", "README.md": "",
	}))
	require.NoError(t, err)
	assert.Equal(t, []string{"COPYING", "LICENSE", "License-MIT.md", "NOTICE.txt", "UNLICENSE", "internal/third_party/x/LICENSE"}, found)
}

func TestIdentify(t *testing.T) {
	apache, err := os.ReadFile("../../../LICENSE")
	require.NoError(t, err)
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string
		err   string
	}{
		{name: "known", files: map[string]string{"LICENSE": string(apache)}, want: []string{"Apache-2.0"}},
		{name: "of copied code alone", files: map[string]string{"third_party/LICENSE": string(apache)}, err: "no license is recognized"},
		{name: "not a license", files: map[string]string{"LICENSE": "ask the author"}, err: "no license is recognized"},
		{name: "none", err: "no license is recognized"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := Module{Path: "example.com/m", Version: "v1.0.0", Dir: put(t, c.files)}
			for name := range c.files {
				m.Files = append(m.Files, name)
			}
			err := m.identify()
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				require.ErrorContains(t, err, "example.com/m v1.0.0")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, m.Licenses)
		})
	}
}
