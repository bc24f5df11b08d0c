// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package embedded // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/embedded"

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// evaluator answers queries over the TSDB.
type evaluator struct {
	*life
	options Options
	db      *tsdb.DB
	parser  parser.Parser
	shared  turns // of queries that run with others
	alone   turns // of the one that takes more
}

// Instant evaluates a PromQL expression at one time.
func (e *evaluator) Instant(ctx context.Context, query string, at time.Time) (*store.Result, error) {
	return e.run(ctx, query, func(ctx context.Context, engine *promql.Engine) (promql.Query, error) {
		return engine.NewInstantQuery(ctx, e.db, nil, query, at)
	})
}

// Range evaluates a PromQL expression at every step of a range.
func (e *evaluator) Range(ctx context.Context, query string, r store.Range) (*store.Result, error) {
	switch {
	case r.Step <= 0:
		return nil, store.Errorf(store.BadQuery, "step must be longer than 0")
	case r.End.Before(r.Start):
		return nil, store.Errorf(store.BadQuery, "end must not be before start")
	case r.End.Sub(r.Start)/r.Step >= maxPoints:
		return nil, store.Errorf(store.BadQuery, "exceeded maximum resolution of %d points per timeseries: use a longer step or a shorter range", maxPoints)
	}
	return e.run(ctx, query, func(ctx context.Context, engine *promql.Engine) (promql.Query, error) {
		return engine.NewRangeQuery(ctx, e.db, nil, query, r.Start, r.End, r.Step)
	})
}

// create makes a query of an engine.
type create func(context.Context, *promql.Engine) (promql.Query, error)

// run runs a query with others, as most can be. One that takes more than their share is run
// again, alone among such.
func (e *evaluator) run(ctx context.Context, text string, create create) (*store.Result, error) {
	if len(text) > maxQueryBytes {
		return nil, store.Errorf(store.BadQuery, "the query is longer than %d bytes", maxQueryBytes)
	}
	if expr, err := e.parser.ParseExpr(text); err == nil { // the engine reports the others
		if err := checkGrowth(expr); err != nil {
			return nil, err
		}
	}
	ctx, leave, err := e.enter(ctx, e.options.QueryTimeout)
	if err != nil {
		return nil, err
	}
	defer leave()
	result, err := e.runIn(ctx, &e.shared, text, create)
	if errors.Is(err, errShare) {
		return e.runIn(ctx, &e.alone, text, create)
	}
	return result, err
}

// runIn waits for a turn and runs a query in it. The turn is kept for as long as the result is.
// A result of which the labels alone take more than a share waits for the turn of such.
func (e *evaluator) runIn(ctx context.Context, turns *turns, text string, create create) (*store.Result, error) {
	done, err := e.wait(ctx, turns)
	if err != nil {
		return nil, err
	}
	kept := false
	defer func() {
		if !kept {
			done()
		}
	}()
	query, err := create(ctx, turns.engine)
	if err != nil {
		return nil, &store.Error{Kind: store.BadQuery, Err: err}
	}
	defer query.Close()
	result := query.Exec(ctx)
	if result.Err != nil {
		return nil, e.queryError(result.Err, turns)
	}
	if !fits(result.Value, turns.samples) {
		if !fits(result.Value, e.alone.samples) {
			return nil, e.tooMuch(&e.alone)
		}
		alone, err := e.wait(ctx, &e.alone)
		if err != nil {
			return nil, err
		}
		done()
		done = alone
	}
	value, err := convert(result.Value)
	if err != nil {
		return nil, err
	}
	warnings, infos := result.Warnings.AsStrings(text, 10, 10)
	kept = true
	store.KeepOrRelease(ctx, done)
	return &store.Result{Value: value, Warnings: warnings, Infos: infos}, nil
}

func (e *evaluator) canceled() error {
	if e.ended.Err() != nil {
		return store.Errorf(store.Unavailable, "the store is shut down")
	}
	return store.Errorf(store.Canceled, "the query was canceled")
}

func (e *evaluator) tooMuch(turns *turns) error {
	if turns.samples < e.options.MaxSamples {
		return errShare
	}
	return store.Errorf(store.TooMuch, "the query would hold more than %d samples at once, each series of the answer counted as %d: select fewer series or a shorter range (query::max_samples)", e.options.MaxSamples, seriesWeight)
}

// queryError converts the error of a query.
func (e *evaluator) queryError(err error, turns *turns) error {
	var (
		timeout  promql.ErrQueryTimeout
		canceled promql.ErrQueryCanceled
		many     promql.ErrTooManySamples
		storage  promql.ErrStorage
	)
	switch {
	case errors.As(err, &many):
		return e.tooMuch(turns)
	case errors.As(err, &canceled), errors.Is(err, context.Canceled):
		return e.canceled()
	case errors.As(err, &timeout), errors.Is(err, context.DeadlineExceeded):
		return store.Errorf(store.Timeout, "the query took longer than it may (query::timeout is %v)", e.options.QueryTimeout)
	case errors.As(err, &storage):
		return &store.Error{Kind: store.Internal, Err: err}
	default:
		return &store.Error{Kind: store.TooMuch, Err: err}
	}
}

// milliseconds returns a time for the TSDB, or what it uses for unbounded.
func milliseconds(t time.Time, unbounded int64) int64 {
	if t.IsZero() {
		return unbounded
	}
	return t.UnixMilli()
}
