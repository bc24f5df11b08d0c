// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// begin is when all tests begin. The TSDB takes the time from samples, and the
// engine's clock is the tests'.
var begin = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is an engine with a clock that stands still until it is set.
type world struct {
	*Engine
	t    *testing.T
	now  time.Time
	logs *observer.ObservedLogs
}

func options(directory string) Options {
	return Options{
		Directory: directory, Retention: 24 * time.Hour, MaxBytes: 1 << 30, OutOfOrder: 10 * time.Minute, Lookback: 5 * time.Minute,
		MaxSeries: 1000, MaxSamples: 100_000, QueryTimeout: 10 * time.Second, ConcurrentQuery: 4, Now: time.Now, Free: FreeBytes,
	}
}

func open(t *testing.T, directory string, change func(*Options)) *world {
	t.Helper()
	w := &world{t: t, now: begin}
	core, logs := observer.New(zap.DebugLevel)
	w.logs = logs
	o := options(directory)
	o.Logger, o.Now = zap.New(core), func() time.Time { return w.now }
	if change != nil {
		change(&o)
	}
	var err error
	w.Engine, err = Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

func one(name string, at time.Time, v float64, pairs ...string) store.Series {
	return store.Series{
		Labels:  labels.FromStrings(append([]string{model.MetricNameLabel, name}, pairs...)...),
		Samples: []store.Sample{{Time: at.UnixMilli(), Value: v}},
	}
}

// write stores series and returns what was refused.
func (w *world) write(series ...store.Series) map[store.Refusal]int {
	w.t.Helper()
	a, err := w.Append(context.Background(), series)
	require.NoError(w.t, err)
	return a.Refused
}

// value is the value of a query with one result, at a time.
func (w *world) value(query string, at time.Time) float64 {
	w.t.Helper()
	r, err := w.Instant(context.Background(), query, at)
	require.NoError(w.t, err)
	v, ok := r.Value.(model.Vector)
	require.True(w.t, ok)
	require.Len(w.t, v, 1, query)
	return float64(v[0].Value)
}

// count is how many series a query has.
func (w *world) count(query string, at time.Time) int {
	w.t.Helper()
	r, err := w.Instant(context.Background(), query, at)
	require.NoError(w.t, err)
	return len(r.Value.(model.Vector))
}
