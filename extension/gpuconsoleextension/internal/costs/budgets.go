// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package costs // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/costs"

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

type budgetKey struct{ name, kind string }

// limit is what a budget allows, and of what.
type limit struct {
	amount                             float64 // of the currency, or GPU hours
	tenant, currency, period, timezone string
}

// Budgets are those that gpu_cost reports, by name.
func Budgets(ctx context.Context, s store.Querier, now time.Time) ([]consoleapi.CostBudget, error) {
	used, err := samples(ctx, s, queries.BudgetsUsed(queries.All), now)
	if err != nil {
		return nil, err
	}
	allowed, err := samples(ctx, s, queries.BudgetLimits(queries.All), now)
	if err != nil {
		return nil, err
	}
	budgets := map[budgetKey]*consoleapi.CostBudget{}
	at := func(m model.Metric) *consoleapi.CostBudget {
		k := keyOf(m)
		if budgets[k] == nil {
			budgets[k] = &consoleapi.CostBudget{Name: k.name, Kind: k.kind}
		}
		return budgets[k]
	}
	for _, sample := range used {
		ratio := float64(sample.Value)
		at(sample.Metric).Ratio = &ratio
	}
	limits := limitsOf(allowed)
	for _, sample := range allowed {
		b := at(sample.Metric)
		if l, agreed := limits[keyOf(sample.Metric)]; agreed {
			l.set(b, now)
		}
	}
	all := make([]consoleapi.CostBudget, 0, len(budgets))
	for _, k := range slices.SortedFunc(maps.Keys(budgets), func(a, b budgetKey) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.kind, b.kind))
	}) {
		all = append(all, *budgets[k])
	}
	return all, nil
}

func samples(ctx context.Context, s store.Querier, query string, now time.Time) (model.Vector, error) {
	result, err := s.Instant(ctx, query, now)
	if err != nil {
		return nil, err
	}
	vector, _ := result.Value.(model.Vector)
	return vector, nil
}

func keyOf(m model.Metric) budgetKey {
	return budgetKey{string(m[queries.Budget]), string(m[queries.BudgetKind])}
}

// limitsOf returns the limits on which all sources of a budget agree. While a changed one
// replaces another, or where two collectors have budgets of one name, the limit is absent.
func limitsOf(vector model.Vector) map[budgetKey]limit {
	limits, differs := map[budgetKey]limit{}, map[budgetKey]bool{}
	for _, sample := range vector {
		m := sample.Metric
		l := limit{
			float64(sample.Value), string(m[queries.Tenant]), string(m[queries.Currency]),
			string(m[queries.BudgetPeriod]), string(m[queries.BudgetTimezone]),
		}
		k := keyOf(m)
		if k.kind == names.BudgetHours {
			l.amount /= 3600
		}
		known, is := limits[k]
		differs[k] = differs[k] || is && known != l
		limits[k] = l
	}
	maps.DeleteFunc(limits, func(k budgetKey, _ limit) bool { return differs[k] })
	return limits
}

// set completes a budget by its limit.
func (l *limit) set(b *consoleapi.CostBudget, now time.Time) {
	if l.tenant != "" {
		b.Tenant = &l.tenant
	}
	b.Limit = decimal(l.amount)
	if b.Ratio != nil {
		b.Used = decimal(*b.Ratio * l.amount)
	}
	if start, end, ok := prices.PeriodAt(l.period, l.timezone, now); ok {
		start, end = start.UTC(), end.UTC()
		b.Start, b.End = &start, &end
	}
}

// decimal rounds to millionths: the products of floats have no exact decimals. It is nil
// where there is no number.
func decimal(value float64) *json.Number {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	n := json.Number(strconv.FormatFloat(math.Round(value*1e6)/1e6, 'f', -1, 64))
	return &n
}
