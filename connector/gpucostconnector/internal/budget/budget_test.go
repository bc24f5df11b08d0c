// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

var one = prices.Rate{Nano: 3_000_000_000, Per: 1}

const hour = int64(3_600_000)

func at(t *testing.T, text string) int64 {
	t.Helper()
	is, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return is.UnixMilli()
}

func budgets(t *testing.T, configs ...prices.BudgetConfig) []prices.Budget {
	t.Helper()
	all, err := prices.NewBudgets(configs)
	require.NoError(t, err)
	return all
}

// Time counts in the period of its hour, however late it comes.
func TestPeriods(t *testing.T) {
	a, fresh := New(budgets(t,
		prices.BudgetConfig{Name: "day", Cost: "12", Period: prices.Day, Timezone: "America/New_York"},
		prices.BudgetConfig{Name: "week", Hours: "10", Period: prices.Week},
		prices.BudgetConfig{Name: "month", Hours: "20", Period: prices.Month},
		prices.BudgetConfig{Name: "half", Hours: "1", Period: prices.Day, Timezone: "Asia/Kolkata"},
	), nil, at(t, "2026-03-01T00:00:00Z"))
	assert.Equal(t, []bool{true, true, true, true}, fresh)
	add := func(start string) {
		for n := range a.all {
			require.True(t, a.Add(int32(n), at(t, start), one, hour))
		}
	}
	ratios := func(now string) (all []float64) {
		a.Forget(at(t, now))
		for _, u := range a.Used(at(t, now)) {
			require.True(t, u.Known)
			all = append(all, u.Ratio)
		}
		return all
	}
	add("2026-03-08T04:00:00Z") // 23:00 of the day before
	add("2026-03-08T05:00:00Z") // the day on which clocks are set forward
	add("2026-03-09T03:00:00Z") // its last hour, and a Monday in UTC
	assert.Equal(t, []float64{.5, .1, .15, 1}, ratios("2026-03-09T03:59:00Z"))
	add("2026-03-08T20:00:00Z") // late
	assert.Equal(t, []float64{.75, .1, .2, 2}, ratios("2026-03-09T03:59:59Z"))
	// Midnight, 18:30 in UTC: the hour that has begun before it is of the day before.
	add("2026-03-09T18:00:00Z")
	assert.Equal(t, []float64{.25, .2, .25, 0}, ratios("2026-03-09T19:00:00Z"))
	add("2026-03-09T19:00:00Z")
	assert.Equal(t, []float64{.5, .3, .3, 1}, ratios("2026-03-09T19:59:00Z"))
	add("2026-02-28T23:00:00Z")
	assert.Equal(t, []float64{.5, .3, .3, 1}, ratios("2026-03-09T19:59:00Z"), "of periods that are over")
	assert.Equal(t, []float64{0, 0, 0, 0}, ratios("2026-04-06T12:00:00Z"))
	assert.Equal(t, "2026-04-06 00:00:00 -0400 EDT", a.Used(at(t, "2026-04-06T12:00:00Z"))[0].Start.String())
}

func TestTenants(t *testing.T) {
	a, _ := New(budgets(t,
		prices.BudgetConfig{Name: "fleet", Hours: "10", Period: prices.Day},
		prices.BudgetConfig{Name: "ml", Tenant: "ml", Hours: "10", Period: prices.Day},
		prices.BudgetConfig{Name: "all", Tenant: "*", Hours: "10", Period: prices.Day},
		prices.BudgetConfig{Name: "ml cost", Tenant: "ml", Cost: "10", Period: prices.Day},
	), nil, 0)
	assert.Equal(t, []int32{0}, a.Covering(false, ""), "what has no owner is paid for by the fleet")
	assert.Equal(t, []int32{0, 1, 2}, a.Covering(true, "ml"))
	assert.Equal(t, []int32{0, 2}, a.Covering(true, ""))
	assert.Len(t, a.all, 3, "two of one scope share an account")
}

// What has no price is not free.
func TestWithoutAPrice(t *testing.T) {
	a, _ := New(budgets(t, prices.BudgetConfig{Name: "cost", Cost: "6", Period: prices.Day}, prices.BudgetConfig{Name: "hours", Hours: "4", Period: prices.Day}), nil, 0)
	now := at(t, "2026-03-08T04:00:00Z")
	a.Forget(now)
	assert.True(t, a.Used(now)[0].Known, "nothing is used")
	a.Add(0, now, prices.Rate{}, hour)
	u := a.Used(now)
	assert.False(t, u[0].Known)
	assert.True(t, u[1].Known)
	assert.InDelta(t, .25, u[1].Ratio, 0)
	a.Add(0, now, one, hour)
	u = a.Used(now)
	assert.True(t, u[0].Known)
	assert.InDelta(t, .5, u[0].Ratio, 0, "at least")
	assert.Equal(t, []int64{2 * hour, hour}, []int64{u[0].Time, u[0].Unpriced})
	assert.Equal(t, prices.Money{Whole: 3}, u[0].Cost)
}

// A limit may change without a loss, and what is counted may not.
func TestConfigThatChanges(t *testing.T) {
	now := at(t, "2026-03-08T04:00:00Z")
	config := prices.BudgetConfig{Name: "a", Tenant: "ml", Hours: "4", Period: prices.Day}
	a, _ := New(budgets(t, config), nil, now)
	a.Add(0, now, one, hour)
	config.Name, config.Hours = "b", "2"
	b, fresh := New(budgets(t, config), a.Accounts(), now+hour)
	assert.Equal(t, []bool{false}, fresh)
	assert.InDelta(t, .5, b.Used(now + hour)[0].Ratio, 0)
	assert.Equal(t, now, b.Used(now + hour)[0].Since.UnixMilli())
	config.Timezone = "Europe/Berlin"
	c, fresh := New(budgets(t, config), a.Accounts(), now+hour)
	assert.Equal(t, []bool{true}, fresh)
	assert.Zero(t, c.Used(now + hour)[0].Ratio)
	assert.Equal(t, now+hour, c.Used(now + hour)[0].Since.UnixMilli())
}

func TestLimits(t *testing.T) {
	a, _ := New(budgets(t, prices.BudgetConfig{Name: "a", Cost: "4", Period: prices.Day}), nil, 0)
	now := at(t, "2026-03-08T04:00:00Z")
	a.Forget(now)
	for n := range int64(2000) {
		require.True(t, a.Add(0, now, prices.Rate{Nano: n, Per: 1}, hour))
	}
	assert.LessOrEqual(t, len(a.all[0].Periods[0].Time), maxRates)
	u := a.Used(now)[0]
	assert.Equal(t, []int64{2000 * hour, 0, 1999 * 1000}, []int64{u.Time, u.Unpriced, u.Cost.Nano})
	for n := range int64(maxPeriods - 1) {
		require.True(t, a.Add(0, now+(n+1)*24*hour, one, hour))
	}
	assert.False(t, a.Add(0, now+100*24*hour, one, hour), "a clock that is far ahead")
}
