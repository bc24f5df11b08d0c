// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension"

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// busyRetry is when a client with one request too many may try again.
const busyRetry = 2 * time.Second

// api answers requests.
type api struct {
	access
	store     store.Store
	reader    *fleet.Reader
	version   string
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	breaker   *breaker
	turns     chan struct{} // one for each request that is answered
}

func newAPI(c *Config, s store.Store, reader *fleet.Reader, set extension.Settings, telemetry *metadata.TelemetryBuilder) *api {
	return &api{
		access: access{config: c}, store: s, reader: reader, version: set.BuildInfo.Version, logger: set.Logger, telemetry: telemetry,
		breaker: newBreaker(c.CircuitBreaker, set.Logger), turns: make(chan struct{}, c.MaxConcurrentRequests),
	}
}

// endpoint answers one kind of request.
type endpoint struct {
	name       string
	parameters []string
	answer     func(context.Context, *parameters) (any, error)
	// changes: it is asked by POST, with JSON. That media type is what keeps another
	// site's page from asking in its reader's name: a browser asks us first whether
	// it may, and no answer here allows it.
	changes bool
}

// maxBody bounds the body of a request that changes something.
const maxBody = 4 << 10

// method refuses a request that asks in another way than the endpoint is asked.
func (e *endpoint) method(w http.ResponseWriter, r *http.Request) *failure {
	switch {
	case e.changes && r.Method != http.MethodPost:
		w.Header().Set("Allow", "POST")
		return fail(http.StatusMethodNotAllowed, consoleapi.MethodNotAllowed, "This changes something.", "Use POST.")
	case !e.changes && r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		return fail(http.StatusMethodNotAllowed, consoleapi.MethodNotAllowed, "This can only be read.", "Use GET.")
	case e.changes && r.Header.Get("Content-Type") != "application/json":
		return invalid("The Content-Type is not application/json.")
	}
	return nil
}

// serviceParameters name a service, by parameters.key.
var serviceParameters = []string{"cluster", "slurm_cluster", "namespace", "service"}

func (a *api) endpoints() []endpoint {
	with := func(more ...string) []string { return append(more, serviceParameters...) }
	return []endpoint{
		{name: "status", answer: a.status},
		{name: "services", parameters: []string{"limit", "cursor", "q", "trend", "window", "inference"}, answer: a.services},
		{name: "service", parameters: serviceParameters, answer: a.service},
		{name: "pods", parameters: with("limit", "cursor"), answer: a.pods},
		{name: "nodes", parameters: []string{"limit", "cursor", "q", "cluster", "node", "device", "attention"}, answer: a.nodes},
		{name: "range", parameters: with("window", "by"), answer: a.charts},
		{name: "device_range", parameters: []string{"cluster", "node", "device", "window"}, answer: a.deviceCharts},
		{name: "capacity", parameters: capacityParameters, answer: a.capacity},
		{name: "cost", parameters: costParameters, answer: a.reports().answer},
		{name: "events", parameters: with("limit", "cursor", "name", "min_severity", "q", "active"), answer: a.events},
		{name: "acknowledge", answer: a.acknowledge, changes: true},
	}
}

func (a *api) reports() *reports {
	now := func() time.Time { return a.reader.Unknown().EvaluatedAt }
	return &reports{store: a.store, now: now, timeout: a.config.QueryTimeout, staleAfter: a.config.StaleAfter, read: a.read, turns: make(chan struct{}, mostReports)}
}

// serve is the handler of an endpoint: what is cheap to refuse is refused first.
func (a *api) serve(e endpoint) http.HandlerFunc {
	return a.observed(e.name, func(w http.ResponseWriter, r *http.Request) {
		if f := a.localOnly(r); f != nil {
			writeFailure(w, f)
			return
		}
		r, f := a.authenticated(r)
		if f != nil {
			writeFailure(w, f)
			return
		}
		if f := e.method(w, r); f != nil {
			writeFailure(w, f)
			return
		}
		p := parse(r.URL.RawQuery, e.parameters...)
		if e.changes {
			var err error
			if p.body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
				p.refuse("the body", fmt.Sprintf("cannot be read, or is longer than %d bytes", maxBody))
			}
		}
		select {
		case a.turns <- struct{}{}:
			defer func() { <-a.turns }()
		default:
			f := fail(http.StatusServiceUnavailable, consoleapi.Busy, "The console is busy.",
				fmt.Sprintf("%d requests are being answered already, which is max_concurrent_requests.", a.config.MaxConcurrentRequests))
			f.retryAfter = busyRetry
			writeFailure(w, f)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), a.config.QueryTimeout)
		defer cancel()
		answer, err := a.answer(ctx, e, p)
		if err != nil {
			if f := failed(err); f != nil && r.Context().Err() == nil {
				writeFailure(w, f)
			} else {
				w.WriteHeader(statusGone) // the client is gone
			}
			return
		}
		if file, is := answer.(*download); is {
			writeFile(w, file)
			return
		}
		writeJSON(w, http.StatusOK, answer)
	})
}

// writeFile writes a file to be saved.
func writeFile(w http.ResponseWriter, f *download) {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+f.name+`"`)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(f.text)
}

// answer answers, and turns a panic into an error: one request that hits a
// defect is not the end of the others.
func (a *api) answer(ctx context.Context, e endpoint, p *parameters) (answer any, err error) {
	defer func() {
		if defect := recover(); defect != nil {
			a.logger.Error("panic while serving a request", zap.String("endpoint", e.name), zap.Any("defect", defect), zap.Stack("stack"))
			err = fail(http.StatusInternalServerError, consoleapi.InternalError, "The console has failed.", "Its log has the details.")
		}
	}()
	if p.err != nil {
		return nil, p.err
	}
	return e.answer(ctx, p)
}

// unknown answers what is below /api/ and nothing.
func (a *api) unknown() http.HandlerFunc {
	return a.observed("unknown", func(w http.ResponseWriter, r *http.Request) {
		if f := a.localOnly(r); f != nil {
			writeFailure(w, f)
			return
		}
		if _, f := a.authenticated(r); f != nil {
			writeFailure(w, f)
			return
		}
		writeFailure(w, fail(http.StatusNotFound, consoleapi.NotFound, "There is no such endpoint.", "The API is below /api/v1/."))
	})
}

func writeFailure(w http.ResponseWriter, f *failure) {
	if f.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="otelcol-gpu"`)
	}
	if f.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(max(time.Second, f.retryAfter).Round(time.Second).Seconds())))
	}
	writeJSON(w, f.status, f.body)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error":"The console has failed.","reason":"internal","detail":""}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}

// recorder remembers what was answered.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// observed counts an answer and notes it in the access log: without its query,
// which may hold private data.
func (a *api) observed(name string, next http.HandlerFunc) http.HandlerFunc {
	of := attribute.String("endpoint", name)
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		recorded := &recorder{ResponseWriter: w}
		secure(w.Header())
		next(recorded, r)
		took := time.Since(began)
		ctx := context.WithoutCancel(r.Context())
		a.telemetry.ExtensionGpuConsoleRequests.Add(ctx, 1, metric.WithAttributes(of, attribute.Int("http.response.status_code", recorded.status)))
		if name != "page" {
			a.telemetry.ExtensionGpuConsoleRequestDuration.Record(ctx, took.Seconds(), metric.WithAttributes(of))
		}
		if a.config.AccessLog {
			a.logger.Info("request served", zap.String("method", r.Method), zap.String("endpoint", name), zap.Int("status", recorded.status), zap.Duration("duration", took))
		}
	}
}

// read reads from the store, unless that is left alone.
func (a *api) read(ctx context.Context, read func() error) error {
	return timed(ctx, a.config.QueryTimeout, a.breaker.do(read))
}

// timed explains an error of the store where the time of a request is over, which is the
// console's own limit, and the store's fault.
func timed(ctx context.Context, timeout time.Duration, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && store.KindOf(err) == store.Canceled {
		return store.Errorf(store.Timeout, "the answer took longer than it may (query_timeout is %v)", timeout)
	}
	return err
}
