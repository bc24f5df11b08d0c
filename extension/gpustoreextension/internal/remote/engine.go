// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package remote is the store's engine that asks a server which speaks the
// Prometheus HTTP API: Prometheus, Mimir, Thanos, VictoriaMetrics.
package remote // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/remote"

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

const (
	// maxPoints is what Prometheus allows.
	maxPoints = 11_000
	// maxQueryBytes bounds what is sent.
	maxQueryBytes = 32 << 10
)

// Options of the engine; all are needed.
type Options struct {
	URL             string
	Client          *http.Client // with authentication, TLS and headers
	QueryTimeout    time.Duration
	ConcurrentQuery int
	MaxResponse     int64 // bytes, decompressed
}

// Engine asks a server.
type Engine struct {
	options Options
	api     prometheus.API
	turns   chan struct{} // one for each query that runs
}

// New makes the engine. It does not talk to the server: one that is down now may
// be up when it is asked.
func New(o Options) (*Engine, error) {
	client := *o.Client
	transport := client.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	client.Transport = &guard{next: transport, limit: o.MaxResponse}
	// A redirect would take the query, and the headers with which it is allowed,
	// to a server that is not configured.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c, err := api.NewClient(api.Config{Address: o.URL, Client: &client})
	if err != nil {
		return nil, err
	}
	return &Engine{options: o, api: prometheus.NewAPI(c), turns: make(chan struct{}, o.ConcurrentQuery)}, nil
}

// Close lets go of idle connections.
func (e *Engine) Close() error {
	e.options.Client.CloseIdleConnections()
	return nil
}

// Instant evaluates a PromQL expression at one time.
func (e *Engine) Instant(ctx context.Context, query string, at time.Time) (*store.Result, error) {
	var result store.Result
	err := e.ask(ctx, len(query), func(ctx context.Context) (warnings prometheus.Warnings, err error) {
		result.Value, warnings, err = e.api.Query(ctx, query, at, prometheus.WithTimeout(e.options.QueryTimeout))
		result.Warnings = store.Warnings(warnings)
		return warnings, err
	})
	return finish(&result, err)
}

// Range evaluates a PromQL expression at every step of a range.
func (e *Engine) Range(ctx context.Context, query string, r store.Range) (*store.Result, error) {
	switch {
	case r.Step <= 0:
		return nil, store.Errorf(store.BadQuery, "step must be longer than 0")
	case r.End.Before(r.Start):
		return nil, store.Errorf(store.BadQuery, "end must not be before start")
	case r.End.Sub(r.Start)/r.Step >= maxPoints:
		return nil, store.Errorf(store.BadQuery, "exceeded maximum resolution of %d points per timeseries: use a longer step or a shorter range", maxPoints)
	}
	var result store.Result
	err := e.ask(ctx, len(query), func(ctx context.Context) (warnings prometheus.Warnings, err error) {
		result.Value, warnings, err = e.api.QueryRange(ctx, query, prometheus.Range{Start: r.Start, End: r.End, Step: r.Step}, prometheus.WithTimeout(e.options.QueryTimeout))
		result.Warnings = store.Warnings(warnings)
		return warnings, err
	})
	return finish(&result, err)
}

// finish refuses JSON of the right form without content.
func finish(result *store.Result, err error) (*store.Result, error) {
	if err != nil {
		return nil, err
	}
	if result.Value == nil {
		return nil, store.Errorf(store.Unavailable, "the server at url answers, but not as Prometheus does: it gave no result")
	}
	return result, nil
}

// Series returns the labels of series.
func (e *Engine) Series(ctx context.Context, s store.Selection) ([]model.LabelSet, store.Warnings, error) {
	if len(s.Matchers) == 0 {
		return nil, nil, store.Errorf(store.BadQuery, "no match[] parameter provided: name at least one series selector")
	}
	var found []model.LabelSet
	warnings, err := e.look(ctx, s, func(ctx context.Context, start, end time.Time, options []prometheus.Option) (warnings prometheus.Warnings, err error) {
		found, warnings, err = e.api.Series(ctx, s.Matchers, start, end, options...)
		return warnings, err
	})
	return found, warnings, err
}

// LabelNames returns the names of labels.
func (e *Engine) LabelNames(ctx context.Context, s store.Selection) ([]string, store.Warnings, error) {
	var found []string
	warnings, err := e.look(ctx, s, func(ctx context.Context, start, end time.Time, options []prometheus.Option) (prometheus.Warnings, error) {
		names, warnings, err := e.api.LabelNames(ctx, s.Matchers, start, end, options...)
		for _, name := range names {
			found = append(found, string(name))
		}
		return warnings, err
	})
	return found, warnings, err
}

// LabelValues returns the values of a label.
func (e *Engine) LabelValues(ctx context.Context, label string, s store.Selection) ([]string, store.Warnings, error) {
	if !model.UTF8Validation.IsValidLabelName(label) {
		return nil, nil, store.Errorf(store.BadQuery, "invalid label name: %q", label)
	}
	// A name of other characters has an escaped form in the API's path.
	escaped := label
	if !model.LegacyValidation.IsValidLabelName(label) {
		escaped = model.EscapeName(label, model.ValueEncodingEscaping)
	}
	var found []string
	warnings, err := e.look(ctx, s, func(ctx context.Context, start, end time.Time, options []prometheus.Option) (prometheus.Warnings, error) {
		values, warnings, err := e.api.LabelValues(ctx, escaped, s.Matchers, start, end, options...)
		for _, value := range values {
			found = append(found, string(value))
		}
		return warnings, err
	})
	return found, warnings, err
}

// Metadata returns type, unit and help of metrics.
func (e *Engine) Metadata(ctx context.Context, metric string, limit int) (map[string][]store.Metadata, error) {
	found := map[string][]store.Metadata{}
	err := e.ask(ctx, len(metric), func(ctx context.Context) (prometheus.Warnings, error) {
		text := ""
		if limit > 0 {
			text = strconv.Itoa(limit)
		}
		answer, err := e.api.Metadata(ctx, metric, text)
		for name, all := range answer {
			for _, m := range all {
				found[name] = append(found[name], store.Metadata{Type: string(m.Type), Unit: m.Unit, Help: m.Help})
			}
		}
		return nil, err
	})
	return found, err
}

// look asks about series.
func (e *Engine) look(ctx context.Context, s store.Selection,
	do func(ctx context.Context, start, end time.Time, options []prometheus.Option) (prometheus.Warnings, error),
) (store.Warnings, error) {
	if !s.Start.IsZero() && !s.End.IsZero() && s.End.Before(s.Start) {
		return nil, store.Errorf(store.BadQuery, "end must not be before start")
	}
	size := 0
	for _, m := range s.Matchers {
		size += len(m)
	}
	var options []prometheus.Option
	if s.Limit > 0 {
		options = append(options, prometheus.WithLimit(uint64(s.Limit)))
	}
	var warnings prometheus.Warnings
	err := e.ask(ctx, size, func(ctx context.Context) (_ prometheus.Warnings, err error) {
		warnings, err = do(ctx, s.Start, s.End, options)
		return warnings, err
	})
	return store.Warnings(warnings), err
}

// ask waits for a turn and asks.
func (e *Engine) ask(ctx context.Context, size int, do func(context.Context) (prometheus.Warnings, error)) error {
	if size > maxQueryBytes {
		return store.Errorf(store.BadQuery, "the query is longer than %d bytes", maxQueryBytes)
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, e.options.QueryTimeout)
	defer cancel()
	select {
	case e.turns <- struct{}{}:
		defer func() { <-e.turns }()
	case <-ctx.Done():
		if caller.Err() != nil {
			return store.Errorf(store.Canceled, "the query was canceled")
		}
		return store.Errorf(store.Busy, "%d queries are running, and none ended within %v; try again later", e.options.ConcurrentQuery, e.options.QueryTimeout)
	}
	_, err := do(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(caller.Err(), context.Canceled):
		return store.Errorf(store.Canceled, "the query was canceled")
	default:
		return e.explain(err)
	}
}

// Health asks the simplest question.
func (e *Engine) Health(ctx context.Context) error {
	r, err := e.Instant(ctx, "vector(1)", time.Now())
	if err != nil {
		return err
	}
	if v, ok := r.Value.(model.Vector); !ok || len(v) != 1 || v[0].Value != 1 {
		return store.Errorf(store.Unavailable, "the server at url answers, but not as Prometheus does: vector(1) is not 1 there")
	}
	return nil
}

// Info returns what the engine refuses. What the server refuses is not known.
func (e *Engine) Info() store.Info {
	return store.Info{
		Engine: "prometheus", ReadOnly: true, QueryTimeout: e.options.QueryTimeout,
		MaxPoints: maxPoints, MaxConcurrentQueries: e.options.ConcurrentQuery,
	}
}

// Append refuses: such a server is written to by other means.
func (*Engine) Append(context.Context, []store.Series) (store.Appended, error) {
	return store.Appended{}, store.Errorf(store.ReadOnly, "the engine prometheus is read only; write to that server with prometheus_remote_write")
}

// AppendWithin refuses like Append.
func (e *Engine) AppendWithin(ctx context.Context, series []store.Series, _ int) (store.Appended, error) {
	return e.Append(ctx, series)
}

// Describe does nothing: the server has its own metadata.
func (*Engine) Describe(map[string]store.Metadata) {}

// host is the part of the URL that errors show.
func (e *Engine) host() string {
	if u, err := url.Parse(e.options.URL); err == nil {
		return fmt.Sprintf("the server at url (%s)", u.Host)
	}
	return "the server at url"
}
