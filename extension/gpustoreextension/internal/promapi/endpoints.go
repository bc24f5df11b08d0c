// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package promapi // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/promapi"

import (
	"context"
	"net/http"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// truncated is Prometheus' own warning.
const truncated = "results truncated due to limit"

func (a *api) query(r *http.Request) (answer, error) {
	at, err := timeOf(r, "time", a.Now())
	if err != nil {
		return answer{}, err
	}
	return a.run(r, func(ctx context.Context, query string) (*store.Result, error) {
		return a.Store.Instant(ctx, query, at)
	})
}

func (a *api) queryRange(r *http.Request) (answer, error) {
	start, err := timeOf(r, "start", noTime)
	if err != nil {
		return answer{}, err
	}
	end, err := timeOf(r, "end", noTime)
	if err != nil {
		return answer{}, err
	}
	step, err := durationOf(r, "step")
	if err != nil {
		return answer{}, err
	}
	return a.run(r, func(ctx context.Context, query string) (*store.Result, error) {
		return a.Store.Range(ctx, query, store.Range{Start: start, End: end, Step: step})
	})
}

// run runs a query within the time that the client has, and returns at most as
// many series as it wants.
func (a *api) run(r *http.Request, do func(ctx context.Context, query string) (*store.Result, error)) (answer, error) {
	limit, err := limitOf(r)
	if err != nil {
		return answer{}, err
	}
	ctx := r.Context()
	if r.Form.Get("timeout") != "" {
		timeout, err := durationOf(r, "timeout")
		if err != nil {
			return answer{}, err
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	result, err := do(ctx, r.Form.Get("query"))
	if err != nil {
		return answer{}, err
	}
	value, warnings := result.Value, result.Warnings
	switch v := value.(type) {
	case model.Vector:
		if limit > 0 && len(v) > limit {
			value, warnings = v[:limit], append(warnings, truncated)
		}
	case model.Matrix:
		if limit > 0 && len(v) > limit {
			value, warnings = v[:limit], append(warnings, truncated)
		}
	}
	return answer{queryData{value.Type().String(), value}, warnings, result.Infos}, nil
}

// selection reads what series, labels and label values have in common.
func (*api) selection(r *http.Request) (store.Selection, error) {
	start, err := timeOf(r, "start", unbounded)
	if err != nil {
		return store.Selection{}, err
	}
	end, err := timeOf(r, "end", unbounded)
	if err != nil {
		return store.Selection{}, err
	}
	limit, err := limitOf(r)
	return store.Selection{Matchers: r.Form["match[]"], Start: start, End: end, Limit: limit}, err
}

func (a *api) series(r *http.Request) (answer, error) {
	s, err := a.selection(r)
	if err != nil {
		return answer{}, err
	}
	found, warnings, err := a.Store.Series(r.Context(), s)
	return answer{data: list(found), warnings: warnings}, err
}

func (a *api) labelNames(r *http.Request) (answer, error) {
	s, err := a.selection(r)
	if err != nil {
		return answer{}, err
	}
	found, warnings, err := a.Store.LabelNames(r.Context(), s)
	return answer{data: list(found), warnings: warnings}, err
}

func (a *api) labelValues(r *http.Request) (answer, error) {
	s, err := a.selection(r)
	if err != nil {
		return answer{}, err
	}
	name := r.PathValue("name")
	if strings.HasPrefix(name, "U__") {
		name = model.UnescapeName(name, model.ValueEncodingEscaping)
	}
	found, warnings, err := a.Store.LabelValues(r.Context(), name, s)
	return answer{data: list(found), warnings: warnings}, err
}

func (a *api) metadata(r *http.Request) (answer, error) {
	limit, err := limitOf(r)
	if err != nil {
		return answer{}, err
	}
	found, err := a.Store.Metadata(r.Context(), r.Form.Get("metric"), limit)
	return answer{data: found}, err
}

// list is never null in JSON.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
