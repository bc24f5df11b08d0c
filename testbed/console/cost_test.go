// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// Rows of usage are in the store's own log with both engines, budgets are metrics.
func TestCost(t *testing.T) {
	api := free(t)
	inside := newStore(t, func(c *gpustoreextension.Config) { c.API.NetAddr.Endpoint = api })
	outside := newStore(t, func(c *gpustoreextension.Config) { c.Engine, c.Prometheus.URL = "prometheus", "http://"+api })
	write(t, inside, 0.25, "__name__", "gpu_budget_used_ratio", "gpu_budget_name", "ml", "gpu_budget_kind", "cost")
	write(t, inside, 40, "__name__", "gpu_budget_limit_cost", "gpu_budget_name", "ml", "gpu_budget_kind", "cost", "gpu_tenant", "ml-*", "gpu_cost_currency", "USD", "gpu_budget_period", "day", "gpu_budget_timezone", "UTC")
	write(t, inside, 7200, "__name__", "gpu_budget_limit_time_seconds", "gpu_budget_name", "fleet", "gpu_budget_kind", "hours", "gpu_budget_period", "day", "gpu_budget_timezone", "UTC")
	hour := time.Now().UTC().Truncate(time.Hour)
	rows := []usage.Row{
		{Key: usage.Key{State: usage.Held, Tenant: "a", Currency: "USD", RateNano: 2_950_000_000, RatePer: 1, Kind: "list"}, Hour: hour.Add(-time.Hour), Revision: 1, Amounts: usage.Amounts{Time: 7_200_000, Used: 3_600_000, Carbon: -1}},
		{Key: usage.Key{State: usage.Free, Currency: "USD", RateNano: 2_950_000_000, RatePer: 1, Kind: "list"}, Hour: hour, Open: true, Amounts: usage.Amounts{Time: 900_000, Carbon: -1}},
	}
	for _, s := range []store.Store{inside, outside} {
		require.NoError(t, s.AppendUsage(t.Context(), rows))
		url := console(t, s)
		status, body := get(t, url+"/api/v1/cost?since=24h&by=tenant")
		require.Equal(t, http.StatusOK, status, "%s", body)
		var a consoleapi.CostAnswer
		require.NoError(t, json.Unmarshal(body, &a))
		assert.Equal(t, "8100", a.Total.Time.String())
		assert.Equal(t, "6.6375", a.Total.Cost.String())
		assert.Equal(t, "5.9", a.Lines[0].Cost.String())
		assert.Equal(t, []time.Time{hour}, a.OpenHours)
		require.Len(t, a.Budgets, 2)
		fleet, ml := a.Budgets[0], a.Budgets[1]
		assert.Equal(t, "2", fleet.Limit.String())
		assert.Nil(t, fleet.Ratio, "how much is used is not known")
		assert.Equal(t, 0.25, *ml.Ratio)
		assert.Equal(t, []string{"ml-*", "10", "40"}, []string{*ml.Tenant, ml.Used.String(), ml.Limit.String()})
		assert.Equal(t, 24*time.Hour, ml.End.Sub(*ml.Start))
		status, body = get(t, url+"/api/v1/cost?format=focus")
		require.Equal(t, http.StatusOK, status, "%s", body)
		assert.Equal(t, 3, strings.Count(string(body), "\n"), "%s", body)
		status, body = get(t, url+"/api/v1/events")
		require.Equal(t, http.StatusOK, status)
		assert.NotContains(t, string(body), "gpu.usage")
	}
}
