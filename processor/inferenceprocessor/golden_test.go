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

	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/promtest"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/translate"
)

var update = flag.Bool("update", false, "write the points of the pages, to be checked by hand")

// Each page in testdata gives the points in the text file beside it. It is read on its
// own, at a time after everything that it says of times.
func TestGoldens(t *testing.T) {
	pages, err := filepath.Glob("testdata/*/*.prom")
	require.NoError(t, err)
	at := time.Unix(2_000_000_000, 0)
	index := families.NewIndex(families.Engines())
	for _, path := range pages {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(path, "testdata/"), ".prom"), func(t *testing.T) {
			page, err := os.ReadFile(path)
			require.NoError(t, err)
			rm := promtest.Read(t, page, at).ResourceMetrics().At(0)
			tr := translate.New(index, translate.Options{Normalised: true, MaxBounds: 64, MaxSeries: 10_000, MaxModels: 100})
			tr.Page(rm, 1, at)
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
