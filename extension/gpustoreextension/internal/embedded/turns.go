// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package embedded // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/embedded"

import (
	"context"
	"errors"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// errShare means that a query takes more than the share of those that run with
// others.
var errShare = errors.New("more than a share")

// turns bound what the queries that run hold in memory together: MaxSamples by
// those that run with others, each its share of them, and MaxSamples by the one
// that needs more.
type turns struct {
	slots   chan struct{}
	engine  *promql.Engine
	samples int // that a query of these may hold
}

// seriesWeight is how many samples the labels of a series weigh in a result: some
// 2 KB, in memory and as text.
const seriesWeight = 20

// fits reports whether a result is no larger than so many samples.
func fits(v parser.Value, samples int) bool {
	left := samples
	switch v := v.(type) {
	case promql.Vector:
		left -= (seriesWeight + 1) * len(v)
	case promql.Matrix:
		for i := range v {
			left -= seriesWeight + len(v[i].Floats) + len(v[i].Histograms)
		}
	}
	return left >= 0
}

// wait waits for a turn, which done ends.
func (e *evaluator) wait(ctx context.Context, t *turns) (done func(), err error) {
	select {
	case t.slots <- struct{}{}:
		return func() { <-t.slots }, nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, store.Errorf(store.Busy, "%d queries of this size are running, or their answers are being read, and none ended within %v; try again later", cap(t.slots), e.options.QueryTimeout)
		}
		return nil, e.canceled()
	}
}
