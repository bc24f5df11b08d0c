// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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

// engine asks a server with this handler.
func engine(t *testing.T, handler http.HandlerFunc) *Engine {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return engineAt(t, server.URL)
}

func engineAt(t *testing.T, url string) *Engine {
	t.Helper()
	e, err := New(Options{URL: url, Client: &http.Client{Transport: &http.Transport{}}, QueryTimeout: 2 * time.Second, ConcurrentQuery: 2, MaxResponse: 10_000})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// reports answers with a status, a type and a body.
func reports(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const (
	jsonType = "application/json"
	success  = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1"]}]}}`
)

// Whatever a server responds that is not Prometheus, or is failing, the caller gets
// what is wrong and what to do, and nothing is taken for an empty answer.
func TestServersThatDoNotAnswerAsTheyShould(t *testing.T) {
	huge := `{"status":"success","data":{"resultType":"vector","result":[` + strings.Repeat(" ", 20_000) + `]}}`
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		kind    store.Kind
		reports string
	}{
		"HTML":                   {reports(200, "text/html", "<html>Log in</html>"), store.Unavailable, "login page"},
		"HTML that says JSON":    {reports(200, jsonType, "<html>Log in</html>"), store.Unavailable, "not as Prometheus does"},
		"empty":                  {reports(200, jsonType, ""), store.Unavailable, "not as Prometheus does"},
		"other JSON":             {reports(200, jsonType, `{"cluster_name":"elasticsearch"}`), store.Unavailable, "not as Prometheus does"},
		"an empty object":        {reports(200, jsonType, `{}`), store.Unavailable, "not as Prometheus does"},
		"a list":                 {reports(200, jsonType, `[]`), store.Unavailable, "not as Prometheus does"},
		"half an answer":         {reports(200, jsonType, success[:40]), store.Unavailable, "not as Prometheus does"},
		"no data":                {reports(200, jsonType, `{"status":"success"}`), store.Unavailable, "not as Prometheus does"},
		"data of no type":        {reports(200, jsonType, `{"status":"success","data":{"resultType":"wat","result":[]}}`), store.Unavailable, "not as Prometheus does"},
		"null":                   {reports(200, jsonType, `{"status":"success","data":null}`), store.Unavailable, "not as Prometheus does"},
		"too large":              {reports(200, jsonType, huge), store.TooMuch, "max_response_bytes"},
		"too large, unsaid":      {chunked(huge), store.TooMuch, "max_response_bytes"},
		"wants a login":          {reports(401, jsonType, `{"status":"error","error":"no org id"}`), store.Unavailable, "prometheus::auth"},
		"forbids":                {reports(403, "text/plain", "no"), store.Unavailable, "prometheus::auth"},
		"knows no such path":     {reports(404, "text/plain", "404 page not found"), store.Unavailable, "/prometheus"},
		"redirects":              {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, store.Unavailable, "redirect"},
		"is asked too often":     {reports(429, jsonType, `{}`), store.Busy, "too often"},
		"a broken gateway":       {reports(502, "text/html", "<h1>Bad Gateway</h1>"), store.Unavailable, "502"},
		"unavailable":            {reports(503, jsonType, `{"status":"error","errorType":"unavailable","error":"starting up"}`), store.Unavailable, "starting up"},
		"timeout of its own":     {reports(503, jsonType, `{"status":"error","errorType":"timeout","error":"query timed out"}`), store.Timeout, "timed out"},
		"an error of its own":    {reports(500, jsonType, `{"status":"error","errorType":"internal","error":"oh\u001b[31m no"}`), store.Unavailable, "oh[31m no"},
		"a bad query":            {reports(400, jsonType, `{"status":"error","errorType":"bad_data","error":"parse error"}`), store.BadQuery, "parse error"},
		"a query of too much":    {reports(422, jsonType, `{"status":"error","errorType":"execution","error":"too many samples"}`), store.TooMuch, "too many samples"},
		"success with a bad one": {reports(400, jsonType, success), store.Unavailable, "not as Prometheus does"},
		"an undefined status":    {reports(299, "text/plain", "?"), store.Unavailable, "not as Prometheus does"},
	} {
		t.Run(name, func(t *testing.T) {
			e := engine(t, tc.handler)
			for what, ask := range asks(e) {
				err := ask(t.Context())
				if assert.Error(t, err, what) {
					assert.Equal(t, tc.kind, store.KindOf(err), "%s: %v", what, err)
					if what == "instant" {
						assert.ErrorContains(t, err, tc.reports)
					}
					assert.NotContains(t, err.Error(), "\x1b")
				}
			}
			assert.Error(t, e.Health(t.Context()))
		})
	}
}

func chunked(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		for rest := body; len(rest) > 0; {
			n := min(1000, len(rest))
			_, _ = io.WriteString(w, rest[:n])
			w.(http.Flusher).Flush()
			rest = rest[n:]
		}
	}
}

// asks are the questions that every server is asked.
func asks(e *Engine) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"instant": func(ctx context.Context) error {
			_, err := e.Instant(ctx, "secret_query", time.Unix(1, 0))
			return err
		},
		"range": func(ctx context.Context) error {
			_, err := e.Range(ctx, "up", store.Range{Start: time.Unix(1, 0), End: time.Unix(2, 0), Step: time.Second})
			return err
		},
		"series": func(ctx context.Context) error {
			_, _, err := e.Series(ctx, store.Selection{Matchers: []string{"up"}})
			return err
		},
	}
}

func TestServersThatAreNotThere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := "http://" + listener.Addr().String()
	require.NoError(t, listener.Close())
	err = asks(engineAt(t, closed))["instant"](t.Context())
	assert.Equal(t, store.Unavailable, store.KindOf(err))
	assert.ErrorContains(t, err, "cannot be reached")
	assert.NotContains(t, err.Error(), "secret_query", "the question is not in the error")

	err = asks(engineAt(t, "http://does-not-exist.invalid"))["range"](t.Context())
	assert.Equal(t, store.Unavailable, store.KindOf(err))

	// Speaks something else than HTTP.
	listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "220 smtp ready\r\n")
			_ = c.Close()
		}
	}()
	err = asks(engineAt(t, "http://"+listener.Addr().String()))["instant"](t.Context())
	assert.Equal(t, store.Unavailable, store.KindOf(err))
}

func TestSlowServersAreNotWaitedFor(t *testing.T) {
	release := make(chan struct{})
	e := engine(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	e.options.QueryTimeout = 50 * time.Millisecond
	err := asks(e)["instant"](t.Context())
	assert.Equal(t, store.Timeout, store.KindOf(err), "%v", err)
	assert.ErrorContains(t, err, "query::timeout")

	// Who asked went away.
	e.options.QueryTimeout = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	assert.Equal(t, store.Canceled, store.KindOf(asks(e)["range"](ctx)))

	// Others are asking.
	e.options.QueryTimeout = 10 * time.Millisecond
	e.turns <- struct{}{}
	e.turns <- struct{}{}
	assert.Equal(t, store.Busy, store.KindOf(asks(e)["series"](t.Context())))
	<-e.turns
	<-e.turns
}

// Servers that know no POST are asked again with GET, and names of any
// characters arrive.
func TestWhatIsAsked(t *testing.T) {
	var seen []string
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		_ = r.ParseForm()
		seen = append(seen, r.URL.Path+" "+r.Form.Get("query"))
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		if strings.HasPrefix(r.URL.Path, "/api/v1/label/") {
			_, _ = io.WriteString(w, `{"status":"success","data":["a\u0000b","ä"],"warnings":["cut"]}`)
			return
		}
		_, _ = io.WriteString(w, success)
	})
	r, err := e.Instant(t.Context(), `up{a="ä&=+"}`, time.Unix(1, 0))
	require.NoError(t, err)
	assert.Equal(t, model.Vector{{Metric: model.Metric{}, Value: 1, Timestamp: 1000}}, r.Value)
	values, warnings, err := e.LabelValues(t.Context(), "k8s.pod/name", store.Selection{Limit: 2})
	require.NoError(t, err)
	assert.Equal(t, []string{"a\x00b", "ä"}, values)
	assert.Equal(t, store.Warnings{"cut"}, warnings)
	assert.Equal(t, []string{`/api/v1/query up{a="ä&=+"}`, `/api/v1/label/U__k8s_2e_pod_2f_name/values `}, seen)
}

func TestItTakesNoSamples(t *testing.T) {
	e := engine(t, reports(200, jsonType, success))
	_, err := e.Append(t.Context(), []store.Series{{}})
	assert.Equal(t, store.ReadOnly, store.KindOf(err))
	assert.ErrorContains(t, err, "prometheus_remote_write")
	assert.True(t, e.Info().ReadOnly)
	assert.NoError(t, e.Health(t.Context()))
	assert.Error(t, engine(t, reports(200, jsonType, strings.Replace(success, `"1"`, `"2"`, 1))).Health(t.Context()))
}

// Whatever a server answers, there is an answer or an error of a kind.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{success, `{`, `{"status":"error","errorType":"bad_data","error":"x"}`, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":1},"values":[[1]]}]}}`} {
		f.Add(seed, 200)
	}
	f.Fuzz(func(t *testing.T, body string, status int) {
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: 200 + (status%400+400)%400, Header: http.Header{"Content-Type": {jsonType}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
			}, nil
		})}
		e, err := New(Options{URL: "http://x", Client: client, QueryTimeout: time.Second, ConcurrentQuery: 1, MaxResponse: 1 << 20})
		require.NoError(t, err)
		r, err := e.Instant(t.Context(), "up", time.Unix(1, 0))
		if err == nil && r.Value == nil || err != nil && store.KindOf(err) == store.Internal {
			t.Fatal(fmt.Sprint(r, err))
		}
		_, _, err = e.Series(t.Context(), store.Selection{Matchers: []string{"up"}})
		if err != nil && store.KindOf(err) == store.Internal {
			t.Fatal(err)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
