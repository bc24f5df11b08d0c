// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package promapi serves the Prometheus HTTP API over a store: what Grafana's
// data source, promtool and KEDA's scaler ask for. The README explains why it is not
// Prometheus' own web/api/v1.
package promapi // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/promapi"

import (
	"errors"
	"net/http"
	"strings"
	"time"

	jsoniter "github.com/json-iterator/go"
	_ "github.com/prometheus/client_golang/api/prometheus/v1" // teaches jsoniter the API's numbers
	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

var encoder = jsoniter.ConfigCompatibleWithStandardLibrary

// smallAnswer is the size, in bytes, up to which an answer that its reader does
// not take keeps no query from running: connections are limited too.
const smallAnswer = 256 << 10

// Options of the handler.
type Options struct {
	Store store.Querier
	// Version is what buildinfo returns: the version of Prometheus, for its API and PromQL,
	// because clients choose what they ask for by it.
	Version   string
	GoVersion string
	Now       func() time.Time
	// Observe is called for every response.
	Observe func(endpoint string, status int)
}

// answer is the data of a successful answer.
type answer struct {
	data     any
	warnings store.Warnings
	infos    store.Warnings
}

// queryData is the data of a query's answer.
type queryData struct {
	ResultType string      `json:"resultType"`
	Result     model.Value `json:"result"`
}

// body is the form of every answer.
type body struct {
	Status    string         `json:"status"`
	Data      any            `json:"data,omitempty"`
	ErrorType string         `json:"errorType,omitempty"`
	Error     string         `json:"error,omitempty"`
	Warnings  store.Warnings `json:"warnings,omitempty"`
	Infos     store.Warnings `json:"infos,omitempty"`
}

// Handler serves /api/v1/…, /-/healthy and /-/ready.
func Handler(o Options) http.Handler {
	a := &api{Options: o}
	mux := http.NewServeMux()
	form := func(endpoint string, do func(*http.Request) (answer, error)) {
		handler := a.serve(endpoint, do)
		mux.Handle("GET /api/v1/"+endpoint, handler)
		mux.Handle("POST /api/v1/"+endpoint, handler)
	}
	get := func(pattern, endpoint string, do func(*http.Request) (answer, error)) {
		mux.Handle("GET /api/v1/"+pattern, a.serve(endpoint, do))
	}
	form("query", a.query)
	form("query_range", a.queryRange)
	form("series", a.series)
	form("labels", a.labelNames)
	get("label/{name}/values", "label_values", a.labelValues)
	get("metadata", "metadata", a.metadata)
	get("status/buildinfo", "buildinfo", a.buildInfo)
	// There are none of these, and clients that ask are answered so.
	form("query_exemplars", nothing([]any{}))
	get("rules", "rules", nothing(map[string]any{"groups": []any{}}))
	get("alerts", "alerts", nothing(map[string]any{"alerts": []any{}}))

	mux.Handle("/api/v1/", a.serve("unknown", func(r *http.Request) (answer, error) {
		return answer{}, &notServed{r.URL.Path}
	}))
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("The store is up.\n"))
	})
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, r *http.Request) {
		if err := o.Store.Health(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("The store is ready.\n"))
	})
	return mux
}

type api struct{ Options }

type notServed struct{ path string }

func (e *notServed) Error() string { return "this store does not serve this path with this method" }

// serve answers in the API's form.
func (a *api) serve(endpoint string, do func(*http.Request) (answer, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, hold := store.WithHold(r.Context())
		defer hold.Release()
		status, out := http.StatusOK, body{Status: "success"}
		got, err := a.answer(r.WithContext(ctx), do)
		if err != nil {
			status, out = failure(err)
			if status == http.StatusServiceUnavailable {
				w.Header().Set("Retry-After", "5")
			}
		} else {
			out.Data, out.Warnings, out.Infos = got.data, got.warnings, got.infos
		}
		text, err := encoder.Marshal(out)
		if err != nil {
			status = http.StatusInternalServerError
			text = []byte(`{"status":"error","errorType":"internal","error":"the answer cannot be written as JSON"}`)
		}
		got, out = answer{}, body{}
		if len(text) <= smallAnswer {
			hold.Release()
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(status)
		_, _ = w.Write(text)
		a.Observe(endpoint, status)
	})
}

func (*api) answer(r *http.Request, do func(*http.Request) (answer, error)) (answer, error) {
	if err := r.ParseForm(); err != nil {
		return answer{}, store.Errorf(store.BadQuery, "the form cannot be read: %w", err)
	}
	return do(r)
}

// failure is the API's answer to an error: Prometheus' own statuses, as clients
// expect them.
func failure(err error) (int, body) {
	out := body{Status: "error", Error: strings.ToValidUTF8(err.Error(), "\uFFFD")}
	var not *notServed
	if errors.As(err, &not) {
		out.ErrorType = "not_found"
		return http.StatusNotFound, out
	}
	switch store.KindOf(err) {
	case store.BadQuery:
		out.ErrorType = "bad_data"
		return http.StatusBadRequest, out
	case store.TooMuch:
		out.ErrorType = "execution"
		return http.StatusUnprocessableEntity, out
	case store.Timeout, store.Busy:
		out.ErrorType = "timeout"
		return http.StatusServiceUnavailable, out
	case store.Canceled:
		out.ErrorType = "canceled"
		return 499, out // the client is gone; as in nginx and Prometheus
	case store.Unavailable:
		out.ErrorType = "unavailable"
		return http.StatusServiceUnavailable, out
	default:
		out.ErrorType = "internal"
		return http.StatusInternalServerError, out
	}
}

func nothing(data any) func(*http.Request) (answer, error) {
	return func(*http.Request) (answer, error) { return answer{data: data}, nil }
}

func (a *api) buildInfo(*http.Request) (answer, error) {
	return answer{data: map[string]string{
		"version": a.Version, "revision": "", "branch": "", "buildUser": "", "buildDate": "", "goVersion": a.GoVersion,
	}}, nil
}
