// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporters

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/pagetest"
)

func TestReplayIsByteForByte(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "h100.prom"), filepath.Join(dir, "broken.page.txt")
	pages := map[string]string{
		first:  "# TYPE a gauge\r\na{x=\"\\n\"} 1\n\n\n",
		second: "<html>\x00\xff not metrics at all",
	}
	for file, content := range pages {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	}
	r, err := NewReplay([]string{first, second})
	require.NoError(t, err)
	assert.Equal(t, []string{"/metrics", "/h100/metrics", "/broken.page/metrics"}, r.Paths())
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	for path, file := range map[string]string{"/metrics": first, "/h100/metrics": first, "/broken.page/metrics": second} {
		w := get(path)
		assert.Equal(t, pages[file], w.Body.String())
		assert.Equal(t, contentType, w.Header().Get("Content-Type"))
	}
	assert.Equal(t, http.StatusNotFound, get("/nothing/metrics").Code)
	assert.Equal(t, "/metrics\n/h100/metrics\n/broken.page/metrics\n", get("/").Body.String())
}

func TestReplayOfCapturedPages(t *testing.T) {
	for _, name := range []string{"aicr-h100x8-nopods-b.prom", "nvdocs-a100-mig-1g5gb-dcgm21.prom", "viettel-l40sx2-elided-malformed.prom"} {
		want := pagetest.Captured(t, name)
		file := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(file, want, 0o600))
		r, err := NewReplay([]string{file})
		require.NoError(t, err)
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		assert.Equal(t, want, w.Body.Bytes())
	}
}

func TestReplayRefuses(t *testing.T) {
	_, err := NewReplay(nil)
	require.ErrorContains(t, err, "at least one file")
	_, err = NewReplay([]string{filepath.Join(t.TempDir(), "none.prom")})
	require.ErrorIs(t, err, os.ErrNotExist)
	a, b := filepath.Join(t.TempDir(), "x.prom"), filepath.Join(t.TempDir(), "x.txt")
	odd := filepath.Join(t.TempDir(), "{x}.prom")
	for _, f := range []string{a, b, odd} {
		require.NoError(t, os.WriteFile(f, nil, 0o600))
	}
	_, err = NewReplay([]string{a, b})
	require.ErrorContains(t, err, "rename one")
	_, err = NewReplay([]string{odd})
	require.ErrorContains(t, err, "rename the file")
}
