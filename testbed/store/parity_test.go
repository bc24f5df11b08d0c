// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store/storetest"
)

// fleet is half an hour of some devices until now.
func fleet(now time.Time) []store.Series {
	var out []store.Series
	for pod := range 3 {
		for gpu := range 2 {
			s := store.Series{Labels: labels.FromStrings("__name__", "hw_gpu_utilization_ratio", "service_name", "llama", "k8s_pod_name", fmt.Sprint("llama-", pod), "hw_id", fmt.Sprintf("GPU-%d%d", pod, gpu))}
			for at := now.Add(-30 * time.Minute); !at.After(now); at = at.Add(15 * time.Second) {
				s.Samples = append(s.Samples, store.Sample{Time: at.UnixMilli(), Value: float64(at.Unix()%100) / 100 * float64(gpu)})
			}
			out = append(out, s)
		}
	}
	for name, text := range storetest.Hostile {
		out = append(out, store.Series{
			Labels:  labels.FromStrings("__name__", "hostile", "kind", name, "text", text),
			Samples: []store.Sample{{Time: now.UnixMilli(), Value: 1}},
		})
	}
	return out
}

// both are the embedded store's API and a Prometheus server with the same data.
func both(t *testing.T) (ours, theirs string, now time.Time) {
	t.Helper()
	p := startPrometheus(t)
	s, ours := serving(t)
	now = time.Now().Truncate(15 * time.Second)
	data := fleet(now)
	p.write(t, data...)
	a, err := s.Append(t.Context(), data)
	require.NoError(t, err)
	require.Empty(t, a.Refused)
	return ours, p.url, now
}

// Requests as clients make them have the same answers from both: status, type of
// error, and every byte of data.
func TestTheAPIAnswersAsPrometheusDoes(t *testing.T) {
	ours, theirs, now := both(t)
	const form = "application/x-www-form-urlencoded"
	unix := func(d time.Duration) string { return fmt.Sprintf("%.3f", float64(now.Add(d).UnixMilli())/1000) }
	q := func(pairs ...string) string {
		v := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			v.Add(pairs[i], pairs[i+1])
		}
		return v.Encode()
	}
	const avg = `avg by (service_name) (hw_gpu_utilization_ratio)`
	for name, tc := range map[string]struct{ method, path, form string }{
		"KEDA":                     {"GET", "query", q("query", `avg(hw_gpu_utilization_ratio{service_name="llama"})`, "time", now.Add(-time.Second).UTC().Format(time.RFC3339))},
		"KEDA, nothing":            {"GET", "query", q("query", `avg(no_such)`, "time", now.UTC().Format(time.RFC3339))},
		"Grafana, test":            {"POST", "query", q("query", "1+1", "time", unix(0))},
		"Grafana, panel":           {"POST", "query_range", q("query", avg, "start", unix(-30*time.Minute), "end", unix(0), "step", "15")},
		"Grafana, step of a panel": {"POST", "query_range", q("query", `rate(hw_gpu_utilization_ratio[1m0s])`, "start", unix(-10*time.Minute), "end", unix(0), "step", "60s")},
		"Grafana, instant table":   {"POST", "query", q("query", "hw_gpu_utilization_ratio", "time", unix(0))},
		"Grafana, label names":     {"POST", "labels", q("start", unix(-time.Hour), "end", unix(0))},
		"Grafana, labels of one":   {"GET", "labels", q("start", unix(-time.Hour), "end", unix(0), "match[]", `hostile`)},
		"Grafana, metric names":    {"GET", "label/__name__/values", q("start", unix(-time.Hour), "end", unix(0))},
		"Grafana, label values":    {"GET", "label/k8s_pod_name/values", q("start", unix(-time.Hour), "end", unix(0), "match[]", `hw_gpu_utilization_ratio{service_name="llama"}`)},
		"Grafana, series":          {"POST", "series", q("start", unix(-time.Hour), "end", unix(0), "match[]", `hw_gpu_utilization_ratio{hw_id="GPU-01"}`)},
		"Grafana, exemplars":       {"GET", "query_exemplars", q("query", avg, "start", unix(-time.Hour), "end", unix(0))},
		"Grafana, rules":           {"GET", "rules", ""},
		"hostile values":           {"GET", "label/text/values", ""},
		"hostile series":           {"POST", "query", q("query", `hostile`, "time", unix(0))},
		"hostile matcher":          {"POST", "query", q("query", `hostile{text=~".*script.*"}`, "time", unix(0))},
		"scalar":                   {"GET", "query", q("query", "scalar(vector(1.5))", "time", unix(0))},
		"string":                   {"GET", "query", q("query", `"a\"b"`, "time", unix(0))},
		"matrix":                   {"GET", "query", q("query", `hw_gpu_utilization_ratio{hw_id="GPU-01"}[1m]`, "time", unix(0))},
		"infinities":               {"GET", "query", q("query", `vector(1/0) or on(a) label_replace(vector(0/0), "a", "b", "", "")`, "time", unix(0))},
		"a limit":                  {"GET", "query", q("query", "hostile", "limit", "2", "time", unix(0))},
		"sub-second":               {"GET", "query", q("query", "time()", "time", "1732190400.781")},
		"no query":                 {"GET", "query", ""},
		"parse error":              {"POST", "query", q("query", "sum(")},
		"bad time":                 {"GET", "query", q("query", "1", "time", "yesterday")},
		"bad step":                 {"GET", "query_range", q("query", "1", "start", "1", "end", "2", "step", "0")},
		"no start":                 {"GET", "query_range", q("query", "1", "end", "2", "step", "1")},
		"end before start":         {"GET", "query_range", q("query", "1", "start", "2", "end", "1", "step", "1")},
		"too many points":          {"GET", "query_range", q("query", "1", "start", "0", "end", "100000", "step", "1")},
		"too many samples":         {"GET", "query", q("query", "count_over_time(vector(1)[1d:1s])")},
		"many to many":             {"GET", "query", q("query", "hostile * on() hostile", "time", unix(0))},
		"no selector":              {"GET", "series", ""},
		"selects everything":       {"GET", "series", q("match[]", `{a=~".*"}`)},
		"bad selector":             {"GET", "labels", q("match[]", `{`)},
		"bad limit":                {"GET", "labels", q("limit", "-1")},
		"bad label":                {"GET", "label/%FF/values", ""},
		"bad duration":             {"GET", "query", q("query", "1", "timeout", "x")},
	} {
		t.Run(name, func(t *testing.T) {
			get := func(base string) (int, map[string]any) {
				target, body, header := base+"/api/v1/"+tc.path, "", map[string]string(nil)
				if tc.method == http.MethodPost {
					body, header = tc.form, map[string]string{"Content-Type": form}
				} else if tc.form != "" {
					target += "?" + tc.form
				}
				status, text, err := ask(t.Context(), tc.method, target, []byte(body), header)
				require.NoError(t, err)
				var got map[string]any
				require.NoError(t, json.Unmarshal(text, &got), "%s", text)
				return status, got
			}
			status, got := get(ours)
			wantStatus, want := get(theirs)
			assert.Equal(t, wantStatus, status, "%v\n%v", want, got)
			assert.Equal(t, want["status"], got["status"])
			assert.Equal(t, want["errorType"], got["errorType"])
			assert.Equal(t, want["data"], got["data"])
			assert.Equal(t, want["warnings"], got["warnings"])
			assert.Equal(t, want["infos"], got["infos"])
		})
	}
}

// promtool reports the same of both.
func TestPromtool(t *testing.T) {
	tool := program(t, "promtool")
	ours, theirs, now := both(t)
	from, to := fmt.Sprint(now.Add(-10*time.Minute).Unix()), fmt.Sprint(now.Unix())
	for name, args := range map[string]func(url string) []string{
		"instant": func(url string) []string {
			return []string{"query", "instant", "--time", to, url, `avg by (service_name) (hw_gpu_utilization_ratio)`}
		},
		"instant, JSON": func(url string) []string {
			return []string{"query", "instant", "--time", to, "-o", "json", url, `hw_gpu_utilization_ratio`}
		},
		"range": func(url string) []string {
			return []string{"query", "range", "--start", from, "--end", to, "--step", "1m", url, `hw_gpu_utilization_ratio{hw_id="GPU-01"}`}
		},
		"series": func(url string) []string {
			return []string{"query", "series", "--match", `hw_gpu_utilization_ratio{hw_id="GPU-01"}`, "--start", from, "--end", to, url}
		},
		"labels": func(url string) []string {
			return []string{"query", "labels", "--start", from, "--end", to, url, "k8s_pod_name"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(url string) string {
				for _, what := range []string{"healthy", "ready"} {
					out, err := exec.CommandContext(t.Context(), tool, "check", what, "--url", ours).CombinedOutput()
					assert.NoError(t, err, "%s", out)
				}
				out, err := exec.CommandContext(t.Context(), tool, args(url)...).CombinedOutput()
				require.NoError(t, err, "%s", out)
				return strings.ReplaceAll(string(out), url, "URL")
			}
			want := run(theirs)
			assert.NotEmpty(t, want)
			assert.Equal(t, want, run(ours))
		})
	}
	for _, what := range []string{"healthy", "ready"} {
		out, err := exec.CommandContext(t.Context(), tool, "check", what, "--url", ours).CombinedOutput()
		assert.NoError(t, err, "%s", out)
	}
	out, err := exec.CommandContext(t.Context(), tool, "query", "instant", ours, "sum(").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "parse error")
}
