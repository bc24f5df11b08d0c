// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package budget adds up what budgets have used in the period that runs, without clock or
// I/O. Time comes as changes of UTC hours, in any order, and counts in the period in which
// its hour begins.
//
// Amounts are kept for each price and priced when they are read. What has no price is
// added up by itself: it is not free.
package budget

import (
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

const (
	// maxPeriods is how many periods are kept: the one that runs, and those that clocks
	// which are ahead have begun.
	maxPeriods = 4
	// maxRates is how many prices of a period are kept. More are added up as money.
	maxRates = 512
)

// Accounts are the amounts of all budgets. Budgets of the same time of the same tenants
// share an Account, so a limit may change without a loss.
type Accounts struct {
	budgets []prices.Budget
	of      []int // the account of each budget
	all     []Account
	over    int64 // newest time that Forget was called with
}

// Account is what tenants have used in periods. It is what is stored.
type Account struct {
	// Scope is what the account is of; an account of another scope is another one.
	Scope string
	// Since is from when on everything is counted, in ms.
	Since   int64
	Periods []Period
	budget  *prices.Budget
}

// Period is a period of an account.
type Period struct {
	Start int64                 // ms
	Time  map[prices.Rate]int64 // ms of a GPU; of the zero Rate, what has no price
	// Cost is what was added up of earlier prices, and Priced the ms of it.
	Cost   prices.Money
	Priced int64
}

// Used is how much of a budget is used.
type Used struct {
	Budget     prices.Budget
	Start, End time.Time // of the period that runs
	// Since is from when on everything is counted: after Start where the budget, or the
	// state that it is kept in, is newer.
	Since    time.Time
	Cost     prices.Money // of what has a price
	Time     int64        // ms of a GPU, in all
	Unpriced int64        // ms of it without a price
	// Ratio is 1 where all is used. Of a budget of money it is of what has a price, so at
	// least as much is used; Known is false where nothing has one.
	Ratio float64
	Known bool
}

// New returns accounts without amounts. kept are those of before, of which the ones with a
// scope of these budgets continue; the others begin at since. fresh reports, by number,
// which ones do.
func New(budgets []prices.Budget, kept []Account, since int64) (a *Accounts, fresh []bool) {
	a = &Accounts{budgets: budgets}
	for i := range budgets {
		b := &budgets[i]
		n := slices.IndexFunc(a.all, func(other Account) bool { return other.Scope == b.Scope() })
		if n < 0 {
			n = len(a.all)
			is := Account{Scope: b.Scope(), Since: since}
			known := slices.IndexFunc(kept, func(other Account) bool { return other.Scope == is.Scope })
			if known >= 0 {
				is = kept[known]
			}
			is.budget = b
			a.all, fresh = append(a.all, is), append(fresh, known < 0)
		}
		a.of = append(a.of, n)
	}
	return a, fresh
}

// Accounts are what is to be stored.
func (a *Accounts) Accounts() []Account { return a.all }

// Covering returns the numbers of the accounts that time counts in: of an owner with this
// tenant, or of no owner.
func (a *Accounts) Covering(owned bool, tenant string) (numbers []int32) {
	for i := range a.all {
		if a.all[i].budget.Counts(owned, tenant) {
			numbers = append(numbers, int32(i))
		}
	}
	return numbers
}

// Add counts time of the hour that begins at start in an account. It returns false where
// the hour is too far ahead of all others to be counted.
func (a *Accounts) Add(number int32, start int64, rate prices.Rate, ms int64) bool {
	is := &a.all[number]
	from, _ := is.budget.Period(time.UnixMilli(start))
	if kept, _ := is.budget.Period(time.UnixMilli(a.over)); a.over != 0 && from.Before(kept) {
		return true // of a period that is over
	}
	p := is.period(from.UnixMilli())
	if p == nil {
		return false
	}
	if _, known := p.Time[rate]; !known && len(p.Time) >= maxRates {
		p.fold()
	}
	p.Time[rate] += ms
	return true
}

func (is *Account) period(start int64) *Period {
	for i := range is.Periods {
		if is.Periods[i].Start == start {
			return &is.Periods[i]
		}
	}
	if len(is.Periods) >= maxPeriods {
		return nil
	}
	is.Periods = append(is.Periods, Period{Start: start, Time: map[prices.Rate]int64{}})
	return &is.Periods[len(is.Periods)-1]
}

// fold adds up all that has a price.
func (p *Period) fold() {
	for rate, ms := range p.Time {
		if rate.Known() {
			p.Cost = p.Cost.Add(rate.Money(ms))
			p.Priced += ms
			delete(p.Time, rate)
		}
	}
}

// Forget forgets the periods that are over at a time.
func (a *Accounts) Forget(now int64) {
	a.over = max(a.over, now)
	for i := range a.all {
		is := &a.all[i]
		kept, _ := is.budget.Period(time.UnixMilli(a.over))
		is.Periods = slices.DeleteFunc(is.Periods, func(p Period) bool { return p.Start < kept.UnixMilli() })
	}
}

// Used returns how much of each budget is used in the period of a time, in the order of the
// budgets.
func (a *Accounts) Used(now int64) []Used {
	all := make([]Used, 0, len(a.budgets))
	for i, b := range a.budgets {
		is := &a.all[a.of[i]]
		u := Used{Budget: b, Since: time.UnixMilli(is.Since).UTC()}
		u.Start, u.End = b.Period(time.UnixMilli(now))
		for _, p := range is.Periods {
			if p.Start == u.Start.UnixMilli() {
				u.read(&p)
			}
		}
		u.Ratio = b.Used(u.Cost, u.Time)
		u.Known = b.Hours > 0 || u.Unpriced == 0 || u.Unpriced < u.Time
		all = append(all, u)
	}
	return all
}

func (u *Used) read(p *Period) {
	u.Cost, u.Time = p.Cost, p.Priced
	for rate, ms := range p.Time {
		u.Time += ms
		if rate.Known() {
			u.Cost = u.Cost.Add(rate.Money(ms))
		} else {
			u.Unpriced += ms
		}
	}
}
