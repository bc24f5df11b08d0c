// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pagetexttest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Text renders what a page became.
func (r Result) Text(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "refused %v\n", r.Refusals())
	if r.Why != "" {
		fmt.Fprintf(&b, "lacks: %s\n", r.Why)
	}
	for _, line := range r.Only("", names.ExporterUp.Name) {
		b.WriteString(line + "\n")
	}
	for _, id := range r.IDs(t) {
		var attrs []string
		for k, v := range r.Resource(id) {
			if k != names.HwID && k != names.HwType {
				attrs = append(attrs, fmt.Sprintf("%s=%v", k, v))
			}
		}
		slices.Sort(attrs)
		fmt.Fprintf(&b, "\n%s {%s}\n", id, strings.Join(attrs, ", "))
		for _, line := range r.Points(id) {
			b.WriteString("  " + line + "\n")
		}
	}
	return b.String()
}

// Golden compares what the pages of a folder (*.prom) become, each as the first of its
// exporter, with the texts beside them (*.txt), which it writes instead where update is
// set.
func Golden(t *testing.T, v *devicemap.Vendor, folder string, update bool) {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(folder, "*.prom"))
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			body, err := os.ReadFile(page)
			require.NoError(t, err)
			got := New(t, v, devicemap.Options{}).ScrapePage(body).Text(t)
			file := strings.TrimSuffix(page, ".prom") + ".txt"
			if update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
		})
	}
}
