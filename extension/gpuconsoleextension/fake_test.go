// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// fakeStore answers without data, or as a test configures it.
type fakeStore struct {
	component.StartFunc
	component.ShutdownFunc

	mu       sync.Mutex
	err      error
	value    model.Value // instead of an empty one
	asked    int
	problems []store.Problem
	// ask is called by every query, and may wait.
	ask func(context.Context) error
}

func (f *fakeStore) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeStore) queries() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func (f *fakeStore) answer(ctx context.Context, value model.Value) (*store.Result, error) {
	f.mu.Lock()
	f.asked++
	ask, err := f.ask, f.err
	if f.value != nil {
		value = f.value
	}
	f.mu.Unlock()
	if ask != nil {
		err = ask(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &store.Result{Value: value}, nil
}

func (f *fakeStore) Instant(ctx context.Context, _ string, _ time.Time) (*store.Result, error) {
	return f.answer(ctx, model.Vector{})
}

func (f *fakeStore) Range(ctx context.Context, _ string, _ store.Range) (*store.Result, error) {
	return f.answer(ctx, model.Matrix{})
}

func (f *fakeStore) Series(ctx context.Context, _ store.Selection) ([]model.LabelSet, store.Warnings, error) {
	_, err := f.answer(ctx, nil)
	return nil, nil, err
}

func (f *fakeStore) LabelNames(context.Context, store.Selection) ([]string, store.Warnings, error) {
	return nil, nil, nil
}

func (f *fakeStore) LabelValues(context.Context, string, store.Selection) ([]string, store.Warnings, error) {
	return nil, nil, nil
}

func (f *fakeStore) Metadata(context.Context, string, int) (map[string][]store.Metadata, error) {
	return nil, nil
}
func (f *fakeStore) Health(context.Context) error { return nil }
func (f *fakeStore) Info() store.Info             { return store.Info{Engine: "prometheus"} }
func (f *fakeStore) Append(context.Context, []store.Series) (store.Appended, error) {
	return store.Appended{}, nil
}
func (f *fakeStore) AppendWithin(context.Context, []store.Series, int) (store.Appended, error) {
	return store.Appended{}, nil
}
func (f *fakeStore) Problems() []store.Problem                          { return f.problems }
func (f *fakeStore) Describe(map[string]store.Metadata)                 {}
func (f *fakeStore) AppendEvents(context.Context, []*store.Event) error { return nil }
func (f *fakeStore) Events(store.EventQuery) []*store.Event             { return nil }
func (f *fakeStore) Deliveries(store.DeliveryQuery) []*store.Delivery   { return nil }
func (f *fakeStore) AppendUsage(context.Context, []usage.Row) error     { return nil }
func (f *fakeStore) QueryUsage(ctx context.Context, _ store.UsageQuery, _ func(*usage.Row)) error {
	_, err := f.answer(ctx, nil)
	return err
}
func (f *fakeStore) UsageSpan() store.UsageSpan      { return store.UsageSpan{} }
func (f *fakeStore) KeepAudit(uint64, *audit.Record) {}

var _ store.Store = (*fakeStore)(nil)
