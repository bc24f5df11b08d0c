// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/budget"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

func (w *writer) amounts(a *Amounts) {
	w.num(a.Time, a.Used, a.Idle, a.Unmeasured, a.Unplaced, a.Energy[0], a.Energy[1], a.Energy[2], a.Carbon)
}

func (w *writer) key(k *Key) {
	w.class(&k.Class)
	w.text(k.Profile, k.Namespace, k.Service, k.Tenant, k.Pod, k.Kind, k.SlurmCluster)
	w.num(int64(k.State), k.Rate.Nano, k.Rate.Per)
}

func (w *writer) row(r *row) {
	w.key(&r.key)
	w.num(int64(r.flags), r.start, r.last)
	w.amounts(&r.total)
	w.num(int64(len(r.hours)))
	for i := range r.hours {
		h := &r.hours[i]
		w.num((h.start-r.last)/hour, int64(h.revision), int64(h.flags))
		w.flag(h.dirty || h.unsent) // after a restart it is returned once more, as a revision of its own
		w.amounts(&h.Amounts)
	}
}

func (r *reader) amounts(a *Amounts) {
	for _, v := range []*int64{&a.Time, &a.Used, &a.Idle, &a.Unmeasured, &a.Unplaced, &a.Energy[0], &a.Energy[1], &a.Energy[2], &a.Carbon} {
		r.num(v)
		r.bad = r.bad || *v < 0
	}
}

func (r *reader) key() (k Key) {
	k.Class = *r.class()
	r.text(&k.Profile, &k.Namespace, &k.Service, &k.Tenant, &k.Pod, &k.Kind)
	r.cluster(&k.SlurmCluster)
	k.State, k.Rate = State(r.within(int64(NumStates))), r.rate()
	return k
}

func (r *reader) row() *row {
	is := row{key: r.key()}
	is.flags = Flags(r.within(int64(allFlags) + 1))
	r.num(&is.start, &is.last)
	r.amounts(&is.total)
	for range r.length() {
		h := bucket{start: is.last + r.one()*hour, revision: uint32(r.within(1 << 32)), flags: Flags(r.within(int64(allFlags) + 1))}
		h.dirty, h.changed = r.flag(), true
		r.amounts(&h.Amounts)
		is.hours = append(is.hours, h)
	}
	return &is
}

func (w *writer) folds(folds map[foldKey]*fold) {
	w.num(int64(len(folds)))
	for k, f := range folds {
		w.key(&k.Key)
		w.flag(k.ended)
		w.num(int64(f.flags), f.start, f.cost.Whole, f.cost.Nano, f.idleCost.Whole, f.idleCost.Nano, f.unpriced)
		w.amounts(&f.total)
	}
}

func (r *reader) folds(folds map[foldKey]*fold) {
	for range r.length() {
		k, f := foldKey{r.key(), r.flag()}, &fold{flags: Flags(r.within(int64(allFlags) + 1))}
		r.num(&f.start, &f.cost.Whole, &f.cost.Nano, &f.idleCost.Whole, &f.idleCost.Nano, &f.unpriced)
		r.amounts(&f.total)
		r.bad = r.bad || !f.cost.Valid() || !f.idleCost.Valid() || f.unpriced < 0 || folds[k] != nil
		folds[k] = f
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
