// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// retireAfter is how long a row stays that does not change. Where most of the room is used,
// a row stays only as long as one of its hours may change.
const retireAfter = day

// Total is a row since its start, or what rows were that are retired.
type Total struct {
	Row
	// Start is that of the series of its service, or of the ledger where it is in none.
	Start int64
	// Retired is true for what counts in the capacity alone: the series of its services have
	// ended, and when one of them is back it begins with 0 and a new start.
	Retired bool
	// Cost and IdleCost are of what has a price; Unpriced is the time that has none. The key
	// of retired rows has no price.
	Cost, IdleCost prices.Money
	Unpriced       int64
}

// fold is the sum of retired rows.
type fold struct {
	flags          Flags
	total          Amounts
	start          int64
	cost, idleCost prices.Money
	unpriced       int64
}

// foldKey is what retired rows are added up in: the series in which they were emitted or,
// once that has ended, its part of the capacity.
type foldKey struct {
	Key
	ended bool
}

// series is the key of the metrics in which a row is emitted.
func (k *Key) series() foldKey {
	if k.State != Held {
		return k.capacity()
	}
	s := *k
	s.HostType, s.Region, s.Pool, s.Labels, s.Rate, s.Kind = "", "", "", "", prices.Rate{}, ""
	return foldKey{s, false}
}

func (k *Key) capacity() foldKey {
	return foldKey{Key{Class: Class{Cluster: k.Cluster, Model: k.Model, Capacity: k.Capacity}, State: k.State}, true}
}

// Totals returns all rows and what was retired, in no order.
func (l *totals) Totals() []Total {
	all := make([]Total, 0, len(l.rows)+len(l.folds))
	for _, r := range l.rows {
		f := r.fold()
		all = append(all, Total{Row{r.key, f.flags, f.total}, f.start, false, f.cost, f.idleCost, f.unpriced})
	}
	for k, f := range l.folds {
		all = append(all, Total{Row{k.Key, f.flags, f.total}, f.start, k.ended, f.cost, f.idleCost, f.unpriced})
	}
	return all
}

func (r *row) fold() fold {
	f := fold{flags: r.flags, total: r.total, start: r.start}
	if rate := r.key.Rate; rate.Known() {
		f.cost, f.idleCost = rate.Money(r.total.Time), rate.Money(r.total.Idle)
	} else {
		f.unpriced = r.total.Time
	}
	return f
}

func (f *fold) add(other *fold) {
	f.flags |= other.flags
	f.cost, f.idleCost = f.cost.Add(other.cost), f.idleCost.Add(other.idleCost)
	f.unpriced += other.unpriced
	a, b := &f.total, &other.total
	a.Time += b.Time
	a.Used += b.Used
	a.Idle += b.Idle
	a.Unmeasured += b.Unmeasured
	a.Unplaced += b.Unplaced
	a.Carbon += b.Carbon
	for i, mj := range b.Energy {
		a.Energy[i] += mj
	}
}

// retire makes room: rows of which all hours were emitted and can change no more, and which
// have not changed for a while, are added up with others. No sum becomes smaller by that:
// they go to the series in which they were emitted and, where nothing else is left of it, to
// the capacity.
func (l *totals) retire(now int64) {
	for _, r := range l.rows {
		if len(r.hours) == 0 && (len(l.rows) > l.max/4*3 || now-r.last-hour > retireAfter) {
			r.retired = true
		}
	}
	living := map[foldKey]bool{}
	for _, r := range l.rows {
		if !r.retired {
			living[r.key.series()] = true
		}
	}
	for k, r := range l.rows {
		if r.retired {
			f := r.fold()
			l.foldInto(k.series(), &f)
			delete(l.rows, k)
		}
	}
	for k, f := range l.folds {
		if !k.ended && !living[k] {
			l.foldInto(k.capacity(), f)
			delete(l.folds, k)
		}
	}
	for k := range l.started {
		if !living[k] {
			delete(l.started, k)
		}
	}
}

// startOf returns the start of the series of a key, of which an amount begins at a time.
func (l *totals) startOf(k *Key, at int64) int64 {
	if k.State != Held {
		return l.start
	}
	start, living := l.started[k.series()]
	if !living {
		start = max(at, l.start)
		l.started[k.series()] = start
	}
	return start
}

func (l *totals) foldInto(k foldKey, f *fold) {
	if k.ended {
		f.start = l.start
	}
	if known := l.folds[k]; known != nil {
		known.add(f)
		return
	}
	l.folds[k] = f
}
