// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/budget"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// feed counts in the budgets what hours have gained since it was last called. It must be
// called before an hour is forgotten, and before budgets are stored.
func (l *totals) feed() {
	for _, r := range l.rows {
		for i := range r.hours {
			if h := &r.hours[i]; h.Time > h.budgeted {
				for _, number := range r.budgets {
					l.feedOne(number, r, h.start, h.Time-h.budgeted)
				}
				h.budgeted = h.Time
			}
		}
	}
}

func (l *totals) feedOne(number int32, r *row, start, ms int64) {
	if !l.budgets.Add(number, start, r.key.Rate, ms) {
		l.unbudgeted += ms
	}
}

// resume continues the budgets that were stored. New ones begin with the hours that are
// still known.
func (l *totals) resume(budgets []prices.Budget, stored []budget.Account, since int64) {
	var fresh []bool
	l.budgets, fresh = budget.New(budgets, stored, since)
	for _, r := range l.rows {
		r.budgets = l.budgets.Covering(r.key.State == Held, r.key.Tenant)
		for i := range r.hours {
			h := &r.hours[i]
			h.budgeted = h.Time
			for _, number := range r.budgets {
				if fresh[number] {
					l.feedOne(number, r, h.start, h.Time)
				}
			}
		}
	}
}
