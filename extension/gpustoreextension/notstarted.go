// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension"

import (
	"context"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// notStarted is the engine before Start.
type notStarted struct{}

func errNotStarted() error {
	return store.Errorf(store.Unavailable, "the store is not started")
}

func (notStarted) Instant(context.Context, string, time.Time) (*store.Result, error) {
	return nil, errNotStarted()
}

func (notStarted) Range(context.Context, string, store.Range) (*store.Result, error) {
	return nil, errNotStarted()
}

func (notStarted) Series(context.Context, store.Selection) ([]model.LabelSet, store.Warnings, error) {
	return nil, nil, errNotStarted()
}

func (notStarted) LabelNames(context.Context, store.Selection) ([]string, store.Warnings, error) {
	return nil, nil, errNotStarted()
}

func (notStarted) LabelValues(context.Context, string, store.Selection) ([]string, store.Warnings, error) {
	return nil, nil, errNotStarted()
}

func (notStarted) Metadata(context.Context, string, int) (map[string][]store.Metadata, error) {
	return nil, errNotStarted()
}

func (notStarted) Append(context.Context, []store.Series) (store.Appended, error) {
	return store.Appended{}, errNotStarted()
}

func (notStarted) AppendWithin(context.Context, []store.Series, int) (store.Appended, error) {
	return store.Appended{}, errNotStarted()
}

func (notStarted) Health(context.Context) error       { return errNotStarted() }
func (notStarted) Info() store.Info                   { return store.Info{} }
func (notStarted) Describe(map[string]store.Metadata) {}
func (notStarted) Close() error                       { return nil }
