// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package costs reads what GPUs cost: reports from the rows of usage in the store, and
// budgets from its metrics.
package costs // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/costs"

import (
	"context"
	"errors"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/costreport"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// rowsEvery is how long usage may have brought nothing until it is no longer current:
// gpu_cost sends what changed once a minute.
const rowsEvery = 5 * time.Minute

// ErrTooManyLines is the error of a report with more lines than it may have.
var ErrTooManyLines = errors.New("the report has too many lines")

// Query is what a report is of.
type Query struct {
	costreport.Options
	// Match selects rows, and Owners those of them that have lines; nil selects all.
	Match, Owners func(*usage.Key) bool
	// MaxLines is how many lines a report may have.
	MaxLines int
}

// Read makes a report of the rows that the store has.
func Read(ctx context.Context, s store.UsageLog, q *Query) (*costreport.Report, error) {
	o := q.Options
	if q.Top > 0 { // which groups these are is known when all rows are added up
		o.Step = costreport.Whole
	}
	b := costreport.New(o)
	if err := q.add(ctx, s, b); err != nil {
		return nil, err
	}
	if q.Top > 0 && q.Step != costreport.Whole {
		top := b.Greatest()
		b = costreport.New(q.Options)
		b.Keep(top)
		if err := q.add(ctx, s, b); err != nil {
			return nil, err
		}
	}
	r := b.Report()
	return &r, nil
}

// add adds the rows of the store.
func (q *Query) add(ctx context.Context, s store.UsageLog, b *costreport.Builder) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	full := false
	err := s.QueryUsage(ctx, store.UsageQuery{From: q.From.Truncate(time.Hour), To: q.To, Match: q.Match}, func(r *usage.Row) {
		if full {
			return
		}
		if q.Owners != nil && !q.Owners(&r.Key) {
			b.See(r)
			return
		}
		b.Add(r)
		if b.Len() > q.MaxLines {
			full = true
			cancel()
		}
	})
	if full {
		return ErrTooManyLines
	}
	return err
}

// Freshness is how current usage is: by when the newest rows arrived, and before any did
// since the start of the store by the end of their hour.
func Freshness(s store.UsageSpan, now time.Time, staleAfter time.Duration) consoleapi.Freshness {
	now = now.UTC().Truncate(time.Millisecond)
	staleAfter = max(staleAfter, rowsEvery)
	f := consoleapi.Freshness{EvaluatedAt: now, StaleAfter: staleAfter.Seconds()}
	at := s.Arrived
	if at.IsZero() && !s.Newest.IsZero() {
		at = s.Newest.Add(time.Hour)
	}
	if at.IsZero() {
		return f
	}
	if at.After(now) {
		at = now
	}
	at = at.UTC().Truncate(time.Millisecond)
	age := now.Sub(at).Seconds()
	f.DataTime, f.DataAge, f.Stale = &at, &age, now.Sub(at) > staleAfter
	return f
}
