// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"math"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/budget"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

var historyBudgets = func() []prices.Budget {
	all, err := prices.NewBudgets([]prices.BudgetConfig{
		{Name: "fleet", Cost: "1000", Period: prices.Month},
		{Name: "t0", Tenant: "t0", Hours: "1000", Period: prices.Day, Timezone: "Asia/Kolkata"},
		{Name: "t", Tenant: "t*", Cost: "1000", Period: prices.Week, Timezone: "America/New_York"},
	})
	if err != nil {
		panic(err)
	}
	return all
}()

type hourOfKey struct {
	Key
	start int64
}

// holds notes a violation: it is cheaper than an assertion for each of millions.
func (h *history) holds(is bool, format string, args ...any) {
	if !is {
		h.violated = true
		h.t.Errorf("seed %d: "+format, append([]any{h.seed}, args...)...)
	}
}

// flush is what a process does that nothing happens to.
func (h *history) flush() {
	hours := h.l.Hours(h.now)
	h.write()
	h.emit(hours)
	h.l.HoursEmitted()
}

func (h *history) write() {
	h.l.Budgets(h.now)
	h.stored, h.saved = h.l.Encode(), h.energy-h.l.Counts().EnergyLost
}

// restart is a new process with what was stored.
func (h *history) restart() {
	h.cfg.PricedFrom = h.now
	l, err := Restore(h.cfg, h.stored)
	if err != nil {
		h.t.Fatalf("seed %d: %v", h.seed, err)
	}
	h.l, h.energy = l, h.saved
	for _, b := range h.boards {
		b.ref = Ref{}
	}
	clear(h.first)
	clear(h.until)
	h.check()
	h.audit()
}

// emit is what the backends get: no counter falls, but that of a series which had ended.
func (h *history) emit(hours []HourTotal) {
	for _, is := range hours {
		k := hourOfKey{is.Key, is.Start}
		before := h.store[k]
		if is.Revision > 0 {
			h.holds(is.Revision > before.Revision || is == before, "two rows of one revision: %+v and %+v", before, is)
			h.holds(atLeast(&is.Amounts, &before.Amounts), "an hour became smaller: %+v, %+v", before, is)
			h.store[k] = is
		}
	}
	now := map[foldKey]*fold{}
	count := func(k foldKey, f fold) {
		if known := now[k]; known != nil {
			h.holds(known.start == f.start, "two starts in a series: %+v", k)
			known.add(&f)
		} else {
			now[k] = &f
		}
	}
	for _, total := range h.l.Totals() {
		f := fold{total.Flags, total.Amounts, h.l.Start(), total.Cost, total.IdleCost, total.Unpriced}
		count(total.Key.capacity(), f)
		f.start = total.Start
		if total.Key.State == Held && !total.Retired {
			count(total.Key.series(), f)
		}
	}
	for k, f := range now {
		if before := h.emitted[k]; before != nil && before.start == f.start {
			h.holds(atLeast(&f.total, &before.total) && f.unpriced >= before.unpriced && notLess(f.cost, before.cost) && notLess(f.idleCost, before.idleCost),
				"a counter fell: %+v, %+v, %+v", k, before, f)
		} else if before != nil {
			h.holds(!k.ended && f.start > before.start, "another start: %+v", k)
		}
		h.emitted[k] = f
	}
	for k := range h.emitted {
		h.holds(!k.ended || now[k] != nil, "a series of the capacity is gone: %+v", k)
	}
	h.audit()
}

func notLess(a, b prices.Money) bool {
	return a.Whole > b.Whole || a.Whole == b.Whole && a.Nano >= b.Nano
}

func atLeast(a, b *Amounts) bool {
	for i := range a.Energy {
		if a.Energy[i] < b.Energy[i] {
			return false
		}
	}
	return a.Time >= b.Time && a.Used >= b.Used && a.Idle >= b.Idle && a.Unmeasured >= b.Unmeasured && a.Unplaced >= b.Unplaced && a.Carbon >= b.Carbon
}

// audit compares the totals with the hours, those that were emitted and forgotten included,
// and the budgets with both.
func (h *history) audit() {
	all := make(map[hourOfKey]Amounts, len(h.store))
	for k, is := range h.store {
		all[k] = is.Amounts
	}
	for _, r := range h.l.rows {
		for i := range r.hours {
			b := &r.hours[i]
			h.holds(b.Idle+b.Unmeasured <= b.Time && b.Used+b.Unmeasured <= b.Time, "an hour has more than its time: %+v", b)
			all[hourOfKey{r.key, b.start}] = b.Amounts
		}
	}
	var hours, totals [NumStates]fold
	used := make([]budget.Used, len(historyBudgets))
	for k, a := range all {
		r := row{key: k.Key, total: a}
		f := r.fold()
		hours[k.State].add(&f)
		for i := range used {
			start, _ := historyBudgets[i].Period(time.UnixMilli(k.start))
			if now, _ := historyBudgets[i].Period(time.UnixMilli(h.now)); start.Equal(now) && historyBudgets[i].Counts(k.State == Held, k.Tenant) {
				used[i].Time += a.Time
				used[i].Unpriced += f.unpriced
				used[i].Cost = used[i].Cost.Add(f.cost)
			}
		}
	}
	for _, total := range h.l.Totals() {
		totals[total.Key.State].add(&fold{0, total.Amounts, total.Start, total.Cost, total.IdleCost, total.Unpriced})
	}
	for s := range totals {
		a, b := &totals[s], &hours[s]
		h.holds(a.total == b.total && a.unpriced == b.unpriced, "hours are not the totals: %s %+v %+v", State(s), a, b)
		h.holds(math.Abs(a.cost.Float()-b.cost.Float()) < 1e-4, "hours do not cost what the totals do: %+v %+v", a.cost, b.cost)
	}
	for i, is := range h.l.Budgets(h.now) {
		h.holds(is.Time == used[i].Time && is.Unpriced == used[i].Unpriced, "budget %s: %+v is not %+v", is.Budget.Name, is, used[i])
		h.holds(math.Abs(is.Cost.Float()-used[i].Cost.Float()) < 1e-4, "budget %s: %+v is not %+v", is.Budget.Name, is, used[i])
	}
}

// check is what holds of accounts and rows after every step.
func (h *history) check() {
	states := h.l.Closed()
	bound := int64(0)
	for _, began := range h.began {
		bound += h.now - began
	}
	h.l.Accounts(func(a Account) {
		sum := int64(0)
		for s, ms := range a.States {
			h.holds(ms >= 0, "a state below 0")
			sum += ms
			states[s] += ms
		}
		h.holds(max(a.Until, a.First)-a.First == sum, "states of %s are not its time", a.Board)
		h.holds(a.Until <= h.now, "credited ahead")
		if a.Until != 0 {
			h.holds(a.Until >= h.until[a.Board], "accounted backwards")
			h.holds(a.First == h.first[a.Board] || a.First >= h.until[a.Board], "a time in two accounts")
			h.first[a.Board], h.until[a.Board] = a.First, a.Until
		}
	})
	var rows [NumStates]int64
	energy := int64(0)
	count := func(s State, a *Amounts) {
		rows[s] += a.Time
		h.holds(a.Used+a.Unmeasured <= a.Time && a.Idle+a.Unmeasured <= a.Time && a.Used >= 0 && a.Idle >= 0 && a.Unmeasured >= 0, "%s has %+v", s, a)
		for _, mj := range a.Energy {
			energy += mj
		}
	}
	for _, r := range h.l.rows {
		count(r.key.State, &r.total)
	}
	for k, f := range h.l.folds {
		count(k.State, &f.total)
	}
	h.holds(states == rows, "rows are not the states of the boards: %v, %v", rows, states)
	total := int64(0)
	for _, ms := range states {
		total += ms
	}
	h.holds(total <= bound, "more time than there was")
	for _, b := range h.l.boards {
		energy += b.power.pending + b.power.later
	}
	h.holds(h.energy == energy+h.l.counts.EnergyLost, "energy: %d, %d", h.energy, energy)
}
