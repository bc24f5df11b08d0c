// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package ask queries a store for the responses to one request: all of one moment,
// several at once, and shared with other requests of the same moment.
package ask // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// atOnce is how many queries of one request run at once: a store has turns for
// few, and others wait.
const atOnce = 4

// Client queries a store. It may be used by several goroutines.
type Client struct {
	store    store.Store
	delay    time.Duration
	shareFor time.Duration
	now      func() time.Time

	mu   sync.Mutex
	last *moment // that others may share
}

// NewClient makes a Client of a store that takes delay until a sample can be read.
// Requests within shareFor share responses; with 0 none do.
func NewClient(s store.Store, delay, shareFor time.Duration, now func() time.Time) *Client {
	return &Client{store: s, delay: delay, shareFor: shareFor, now: now}
}

// moment returns that of the last request if it is young enough, else a new one.
func (c *Client) moment() *moment {
	now := c.now()
	if c.shareFor <= 0 {
		return &moment{now: now}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.last; last != nil {
		if age := now.Sub(last.now); age >= 0 && age < c.shareFor {
			return last
		}
	}
	m := &moment{now: now, answers: map[question]*answer{}}
	c.last = m
	// What may no longer be used is not kept in memory.
	time.AfterFunc(c.shareFor, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.last == m {
			c.last = nil
		}
	})
	return m
}

// Questions are the queries of one request. They are not safe for concurrent use.
type Questions struct {
	Now time.Time // when the request is evaluated
	At  time.Time // of when values are

	store  store.Store
	moment *moment
	group  *errgroup.Group
	ctx    context.Context
}

// Begin begins a request.
func (c *Client) Begin(ctx context.Context) *Questions {
	m := c.moment()
	q := &Questions{Now: m.now, At: m.now.Add(-c.delay), store: c.store, moment: m}
	q.More(ctx)
	return q
}

// Again begins queries of the same moment for another request.
func (q *Questions) Again(ctx context.Context) *Questions {
	again := &Questions{Now: q.Now, At: q.At, store: q.store, moment: q.moment}
	again.More(ctx)
	return again
}

// Unshared is Again without the responses of the moment, which are then not kept in memory.
func (q *Questions) Unshared(ctx context.Context) *Questions {
	again := q.Again(ctx)
	again.moment = &moment{now: q.Now}
	return again
}

// More begins further queries, after Wait.
func (q *Questions) More(ctx context.Context) {
	q.group, q.ctx = errgroup.WithContext(ctx)
	q.group.SetLimit(atOnce)
}

// Vector queries at the time of the request; the response is there after Wait.
func (q *Questions) Vector(query string) *model.Vector { return q.VectorAt(query, q.At) }

// VectorAt queries at a time. NaN, infinities and histograms are left out.
func (q *Questions) VectorAt(query string, at time.Time) *model.Vector {
	v := new(model.Vector)
	ctx := q.ctx
	q.group.Go(func() error {
		found, err := q.moment.ask(ctx, question{query, at}, func(ctx context.Context) (model.Vector, error) {
			return instant(ctx, q.store, query, at)
		})
		*v = slices.Clone(found) // others have its samples, but not their order
		return err
	})
	return v
}

func instant(ctx context.Context, s store.Store, query string, at time.Time) (model.Vector, error) {
	result, err := s.Instant(ctx, query, at)
	if err != nil {
		return nil, err
	}
	found, ok := result.Value.(model.Vector)
	if !ok {
		return nil, store.Errorf(store.Unavailable, "the store answers, but not as Prometheus does: a %T for a vector", result.Value)
	}
	return numbers(found), nil
}

// Matrix queries the times of a grid; the response is there after Wait.
func (q *Questions) Matrix(query string, g Grid) *model.Matrix {
	m := new(model.Matrix)
	ctx := q.ctx
	q.group.Go(func() error {
		result, err := q.store.Range(ctx, query, store.Range{Start: g.Start, End: g.End(), Step: g.Step})
		if err != nil {
			return err
		}
		found, ok := result.Value.(model.Matrix)
		if !ok {
			return store.Errorf(store.Unavailable, "the store answers, but not as Prometheus does: a %T for a matrix", result.Value)
		}
		*m = found
		return nil
	})
	return m
}

// Wait waits for all responses, and returns the error of the first query that failed.
func (q *Questions) Wait() error { return q.group.Wait() }

// numbers leaves out what is no data: NaN, infinities, histograms.
func numbers(v model.Vector) model.Vector {
	kept := v[:0]
	for _, s := range v {
		if s.Histogram == nil && isNumber(float64(s.Value)) {
			kept = append(kept, s)
		}
	}
	return kept
}

func isNumber(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// Seconds is a time that a query returns.
func Seconds(v model.SampleValue) time.Time {
	return time.UnixMilli(int64(math.Round(float64(v) * 1000))).UTC()
}
