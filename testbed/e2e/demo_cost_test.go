// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// demoCost is what the console reports about the demo's cost.
type demoCost struct {
	Currency string
	Lines    []struct {
		State string
		Group struct{ Tenant string }
		Cost  *float64
	}
	Total   struct{ Time, Unpriced, Cost float64 }
	Budgets []struct {
		Name               string
		Ratio, Used, Limit float64
		Start, End         time.Time
	}
}

// judgeCost checks that the demo has money, of the owners of its GPUs and of what
// nothing holds, and how much of its budgets is used.
func judgeCost(t *testing.T, console string) {
	t.Helper()
	var report demoCost
	complete := func() bool {
		_, body, err := get(t.Context(), console+"/api/v1/cost?by=tenant&since=24h")
		report = demoCost{}
		return err == nil && json.Unmarshal(body, &report) == nil && len(report.Lines) == 7 && len(report.Budgets) == 3
	}
	require.Eventually(t, complete, patience, time.Second, "three tenants and four states, and three budgets: %+v", &report)
	assert.Equal(t, "USD", report.Currency)
	var lines []string
	for _, l := range report.Lines {
		lines = append(lines, l.State+" "+l.Group.Tenant)
		require.NotNil(t, l.Cost, "%+v has no price", l)
	}
	assert.ElementsMatch(t, []string{"held inference", "held training", "held notebooks", "free ", "stranded ", "unavailable ", "unknown "}, lines)
	assert.Zero(t, report.Total.Unpriced)
	assert.Positive(t, report.Total.Cost)
	for _, b := range report.Budgets {
		assert.Positive(t, b.Ratio, "%s is not used", b.Name)
		assert.Equal(t, map[string]float64{"inference": 3, "training": 0.12, "fleet": 400}[b.Name], b.Limit, b.Name)
		assert.InDelta(t, b.Ratio*b.Limit, b.Used, 1e-6, b.Name)
		assert.Equal(t, 24*time.Hour, b.End.Sub(b.Start), b.Name)
	}
}
