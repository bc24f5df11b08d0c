// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inferenceprocessor

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prompage"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/promtest"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/series"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/translate"
)

var update = flag.Bool("update", false, "write the points of the pages, to be checked by hand")

// read is what a scrape of a page at a time gives, with the hint that discovery would have
// found.
func read(t *testing.T, path string, at time.Time) pmetric.ResourceMetrics {
	t.Helper()
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	md, err := prompage.Read(page, at)
	require.NoError(t, err)
	rm := md.ResourceMetrics().At(0)
	if hint, ok := strings.CutPrefix(string(page), "# hint: "); ok {
		rm.Resource().Attributes().PutStr(names.InferenceEngineHint, hint[:strings.IndexByte(hint, '\n')])
	}
	return rm
}

// Each page in testdata gives the points in the text file beside it. It is read on its
// own, at a time after all times that it has.
func TestGoldens(t *testing.T) {
	pages, err := filepath.Glob("testdata/*/*.prom")
	require.NoError(t, err)
	at := time.Unix(2_000_000_000, 0)
	index := families.NewIndex(families.Engines())
	for _, path := range pages {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(path, "testdata/"), ".prom"), func(t *testing.T) {
			rm := read(t, path, at)
			tr := translate.New(index, translate.Options{Normalised: true, MaxBounds: 64, Series: series.NewBudget(10_000), MaxModels: 100})
			assert.Empty(t, tr.Page(rm, 1, at).Renamed, "what the versions that are known print")
			got, golden := promtest.Text(rm), strings.TrimSuffix(path, ".prom")+".txt"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
		})
	}
}

// Each family that a row reads is on one of the pages, so that its name and its type are
// not known from the table alone.
func TestGoldensHaveEveryFamily(t *testing.T) {
	pages, err := filepath.Glob("testdata/*/*.prom")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, path := range pages {
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		md, err := prompage.Read(page, time.Unix(2_000_000_000, 0))
		require.NoError(t, err)
		for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			seen[m.Name()] = true
		}
	}
	for _, e := range families.Engines() {
		for i := range e.Rows {
			r := &e.Rows[i]
			for _, name := range append([]string{r.With, r.Beside}, r.From...) {
				whole, ok := strings.CutPrefix(name, "=")
				found := name == "" || ok && seen[whole]
				for _, prefix := range e.Prefixes {
					found = found || seen[prefix+name] || seen[prefix+name+"_total"]
				}
				assert.True(t, found, "%s: no page has %s", e.Name, name)
			}
		}
	}
}
