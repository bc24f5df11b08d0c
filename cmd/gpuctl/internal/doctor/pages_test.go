// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the receiver makes of an answer is what is reported, with its remedy.
func TestPagesAsTheReceiverReadsThem(t *testing.T) {
	const (
		row      = `DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1"} 1`
		other    = `DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-2"} `
		sentinel = "9223372036854775794"
	)
	page := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		scrape  string // of the configuration
		status  Status
		want    string // in what is seen of the exporter, or in the remedy
	}{
		"CRLF":           {page(row + "\r\n"), "", OK, "1 GPU"},
		"leading blanks": {page(" \t" + row + "\n"), "", OK, "1 GPU"},
		"an exemplar":    {page(row + ` # {trace_id="a"} 1 1.5` + "\n"), "", OK, "1 GPU"},
		"empty":          {page(""), "", Fail, "empty: the exporter prints nothing"},
		"doubled":        {page(row + "\n" + row + "\n"), "", Warn, "samples of a series that the page has already: 1"},
		"no samples":     {page(row + "\n" + other + "Tesla\n"), "", Warn, "type it label"},
		"a long label":   {page(row + "\n" + `DCGM_FI_DEV_X{UUID="GPU-1",x="` + strings.Repeat("x", 5000) + `"} 1` + "\n"), "", Warn, "max_label_bytes is 4096"},
		"longer allowed": {page(row + "\n" + `DCGM_FI_DEV_X{UUID="GPU-1",x="` + strings.Repeat("x", 5000) + `"} 1` + "\n"), "max_label_bytes: 9000", OK, "2 rows"},
		"two units":      {page(row + "\n" + `DCGM_FI_DEV_GPU_UTIL_RATIO{gpu="0",UUID="GPU-1"} 37.000000` + "\n"), "", Warn, "contradicts itself, left out: 1; DCGM_FI_DEV_GPU_UTIL_RATIO: "},
		"a silent GPU":   {page(row + "\n" + other + sentinel + "\n"), "", Warn, "GPUs without any value: 1 of 2"},
		"one renamed": {
			page(row + "\n" + `DCGM_FI_DEV_POWER_USAGE_MILLIWATTS{UUID="GPU-1"} 9` + "\n"), "", Warn,
			"fields of the page that are not known and may have quantities that it lacks: DCGM_FI_DEV_POWER_USAGE_MILLIWATTS (hw.power? It is like DCGM_FI_DEV_POWER_USAGE)\nthis version of dcgm-exporter may be newer",
		},
		"all renamed": {
			page(strings.ReplaceAll(row, "_UTIL", "_UTIL_V2") + "\n" + `DCGM_FI_DEV_X{UUID="GPU-1"} 9` + "\n"), "", Fail,
			"the exporter's fields are not known: none of its page has the utilization, memory or power of a device; unknown: DCGM_FI_DEV_GPU_UTIL_V2 (hw.gpu.utilization (general)? It is like DCGM_FI_DEV_GPU_UTIL); DCGM_FI_DEV_X\nthis version",
		},
		"sentinels":    {page(other + sentinel + "\n"), "", Fail, "no_value: the host engine"},
		"not DCGM":     {page("go_goroutines 1\n"), "", Fail, "not_dcgm: this is the page of another program"},
		"too large":    {page(row + "\n# " + strings.Repeat("x", 1024) + "\n"), "scrape: {body_size_limit: 1KB}", Fail, "a page of 1"},
		"relabelled":   {page(row + "\n"), "scrape: {metric_relabel_configs: [{action: drop, source_labels: [gpu], regex: .*}]}", Fail, "all dropped by metric_relabel_configs"},
		"bad rules":    {page(row), "scrape: {metric_relabel_configs: [{action: drip}]}", Fail, "scrape::metric_relabel_configs"},
		"unauthorized": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, "", Fail, "scrape::basic_auth"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://b.example/x", http.StatusFound)
		}, "", Fail, "redirect: write the address"},
		"one within": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				http.Redirect(w, r, "/there", http.StatusFound)
				return
			}
			_, _ = io.WriteString(w, row+"\n")
		}, "", OK, "1 GPU"},
		"none followed": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/there", http.StatusFound) }, "scrape: {follow_redirects: false}", Fail, "it answers 302"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(tt.handler)
			t.Cleanup(s.Close)
			// Without a path, which is /metrics then.
			in := of(t, fmt.Sprintf(`{receivers: {dcgm: {endpoints: ["%s"], %s}}, service: {pipelines: {metrics: {receivers: [dcgm]}}}}`, s.URL, tt.scrape))
			host := strings.TrimPrefix(s.URL, "http://")
			worst, all := OK, ""
			for _, r := range in.check(t, "exporter") {
				if r.Subject == host || r.Subject == "scrape" {
					all += r.Seen + "\n" + r.Remedy + "\n"
					if r.Status == Fail || worst == OK {
						worst = r.Status
					}
				}
			}
			assert.Equal(t, tt.status, worst, all)
			assert.Contains(t, all, tt.want)
		})
	}
}

func TestWrongSchemes(t *testing.T) {
	plain, secure := httptest.NewServer(nil), httptest.NewTLSServer(nil)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	for address, want := range map[string]string{
		strings.Replace(plain.URL, "http:", "https:", 1):  "tls: the exporter speaks no TLS",
		strings.Replace(secure.URL, "https:", "http:", 1): "may speak TLS: use https://",
		secure.URL: "tls: check scrape::tls_config",
	} {
		results, err := Run(t.Context(), Options{Exporters: []string{address}, Only: []string{"exporter"}, Timeout: 5 * time.Second, folder: t.TempDir()})
		require.NoError(t, err)
		assert.Equal(t, Fail, results[1].Status)
		assert.Contains(t, results[1].Remedy, want)
	}
}

func TestProgress(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	last, calls := "", 0
	_, err := Run(t.Context(), Options{Exporters: []string{s.URL, s.URL}, Only: []string{"exporter"}, Timeout: 5 * time.Second, Progress: func(done, all int) {
		last, calls = fmt.Sprint(done, "/", all), calls+1
	}})
	require.NoError(t, err)
	assert.Equal(t, "3/3", strings.ReplaceAll(last, " ", ""), "two exporters and the check itself")
	assert.Equal(t, 5, calls)
}
