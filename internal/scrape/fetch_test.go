// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"compress/gzip"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

// newTestFetcher is a fetcher as a configuration makes it.
func newTestFetcher(t *testing.T, scrape PrometheusConfig) *fetcher {
	t.Helper()
	cfg := defaultConfig()
	cfg.Endpoints, cfg.Scrape = []string{"http://a"}, scrape
	prom, err := cfg.Prometheus(&acme)
	require.NoError(t, err)
	f, err := newFetcher(prom.ScrapeConfigs[0], "otelcol-gpu/1")
	require.NoError(t, err)
	t.Cleanup(f.close)
	return f
}

// memory is little, and has something in it.
func memory() []byte { return []byte("used") }

func zipped(t *testing.T, w http.ResponseWriter, text string) {
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	_, err := z.Write([]byte(text))
	assert.NoError(t, err)
	assert.NoError(t, z.Close())
}

// TestFetch has one row a way to answer.
func TestFetch(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	elsewhere := serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
		t.Error("an exporter redirected the receiver to another host")
		_, _ = w.Write([]byte("page"))
	})
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   string
		err    fetch.Outcome
	}{
		"plain":        {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("page")) }, "page", ""},
		"nothing":      {func(http.ResponseWriter, *http.Request) {}, "", ""},
		"at the limit": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(long)) }, long, ""},
		"over the limit, as announced": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1048577")
			_, _ = w.Write([]byte(long + "x"))
		}, "", fetch.TooLarge},
		"over the limit, in parts": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			_, _ = w.Write([]byte(long))
		}, "", fetch.TooLarge},
		"gzip":                {func(w http.ResponseWriter, _ *http.Request) { zipped(t, w, "page") }, "page", ""},
		"gzip over the limit": {func(w http.ResponseWriter, _ *http.Request) { zipped(t, w, long+"x") }, "", fetch.TooLarge},
		"no gzip": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("page"))
		}, "", fetch.CutOff},
		"gzip of another kind": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("DCGM_FI_DEV_GPU_UTIL 1\n"))
		}, "", fetch.Parse},
		"gzip cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write([]byte("page"))
			_ = z.Flush()
		}, "", fetch.CutOff},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				http.Redirect(w, r, "/there", http.StatusFound)
				return
			}
			_, _ = w.Write([]byte("page of " + r.URL.Path))
		}, "page of /there", ""},
		"redirect to another host": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/metrics", http.StatusFound)
		}, "", fetch.Redirect},
		"redirects without end": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		}, "", fetch.Redirect},
		"no content":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, "", fetch.Status},
		"unauthorized": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "", fetch.Status},
		"no HTTP": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = conn.Write([]byte("SSH-2.0-x\r\n"))
				_ = conn.Close()
			}
		}, "", fetch.Connect},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serveFunc(t, tt.answer)
			f := newTestFetcher(t, PrometheusConfig{"body_size_limit": "1MB"})
			for range 2 { // over the same connection where it serves again
				body, err := f.fetch(t.Context(), server.URL+"/metrics", memory)
				if tt.err == "" {
					require.NoError(t, err)
					assert.Equal(t, tt.want, string(body))
					continue
				}
				require.Error(t, err)
				assert.Equal(t, tt.err, fetch.Failed(err), err)
				assert.LessOrEqual(t, cap(body), 4<<20, "what is read is bounded")
			}
		})
	}
}

// TestLengthIsAPromise: a page that is announced as endless, without a limit, and
// a large one of which nothing comes, cost what comes of them.
func TestLengthIsAPromise(t *testing.T) {
	t.Parallel()
	for length, limit := range map[string]string{"9223372036854775807": "0", "16000000": "16MB"} {
		server := serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", length)
			_, _ = w.Write([]byte("page"))
			_ = http.NewResponseController(w).Flush()
		})
		body, err := newTestFetcher(t, PrometheusConfig{"body_size_limit": limit}).fetch(t.Context(), server.URL, memory)
		assert.Equal(t, fetch.CutOff, fetch.Failed(err), err)
		assert.Equal(t, "page", string(body))
		assert.LessOrEqual(t, cap(body), 2<<20)
	}
}

// TestRequest: what an exporter is asked.
func TestRequest(t *testing.T) {
	t.Parallel()
	asked := make(chan http.Header, 1)
	server := serveFunc(t, func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header })
	for want, tt := range map[string]struct {
		scrape PrometheusConfig
		header string
	}{
		"text/plain;version=0.0.4;q=0.9,*/*;q=0.1": {nil, "Accept"},
		"gzip":          {nil, "Accept-Encoding"},
		"identity":      {PrometheusConfig{"enable_compression": false}, "Accept-Encoding"},
		"otelcol-gpu/1": {nil, "User-Agent"},
		"2.5":           {PrometheusConfig{"scrape_timeout": "2s500ms"}, "X-Prometheus-Scrape-Timeout-Seconds"},
		"Bearer secret": {PrometheusConfig{"authorization": map[string]any{"credentials": "secret"}}, "Authorization"},
		"value":         {PrometheusConfig{"http_headers": map[string]any{"X-Own": map[string]any{"values": []string{"value"}}}}, "X-Own"},
	} {
		_, err := newTestFetcher(t, tt.scrape).fetch(t.Context(), server.URL, memory)
		require.NoError(t, err)
		assert.Equal(t, want, (<-asked).Get(tt.header), tt.header)
	}
}

// TestProxy: the exporter is asked through a proxy.
func TestProxy(t *testing.T) {
	t.Parallel()
	proxy := serveFunc(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("by proxy: " + r.URL.String())) })
	body, err := newTestFetcher(t, PrometheusConfig{"proxy_url": proxy.URL}).fetch(t.Context(), "http://exporter.invalid/metrics", memory)
	require.NoError(t, err)
	assert.Equal(t, "by proxy: http://exporter.invalid/metrics", string(body))
}

// TestConnections: an exporter is asked over one connection, which an answer that
// is no page does not end.
func TestConnections(t *testing.T) {
	t.Parallel()
	connections := make(chan string, 10)
	server := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		connections <- r.RemoteAddr
		if len(connections)%2 == 0 {
			http.Error(w, "boom", http.StatusInternalServerError)
		}
	})
	f := newTestFetcher(t, nil)
	for range 4 {
		_, _ = f.fetch(t.Context(), server.URL, memory)
	}
	first := <-connections
	for range 3 {
		assert.Equal(t, first, <-connections)
	}
}
