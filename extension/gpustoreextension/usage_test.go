// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreextension

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

const logFailures = "otelcol_extension_gpu_store_log_failures"

// Rows of usage are no events, and outlive a restart.
func TestUsageIsKept(t *testing.T) {
	c := configured(t, nil)
	g := begin(t, c)
	now := time.Now()
	open := rowOfUsage(now, 1)
	open.Open = true
	require.NoError(t, g.AppendUsage(t.Context(), []usage.Row{rowOfUsage(now, 0), open}))
	assert.Equal(t, []usage.Row{rowOfUsage(now, 0), open}, g.rows(t))
	assert.Empty(t, g.Events(store.EventQuery{}))
	hour := now.UTC().Truncate(time.Hour)
	span := g.UsageSpan()
	assert.Equal(t, []time.Time{hour, hour}, []time.Time{span.Oldest, span.Newest})
	assert.False(t, span.Arrived.IsZero())
	assert.EqualValues(t, 2, g.counted(t, "otelcol_extension_gpu_store_log_entries", "kind", "usage"))
	require.NoError(t, g.Shutdown(t.Context()))
	assert.Equal(t, []usage.Row{rowOfUsage(now, 0)}, begin(t, c).rows(t))
}

// A configuration can want no usage: it is no error that some arrives.
func TestNoUsageIsKept(t *testing.T) {
	g := begin(t, configured(t, func(c *Config) { c.Log.MaxUsageBytes = 0 }))
	require.NoError(t, g.AppendUsage(t.Context(), []usage.Row{rowOfUsage(time.Now(), 0)}))
	assert.Empty(t, g.rows(t))
	assert.Equal(t, store.UsageSpan{}, g.UsageSpan())
	g.look()
	assert.NoDirExists(t, filepath.Join(g.config.Directory, "log", "usage"))
}

func TestRowsOfUsageThatAreNotTaken(t *testing.T) {
	g := begin(t, configured(t, nil))
	now := time.Now()
	bad, late := rowOfUsage(now, 1), rowOfUsage(now.Add(2*time.Hour), 2)
	bad.Used = 2
	require.NoError(t, g.AppendUsage(t.Context(), []usage.Row{bad, rowOfUsage(now, 0), late}))
	assert.Equal(t, []usage.Row{rowOfUsage(now, 0)}, g.rows(t))
	assert.EqualValues(t, 1, g.counted(t, logFailures, "reason", "invalid"))
	assert.EqualValues(t, 1, g.counted(t, logFailures, "reason", "too_new"))
	assert.Equal(t, []string{"usage_rows invalid", "usage_rows too_new"}, g.lines(zapcore.WarnLevel))
	require.Len(t, g.Problems(), 2)
	assert.False(t, g.Problems()[0].Fault(), "the sender's")
	assert.Contains(t, g.Problems()[0].Detail, "gpu.usage.used_ms: 2 is not within 0 and 1")
}

func TestUsageThatIsDamaged(t *testing.T) {
	c := configured(t, nil)
	g := begin(t, c)
	now := time.Now()
	require.NoError(t, g.AppendUsage(t.Context(), []usage.Row{rowOfUsage(now, 0), rowOfUsage(now, 1)}))
	require.NoError(t, g.Shutdown(t.Context()))
	path := filepath.Join(c.Directory, "log", "usage", "hours-"+now.UTC().Format(time.DateOnly)+".log")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	text[len(text)-3] ^= 1
	require.NoError(t, os.WriteFile(path, text, 0o600))
	g = begin(t, c)
	assert.Len(t, g.rows(t), 1)
	assert.EqualValues(t, 1, g.counted(t, logFailures, "reason", "damaged"))
	assert.Len(t, g.logs.FilterMessageSnippet("cannot be read and are left out").All(), 1)
}

// Each query of usage has a turn, and waits for it no longer than a query may take.
func TestTurnsOfQueriesOfUsage(t *testing.T) {
	g := begin(t, configured(t, func(c *Config) { c.Query.MaxConcurrent, c.Query.Timeout = 1, 10*time.Millisecond }))
	require.NoError(t, g.AppendUsage(t.Context(), []usage.Row{rowOfUsage(time.Now(), 0)}))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	inside := 0
	query := func(ctx context.Context, f func(*usage.Row)) error {
		return g.QueryUsage(ctx, store.UsageQuery{To: time.Now().Add(time.Hour)}, f)
	}
	_ = query(t.Context(), func(*usage.Row) { // it may take longer than it may, too
		inside++
		assert.Equal(t, store.Busy, store.KindOf(query(t.Context(), nil)))
		assert.Equal(t, store.Canceled, store.KindOf(query(canceled, nil)))
	})
	assert.Equal(t, 1, inside)
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	assert.Contains(t, []store.Kind{store.Timeout, store.Busy}, store.KindOf(query(late, nil)))
}
