// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
)

func TestBadUtilization(t *testing.T) {
	l := New(config(), t0)
	a := owned("g", "g", "a", share.Whole)
	for at := t0; at < t0+hour; at += 15 * second {
		add(l, at, a)
		l.Utilization("g", "g", at, 1.5)
		l.Utilization("g", "g", at, -0.1)
	}
	got := rows(l)["a"]
	assert.Equal(t, got.Time, got.Unmeasured)
	assert.Zero(t, got.Used)
}

// A utilization holds for two and a half intervals of its points, unless a staleness is configured.
// A silence of the exporter is no interval.
func TestHowLongAUtilizationHolds(t *testing.T) {
	for _, tt := range []struct{ interval, staleness, want int64 }{
		{5 * second, 0, 45 * second}, {15 * second, 0, 45 * second}, {minute, 0, 150 * second}, {5 * minute, 0, 750 * second},
		{7 * minute, 0, 45 * second}, {minute, 45 * second, 45 * second}, {15 * second, 2 * minute, 2 * minute},
	} {
		cfg := config()
		cfg.Staleness = tt.staleness
		l := New(cfg, t0)
		measured, before := int64(0), int64(0)
		for at := t0; at <= t0+4*hour; at += 5 * second {
			add(l, at, owned("g", "g", "a", share.Whole))
			if away := at-t0 > hour && at-t0 < 90*minute || at-t0 > 3*hour; !away && (at-t0)%tt.interval == 0 {
				l.Utilization("g", "g", at, .5)
				measured = at
			}
			if at == measured {
				before = rows(l)["a"].Unmeasured
			}
		}
		silent := t0 + 4*hour - measured
		assert.InDelta(t, silent-tt.want, rows(l)["a"].Unmeasured-before, float64(10*second), "%v", tt)
	}
}
