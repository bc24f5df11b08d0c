// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxVendorLines are the lines of code of a vendor's receiver, beside its tables.
const maxVendorLines = 600

// TestVendorsAreThin: a further vendor costs data and a few functions. What would make a
// receiver thick is shared, in internal/.
func TestVendorsAreThin(t *testing.T) {
	for _, receiver := range []string{"amdgpureceiver", "dcgmreceiver", "gaudireceiver", "intelgpureceiver"} {
		lines := 0
		folder := filepath.Join("..", "..", "receiver", receiver)
		require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !ofVendor(path, entry.IsDir()) {
				if err == nil && entry.IsDir() && path != folder {
					return filepath.SkipDir
				}
				return err
			}
			if entry.IsDir() {
				return nil
			}
			text, err := os.ReadFile(path)
			lines += codeLines(text)
			return err
		}))
		assert.Positive(t, lines, receiver)
		assert.LessOrEqual(t, lines, maxVendorLines, "%s: lines of code beside tables and tests; move what vendors share to internal/devicemap or internal/scrape", receiver)
	}
}

// ofVendor reports whether a file or folder of a receiver counts: tables, names and
// remedies are data; AMD's second source and what reads a page for doctor are beside it.
func ofVendor(path string, folder bool) bool {
	name := filepath.Base(path)
	if folder {
		return !slices.Contains([]string{"metadata", "metadatatest", "fieldsdoc", "testdata", "exporterpage", "sysfs"}, name)
	}
	data := []string{"fields.go", "series.go", "derived.go", "models.go", "exporter.go", "sysfs.go"}
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !slices.Contains(data, name)
}

// codeLines counts lines behind the imports that are neither blank nor a comment.
func codeLines(text []byte) (n int) {
	if _, after, found := bytes.Cut(text, []byte("\n)\n")); found && bytes.Contains(text, []byte("\nimport (\n")) {
		text = after
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if line := strings.TrimSpace(lines.Text()); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}
