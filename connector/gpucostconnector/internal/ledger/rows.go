// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/budget"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// Key is what a row of the totals is of. Amounts of different keys never overlap: the
// rows add up to the fleet.
type Key struct {
	Class
	Profile string // of a MIG instance
	// Of rows with State Held. Namespace is the account where there is a SlurmCluster.
	Namespace, Service, Tenant, Pod, SlurmCluster string
	State                                         State
	// Rate is the price that holds; amounts are kept for each, and priced when they are
	// read.
	Rate prices.Rate
	Kind string
}

// Basis is what energy was computed from.
type Basis uint8

const (
	OfBoard    Basis = iota // the board's counter, and the whole board was one part
	OfShare                 // the board's counter, split by share
	Integrated              // the board's power
	numBasis
)

// String is the value of gpu.energy.basis.
func (b Basis) String() string { return [numBasis]string{"board", "share", "integrated"}[b] }

// Amounts are what a row contains. Used, Idle and Unmeasured are parts of Time, and
// Unplaced is no part of it.
type Amounts struct {
	Time, Used, Idle, Unmeasured, Unplaced int64           // ms of a GPU
	Energy                                 [numBasis]int64 // mJ
	Carbon                                 int64           // µg
}

// Flags are what a reader of a row has to know.
type Flags uint8

const (
	Contested    Flags = 1 << iota // shared with another owner that claims the whole
	BoardMetered                   // used is by the utilization of the whole board
	Estimated                      // shares, or the split of energy, are estimates
	allFlags     = Contested | BoardMetered | Estimated
)

// Other is the service of rows that are more than there may be.
const Other = "_other"

// row is a key's amounts, in total and of each UTC hour that may still change.
type row struct {
	key   Key
	flags Flags
	total Amounts
	hours []bucket
	start int64 // of its series
	last  int64 // start of the newest hour that it has an amount of
	// retired: it is in no map any more, and nothing may be added to it.
	retired bool

	budgets []int32 // its accounts of budgets
}

// bucket is the amounts of one UTC hour.
type bucket struct {
	start    int64
	revision uint32 // that was returned last; 0: none was
	dirty    bool   // it has changed since
	changed  bool   // since it was returned while the hour was running
	unsent   bool   // it was returned, and not acknowledged
	flags    Flags
	budgeted int64 // ms of Time that budgets have
	Amounts
}

// at returns the bucket of an hour for a change of it. The pointer holds until the next
// call.
func (r *row) at(start int64) *bucket {
	for i := len(r.hours) - 1; i >= 0; i-- {
		if r.hours[i].start == start {
			r.hours[i].dirty, r.hours[i].changed = true, true
			return &r.hours[i]
		}
	}
	r.last = max(r.last, start)
	r.hours = append(r.hours, bucket{start: start, dirty: true, changed: true})
	return &r.hours[len(r.hours)-1]
}

// mark notes what a reader of the row has to know, also of one hour.
func (r *row) mark(start int64, flags Flags) {
	r.flags |= flags
	if h := r.at(start); h.flags&flags != flags {
		h.flags |= flags
	}
}

// totals are the rows of all keys.
type totals struct {
	rows       map[Key]*row
	folds      map[foldKey]*fold
	started    map[foldKey]int64 // start of the series of services
	start      int64
	max        int
	overflowed int64
	unbudgeted int64
	budgets    *budget.Accounts
}

func hourOf(at int64) int64 { return at - at%hour }

// row returns the row of a key; where there is no room, the one of its tenant's other services
// in the namespace. Where there are too many of these it is that of all namespaces, and then,
// also of what has no owner, of all nodes with boards of the model and its price.
func (l *totals) row(k Key, at int64) *row {
	if r := l.rows[k]; r != nil {
		return r
	}
	if k.State == Held && len(l.rows) >= l.max {
		l.overflowed++
		k.Service, k.Pod = Other, ""
		if l.rows[k] == nil && len(l.rows) >= 2*l.max {
			k.Namespace, k.Tenant, k.SlurmCluster = Other, "", ""
		}
	}
	if l.rows[k] == nil && len(l.rows) >= 3*l.max {
		k.Class, k.Profile = Class{Cluster: k.Cluster, Model: k.Model, Capacity: k.Capacity}, ""
	}
	if r := l.rows[k]; r != nil {
		return r
	}
	r := &row{key: k, start: l.startOf(&k, at), last: hourOf(at), budgets: l.budgets.Covering(k.State == Held, k.Tenant)}
	l.rows[k] = r
	return r
}

// Row is amounts of a key.
type Row struct {
	Key   Key
	Flags Flags
	Amounts
}

// HourTotal is a row in one UTC hour. Of several revisions the highest counts.
type HourTotal struct {
	Row
	Start    int64
	Revision uint32 // 0 while the hour is running
}

// hoursUntil returns the hours that began until settled and changed since they were
// returned, and those that are running and changed. It forgets those that ended until keep.
func (l *totals) hoursUntil(settled, keep int64) (all []HourTotal) {
	for _, r := range l.rows {
		for i := range r.hours {
			h := &r.hours[i]
			switch {
			case h.start > settled:
				if !h.changed && !h.unsent {
					continue
				}
			case h.dirty:
				h.dirty = false
				h.revision++
			case !h.unsent:
				continue
			}
			h.changed, h.unsent = false, true
			all = append(all, HourTotal{Row{r.key, h.flags, h.Amounts}, h.start, h.revision})
		}
		r.hours = slices.DeleteFunc(r.hours, func(h bucket) bool { return !h.dirty && !h.unsent && h.start+hour <= keep })
	}
	return all
}

// HoursEmitted acknowledges what Hours returned last: it is returned again once it has
// changed.
func (l *totals) HoursEmitted() {
	for _, r := range l.rows {
		for i := range r.hours {
			r.hours[i].unsent = false
		}
	}
}
