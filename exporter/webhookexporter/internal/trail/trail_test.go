// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package trail

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"
)

// noHeads keeps no head.
type noHeads struct{}

func (noHeads) KeptHead(context.Context, string) (*checkpoint.Head, error) { return nil, nil }
func (noHeads) KeepHead(string, checkpoint.Head, bool)                     {}

// What a record promised is found by its id, and nothing else is.
func TestFind(t *testing.T) {
	trail := New(zap.NewNop(), nil)
	assert.Empty(t, trail.Find([]string{"a"}), "without a file nothing is known")
	_, ok := trail.Stats()
	assert.False(t, ok)
	c := &Config{Path: filepath.Join(t.TempDir(), "audit.jsonl")}
	require.NoError(t, trail.Open(t.Context(), componenttest.NewNopHost(), c, noHeads{}, func(error) {}))
	defer func() { require.NoError(t, trail.Close()) }()
	next := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for id, at := range map[string]time.Time{"a": {}, "b": next} {
		trail.Write(&audit.Record{ID: id, Time: next, Outcome: audit.Failed, NextAttempt: at})
	}
	assert.Equal(t, map[string]time.Time{"a": {}, "b": next}, trail.Find([]string{"a", "b", "c"}))
	stats, ok := trail.Stats()
	assert.True(t, ok)
	assert.EqualValues(t, 2, stats.Written)
}
