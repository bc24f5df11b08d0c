// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package prices

import (
	"errors"
	"fmt"
	"path"
	"time"
	_ "time/tzdata" // images without a shell have no time zones
)

// BudgetConfig is a budget as it is written.
type BudgetConfig struct {
	Name     string `mapstructure:"name"`
	Tenant   string `mapstructure:"tenant"` // a pattern; empty: the whole fleet
	Cost     string `mapstructure:"cost"`
	Hours    string `mapstructure:"hours"`
	Period   string `mapstructure:"period"`
	Timezone string `mapstructure:"timezone"`
}

// Periods of budgets.
const (
	Day   = "day"
	Week  = "week" // from Monday
	Month = "month"
)

// Budget is how much a tenant may use in a period. Exactly one limit is set.
type Budget struct {
	Name, Tenant string
	Cost         int64 // in billionths of the currency; 0: there is no such limit
	Hours        int64 // in milliseconds of a GPU; likewise
	period       string
	zone         *time.Location
}

// NewBudgets returns some budgets, or every mistake in them with its key and remedy.
func NewBudgets(configs []BudgetConfig) ([]Budget, error) {
	var errs []error
	names := map[string]bool{}
	all := make([]Budget, 0, len(configs))
	for i, c := range configs {
		refuse := func(key, format string, args ...any) {
			errs = append(errs, fmt.Errorf("budgets::%d::%s: %s", i, key, fmt.Sprintf(format, args...)))
		}
		b := Budget{Name: c.Name, Tenant: c.Tenant, period: c.Period}
		if c.Name == "" || names[c.Name] {
			refuse("name", "%q: set a name that no other budget has", c.Name)
		}
		names[c.Name] = true
		if _, err := path.Match(c.Tenant, ""); err != nil {
			refuse("tenant", "%q is no pattern: write a tenant, with * for any text", c.Tenant)
		}
		b.read(&c, refuse)
		all = append(all, b)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return all, nil
}

func (b *Budget) read(c *BudgetConfig, refuse func(key, format string, args ...any)) {
	switch {
	case (c.Cost == "") == (c.Hours == ""):
		refuse("cost", "set either cost or hours")
	case c.Cost != "":
		n, err := ParseDecimal(c.Cost)
		if err != nil || n == 0 {
			refuse("cost", "%q: write an amount above 0 as text, such as \"5000\"", c.Cost)
		}
		b.Cost = n
	default:
		n, err := ParseDecimal(c.Hours)
		if err != nil || n < nano/1000 {
			refuse("hours", "%q: write GPU hours above 0 as text, such as \"720\"", c.Hours)
		}
		b.Hours = n / 1000 * 3600 / 1000
	}
	if c.Period != Day && c.Period != Week && c.Period != Month {
		refuse("period", "%q: use %s, %s or %s", c.Period, Day, Week, Month)
	}
	zone := c.Timezone
	if zone == "" {
		zone = "UTC"
	}
	var err error
	if b.zone, err = time.LoadLocation(zone); err != nil || zone == "Local" {
		refuse("timezone", "%q is not known: use a name such as UTC or Europe/Berlin", c.Timezone)
	}
}

// Covers reports whether the budget is for a tenant.
func (b *Budget) Covers(tenant string) bool { return b.Tenant == "" || glob(b.Tenant, tenant) }

// Counts reports whether time counts in the budget: that of a tenant, or that without an
// owner, which a budget of the whole fleet has to pay for too.
func (b *Budget) Counts(owned bool, tenant string) bool {
	if !owned {
		return b.Tenant == ""
	}
	return b.Covers(tenant)
}

// Scope is what the budget is of, without its name and its limit.
func (b *Budget) Scope() string { return b.period + " in " + b.zone.String() + " of " + b.Tenant }

// Period returns the period that a time is in: from start, and before end.
func (b *Budget) Period(at time.Time) (start, end time.Time) {
	year, month, day := at.In(b.zone).Date()
	switch b.period {
	case Month:
		return b.begin(year, month, 1), b.begin(year, month+1, 1)
	case Week:
		monday := day - (int(at.In(b.zone).Weekday())+6)%7
		return b.begin(year, month, monday), b.begin(year, month, monday+7)
	}
	return b.begin(year, month, day), b.begin(year, month, day+1)
}

// begin returns the first instant of a day. Where clocks change, midnight may not exist or occur
// twice.
func (b *Budget) begin(year int, month time.Month, day int) time.Time {
	midnight := time.Date(year, month, day, 0, 0, 0, 0, b.zone)
	want := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	since, until := midnight.ZoneBounds()
	if midnight.Format(time.DateOnly) < want { // it is in the gap
		return until
	}
	before := since.Add(-1)
	switch {
	case since.IsZero():
	case before.In(b.zone).Format(time.DateOnly) == want: // it is the second one
		_, offset := before.In(b.zone).Zone()
		_, later := midnight.Zone()
		return midnight.Add(time.Duration(later-offset) * time.Second)
	case since.Format(time.DateOnly) == want: // the gap began before midnight
		return since
	}
	return midnight
}

// Every returns how long a period is, and the time zone in which it begins at midnight.
func (b *Budget) Every() (period, timezone string) { return b.period, b.zone.String() }

// PeriodAt returns the period that a time is in, as Budget.Period does; ok is false where
// there is no such period or time zone.
func PeriodAt(period, timezone string, at time.Time) (start, end time.Time, ok bool) {
	b := Budget{period: period}
	ok = true
	b.read(&BudgetConfig{Hours: "1", Period: period, Timezone: timezone}, func(string, string, ...any) { ok = false })
	if !ok {
		return time.Time{}, time.Time{}, false
	}
	start, end = b.Period(at)
	return start, end, true
}

// Used is how much of the budget is: 1 is all.
func (b *Budget) Used(cost Money, ms int64) float64 {
	if b.Cost > 0 {
		return cost.Float() * nano / float64(b.Cost)
	}
	return float64(ms) / float64(b.Hours)
}
