// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package promapi

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// fake answers everything with the same, and remembers what it was asked.
type fake struct {
	result    *store.Result
	err       error
	query     string
	at        time.Time
	times     store.Range
	selection store.Selection
	label     string
	deadline  bool
	release   func()
}

func (f *fake) Instant(ctx context.Context, query string, at time.Time) (*store.Result, error) {
	f.query, f.at = query, at
	_, f.deadline = ctx.Deadline()
	if f.release != nil {
		store.KeepOrRelease(ctx, f.release)
	}
	return f.result, f.err
}

func (f *fake) Range(_ context.Context, query string, r store.Range) (*store.Result, error) {
	f.query, f.times = query, r
	return f.result, f.err
}

func (f *fake) Series(_ context.Context, s store.Selection) ([]model.LabelSet, store.Warnings, error) {
	f.selection = s
	return nil, nil, f.err
}

func (f *fake) LabelNames(_ context.Context, s store.Selection) ([]string, store.Warnings, error) {
	f.selection = s
	return []string{"__name__", "a"}, store.Warnings{"cut"}, f.err
}

func (f *fake) LabelValues(_ context.Context, label string, s store.Selection) ([]string, store.Warnings, error) {
	f.label, f.selection = label, s
	return []string{`<script>"`}, nil, f.err
}

func (f *fake) Metadata(context.Context, string, int) (map[string][]store.Metadata, error) {
	return map[string][]store.Metadata{"m": {{Type: "gauge", Unit: "bytes", Help: "What."}}}, f.err
}

func (f *fake) Health(context.Context) error { return f.err }
func (f *fake) Info() store.Info             { return store.Info{} }

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func (f *fake) ask(method, target, form string) (int, string, http.Header) {
	request := httptest.NewRequest(method, target, strings.NewReader(form))
	if form != "" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer := httptest.NewRecorder()
	f.handler().ServeHTTP(answer, request)
	return answer.Code, answer.Body.String(), answer.Header()
}

func (f *fake) handler() http.Handler {
	return Handler(Options{Store: f, Version: "3.13.2", GoVersion: "go1", Now: func() time.Time { return now }, Observe: func(string, int) {}})
}

// The requests are those that clients make.
func TestWhatClientsAsk(t *testing.T) {
	vector := &store.Result{Value: model.Vector{
		{Metric: model.Metric{"__name__": "m", "a": "ä"}, Timestamp: 1732190400123, Value: 0.5},
		{Metric: model.Metric{}, Timestamp: 1732190400000, Value: model.SampleValue(math.NaN())},
		{Metric: model.Metric{"h": "1"}, Timestamp: 1732190400000, Histogram: &model.SampleHistogram{
			Count: 2, Sum: 3, Buckets: model.HistogramBuckets{{Boundaries: 0, Lower: 1, Upper: 2, Count: 2}},
		}},
	}, Warnings: store.Warnings{"mind"}}
	matrix := &store.Result{Value: model.Matrix{{Metric: model.Metric{"a": "1"}, Values: []model.SamplePair{{Timestamp: 1000, Value: 1}, {Timestamp: 2500, Value: model.SampleValue(math.Inf(1))}}}}}
	empty := &store.Result{Value: model.Vector{}}
	for name, tc := range map[string]struct {
		method, target, form string
		result               *store.Result
		status               int
		want                 string
	}{
		"Grafana's test of a data source": {
			"POST", "/api/v1/query", "query=1%2B1&time=1732190400.000",
			&store.Result{Value: &model.Scalar{Timestamp: 1732190400000, Value: 2}}, 200,
			`{"status":"success","data":{"resultType":"scalar","result":[1732190400,"2"]}}`,
		},
		"Grafana's panel": {
			"POST", "/api/v1/query_range", "end=1732190400&query=avg%28m%29&start=1732186800&step=15", matrix, 200,
			`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"1"},"values":[[1,"1"],[2.5,"+Inf"]]}]}}`,
		},
		"KEDA's Prometheus scaler": {
			"GET", "/api/v1/query?query=avg%28m%29&time=2024-11-21T12:00:00Z", "", vector, 200,
			`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"m","a":"ä"},"value":[1732190400.123,"0.5"]},` +
				`{"metric":{},"value":[1732190400,"NaN"]},` +
				`{"metric":{"h":"1"},"histogram":[1732190400,{"count":"2","sum":"3","buckets":[[0,"1","2","2"]]}]}]},"warnings":["mind"]}`,
		},
		"KEDA's, when nothing is there": {
			"GET", "/api/v1/query?query=none&time=2024-11-21T12:00:00Z", "", empty, 200,
			`{"status":"success","data":{"resultType":"vector","result":[]}}`,
		},
		"a limit": {
			"GET", "/api/v1/query?query=m&limit=1", "", vector, 200,
			`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"m","a":"ä"},"value":[1732190400.123,"0.5"]}]},"warnings":["mind","results truncated due to limit"]}`,
		},
		"label names":    {"POST", "/api/v1/labels", "start=1&end=2&match[]=m", nil, 200, `{"status":"success","data":["__name__","a"],"warnings":["cut"]}`},
		"label values":   {"GET", "/api/v1/label/a/values?start=1&end=2", "", nil, 200, `{"status":"success","data":["\u003cscript\u003e\""]}`},
		"no series":      {"GET", "/api/v1/series?match[]=m", "", nil, 200, `{"status":"success","data":[]}`},
		"metadata":       {"GET", "/api/v1/metadata?limit=10", "", nil, 200, `{"status":"success","data":{"m":[{"type":"gauge","unit":"bytes","help":"What."}]}}`},
		"no rules":       {"GET", "/api/v1/rules", "", nil, 200, `{"status":"success","data":{"groups":[]}}`},
		"no alerts":      {"GET", "/api/v1/alerts", "", nil, 200, `{"status":"success","data":{"alerts":[]}}`},
		"no exemplars":   {"POST", "/api/v1/query_exemplars", "query=m&start=1&end=2", nil, 200, `{"status":"success","data":[]}`},
		"build":          {"GET", "/api/v1/status/buildinfo", "", nil, 200, `{"status":"success","data":{"branch":"","buildDate":"","buildUser":"","goVersion":"go1","revision":"","version":"3.13.2"}}`},
		"admin":          {"POST", "/api/v1/admin/tsdb/delete_series?match[]=m", "", nil, 404, `{"status":"error","errorType":"not_found","error":"this store does not serve this path with this method"}`},
		"writing":        {"POST", "/api/v1/write", "x", nil, 404, `{"status":"error","errorType":"not_found","error":"this store does not serve this path with this method"}`},
		"another method": {"DELETE", "/api/v1/query", "", nil, 404, `{"status":"error","errorType":"not_found","error":"this store does not serve this path with this method"}`},
	} {
		t.Run(name, func(t *testing.T) {
			status, body, header := (&fake{result: tc.result}).ask(tc.method, tc.target, tc.form)
			assert.Equal(t, tc.status, status)
			assert.JSONEq(t, tc.want, body)
			assert.Equal(t, "application/json", header.Get("Content-Type"))
			assert.Equal(t, "nosniff", header.Get("X-Content-Type-Options"))
		})
	}
}

func TestParameters(t *testing.T) {
	f := &fake{result: &store.Result{Value: model.Vector{}}}
	for text, want := range map[string]time.Time{
		"":                               now,
		"1732190400":                     time.Unix(1732190400, 0),
		"1732190400.781":                 time.UnixMilli(1732190400781),
		"2024-11-21T12:00:00+01:00":      time.Unix(1732186800, 0),
		"2024-11-21T12:00:00.5Z":         time.UnixMilli(1732190400500),
		"-1":                             time.Unix(-1, 0),
		"1e300":                          time.Unix(furthest, 0),
		"-Inf":                           time.Unix(-furthest, 0),
		"-292273086-05-16T16:47:06Z":     {}, // Prometheus' own first moment is no RFC 3339
		"9999-12-31T23:59:59Z":           time.Unix(furthest, 0),
		"NaN":                            {},
		"yesterday":                      {},
		"2024-11-21":                     {},
		strings.Repeat("9", 500):         {},
		"\x00":                           {},
		`"><script>alert("x")</script>x`: {},
	} {
		status, body, _ := f.ask("GET", "/api/v1/query?query=m&time="+url.QueryEscape(text), "")
		if want.IsZero() {
			assert.Equal(t, 400, status, text)
			assert.Contains(t, body, "time", text)
			continue
		}
		assert.Equal(t, 200, status, text)
		assert.True(t, want.Equal(f.at), "%s: %v", text, f.at)
	}
	for text, want := range map[string]time.Duration{
		"15": 15 * time.Second, "0.5": time.Second / 2, "1m": time.Minute, "1h30m": 90 * time.Minute,
		"": 0, "0": 0, "-5": 0, "x": 0, "NaN": 0, "Inf": 0, "1e300": 0, "-1m": 0, "0s": 0,
	} {
		status, body, _ := f.ask("GET", "/api/v1/query_range?query=m&start=1&end=2&step="+url.QueryEscape(text), "")
		if want == 0 {
			assert.Equal(t, 400, status, text)
			assert.Contains(t, body, "step", text)
			continue
		}
		assert.Equal(t, 200, status, text)
		assert.Equal(t, want, f.times.Step, text)
	}
	for _, target := range []string{
		"query_range?query=m&end=2&step=1", "query_range?query=m&start=1&step=1", "query?query=m&limit=-1", "query?query=m&limit=x", "query?query=m&limit=1e3",
		"query?query=m&timeout=-1", "query?query=m&timeout=x", "series?match[]=m&start=x", "labels?end=x", "label/a/values?limit=x", "metadata?limit=-1", "query?query=%zz",
	} {
		status, body, _ := f.ask("GET", "/api/v1/"+target, "")
		assert.Equal(t, 400, status, target)
		assert.Contains(t, body, `"errorType":"bad_data"`, target)
	}
	_, _, _ = f.ask("GET", "/api/v1/query?query=m&timeout=5s", "")
	assert.True(t, f.deadline)
	_, _, _ = f.ask("GET", "/api/v1/label/U__k8s_2e_pod/values?match[]=a&match[]=b&start=1&limit=7", "")
	assert.Equal(t, "k8s.pod", f.label)
	assert.Equal(t, store.Selection{Matchers: []string{"a", "b"}, Start: time.Unix(1, 0).UTC(), Limit: 7}, f.selection)
}

// slowReader is a connection on which an answer is being read.
type slowReader struct {
	http.ResponseWriter
	write func()
}

func (r slowReader) Write(text []byte) (int, error) {
	r.write()
	return r.ResponseWriter.Write(text)
}

// A query keeps its turn until its answer is written, unless that is small.
func TestALargeAnswerHoldsItsTurnUntilItIsWritten(t *testing.T) {
	for labels, want := range map[int]bool{1: true, 1 << 20: false} {
		released := false
		f := &fake{
			result:  &store.Result{Value: model.Vector{{Metric: model.Metric{"a": model.LabelValue(strings.Repeat("x", labels))}}}},
			release: func() { released = true },
		}
		writes := 0
		f.handler().ServeHTTP(slowReader{httptest.NewRecorder(), func() {
			writes++
			assert.Equal(t, want, released, labels)
		}}, httptest.NewRequest("GET", "/api/v1/query?query=m", nil))
		assert.Equal(t, 1, writes)
		assert.True(t, released)
	}
}

func TestErrorsHaveTheStatusesOfPrometheus(t *testing.T) {
	for kind, want := range map[store.Kind]struct {
		status int
		typ    string
	}{
		store.BadQuery: {400, "bad_data"}, store.TooMuch: {422, "execution"}, store.Timeout: {503, "timeout"}, store.Busy: {503, "timeout"},
		store.Canceled: {499, "canceled"}, store.Unavailable: {503, "unavailable"}, store.Internal: {500, "internal"},
	} {
		f := &fake{err: store.Errorf(kind, "why\xff")}
		for _, target := range []string{"query?query=m", "query_range?query=m&start=1&end=2&step=1", "series?match[]=m", "labels", "label/a/values", "metadata"} {
			status, body, header := f.ask("GET", "/api/v1/"+target, "")
			assert.Equal(t, want.status, status, target)
			var got struct{ Status, ErrorType, Error string }
			require.NoError(t, json.Unmarshal([]byte(body), &got))
			assert.Equal(t, "error", got.Status)
			assert.Equal(t, want.typ, got.ErrorType)
			assert.Equal(t, "why\uFFFD", got.Error)
			assert.Equal(t, want.status == 503, header.Get("Retry-After") != "", target)
		}
	}
	f := &fake{err: errors.New("plain")}
	status, _, _ := f.ask("GET", "/-/ready", "")
	assert.Equal(t, 503, status)
	f.err = nil
	status, _, _ = f.ask("GET", "/-/ready", "")
	assert.Equal(t, 200, status)
	status, _, _ = f.ask("GET", "/-/healthy", "")
	assert.Equal(t, 200, status)
}

// Whatever is asked, the answer is JSON of the API's form.
func FuzzRequest(f *testing.F) {
	f.Add("query", "query=m&time=1", false)
	f.Add("query_range", "query=m&start=1&end=2&step=1e308", true)
	f.Add("label/%00/values", "limit=1", false)
	f.Add("../-/x", "=&&", true)
	f.Fuzz(func(t *testing.T, path, form string, post bool) {
		request := &http.Request{Method: "GET", URL: &url.URL{Path: "/api/v1/" + path, RawQuery: form}, Header: http.Header{}, Body: http.NoBody, Host: "localhost"}
		if post {
			request = httptest.NewRequest("POST", "/api/v1/query", strings.NewReader(form))
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		answer := httptest.NewRecorder()
		(&fake{result: &store.Result{Value: model.Vector{}}}).handler().ServeHTTP(answer, request)
		if answer.Code/100 == 3 { // the path was cleaned
			return
		}
		if answer.Header().Get("Content-Type") != "application/json" {
			if path := request.URL.Path; !strings.HasPrefix(path, "/api/v1/") || answer.Code == 404 || answer.Code == 405 {
				return
			}
		}
		var got struct{ Status string }
		if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || got.Status != "success" && got.Status != "error" {
			t.Fatalf("%s %q: %s", path, form, answer.Body)
		}
	})
}
