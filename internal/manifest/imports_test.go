// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whoever imports one component gets no other with it: what two of them share is
// in internal/, and tests of several are in testbed/.
func TestNoComponentImportsAnother(t *testing.T) {
	checked := 0
	for _, class := range []string{"receiver", "processor", "connector", "exporter", "extension", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, class), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				if path == filepath.Join(root, class) {
					return nil // a class of which there is none yet
				}
				return err
			case entry.IsDir() || !strings.HasSuffix(path, ".go"):
				return nil
			}
			checked++
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			own, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			for _, spec := range file.Imports {
				imported, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/")
				if ours && !strings.HasPrefix(imported, "internal/") {
					assert.Equal(t, folderOf(filepath.ToSlash(own)), folderOf(imported), "%s imports %s", own, imported)
				}
			}
			return nil
		})
		require.NoError(t, err)
	}
	assert.Greater(t, checked, 100)
}

// folderOf is the first two elements of a path: the folder of a component.
func folderOf(path string) string {
	parts := strings.SplitN(path, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}
