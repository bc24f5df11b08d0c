// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/budget"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// Budgets returns how much of each budget is used at a time, in their order.
func (l *Ledger) Budgets(now int64) []budget.Used {
	l.budgets.Forget(min(now, l.newest))
	l.feed()
	return l.budgets.Used(now)
}

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

func (w *writer) budgets(accounts []budget.Account) {
	w.num(int64(len(accounts)))
	for i := range accounts {
		a := &accounts[i]
		w.raw(a.Scope)
		w.num(a.Since, int64(len(a.Periods)))
		for _, p := range a.Periods {
			w.num(p.Start, p.Cost.Whole, p.Cost.Nano, p.Priced, int64(len(p.Time)))
			for rate, ms := range p.Time {
				w.num(rate.Nano, rate.Per, ms)
			}
		}
	}
}

func (r *reader) budgets() (accounts []budget.Account) {
	for range r.length() {
		a := budget.Account{Scope: r.raw(), Since: r.one()}
		for range r.length() {
			p := budget.Period{Start: r.one(), Time: map[prices.Rate]int64{}}
			r.num(&p.Cost.Whole, &p.Cost.Nano, &p.Priced)
			for range r.length() {
				rate := r.rate()
				ms := r.one()
				r.bad = r.bad || ms < 0
				p.Time[rate] = ms
			}
			r.bad = r.bad || !p.Cost.Valid() || p.Priced < 0
			a.Periods = append(a.Periods, p)
		}
		accounts = append(accounts, a)
	}
	return accounts
}

func (r *reader) rate() (rate prices.Rate) {
	r.num(&rate.Nano, &rate.Per)
	r.bad = r.bad || rate.Nano < 0 || rate.Per < 0
	return rate
}

// known is from when on all hours are known.
func (l *Ledger) known() int64 { return max(l.start, hourOf(l.kept)) }
