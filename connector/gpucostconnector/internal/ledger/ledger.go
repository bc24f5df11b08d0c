// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package ledger accounts for the time and the energy of GPUs, without clock, goroutine or
// I/O: points come with their time, and all that is kept can be written and read back.
//
// A board is a physical GPU. Its account runs from its first point to the newest one that
// is settled, and every millisecond between is in exactly one state. An interval between
// two snapshots of a board belongs to the snapshot at its beginning, and is credited when
// the snapshot at its end is complete: when a later point of the board arrives. So nothing
// is credited ahead, and it does not matter how points are grouped into batches.
//
// Times are milliseconds since the Unix epoch, amounts of time milliseconds of a whole
// GPU, energy millijoules, carbon dioxide micrograms: all are integers. A Ledger is not
// safe for concurrent use.
package ledger

import (
	"maps"
	"math"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/budget"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// State is what a part of a board is at a time.
type State uint8

const (
	Held        State = iota // an owner has it
	Free                     // it is allocatable, and has no owner
	Stranded                 // no instance covers it: nothing can own it
	Unavailable              // it has no owner, and can have none now
	Unknown                  // what it is cannot be known
	NumStates
)

// String is the value of gpu.capacity.state.
func (s State) String() string {
	return [NumStates]string{"held", "free", "stranded", "unavailable", "unknown"}[s]
}

const (
	second = int64(1000)
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// Config is how to account. Durations are milliseconds, and all values but the functions
// and Staleness must be set.
type Config struct {
	AllocationTTL  int64 // a gap up to it belongs to the snapshot before it
	Bridge         int64 // and one up to it if the owners at both ends are the same
	CloseAfter     int64 // a silent board is closed
	UnavailableFor int64 // so is one that its living node does not list
	Staleness      int64 // how long a utilization holds; 0: it follows the gaps between its points
	IdleThreshold  int64 // in millionths
	IdleFor        int64
	MaxRows        int
	MaxBoards      int // and that many parts that could not be placed
	PerPod         bool
	// Price returns the price of a part of a board at a time. nil: there are no prices.
	Price func(of *Priced, at int64) Price
	// PricedFrom is from when on Price is asked after a restart: what was held before keeps
	// the price that was stored with it.
	PricedFrom int64
	// Carbon returns how many milligrams of carbon dioxide a kilowatt-hour causes,
	// overhead of the data centre included. nil and false: not known.
	Carbon func(c *Class, at int64) (milligrams int64, ok bool)
	// IdleWatts returns what a board of a class burns when nothing runs on it. nil: energy is
	// split by share. Else what is above it is split by share and activity, where it is known.
	IdleWatts func(c *Class) (milliwatts int64, ok bool)
	// Budgets are added up in the periods that run.
	Budgets []prices.Budget
}

// Class is what distinguishes boards in the totals, and what prices depend on. Pool is the
// node pool, Labels the node labels that price rules match, in the form "k=v,k=v", sorted.
type Class struct{ Cluster, Model, HostType, Region, Capacity, Pool, Labels string }

// Priced is what a price is asked for.
type Priced struct {
	Class *Class
	Node  string
	// Boards is how many physical boards the node has, those included that it does not list
	// now.
	Boards int64
	// Profile is the MIG profile of an instance and Share its share, else empty and Whole.
	Profile string
	Share   share.Fraction
}

// Price is what a whole GPU costs, also for an instance of it.
type Price struct {
	Rate  prices.Rate // the zero Rate: not known
	Kind  string      // of the price: prices.KindList or KindContracted; empty where it is not known
	Until int64       // it holds until then, a time after the one asked for
}

// Owner is what holds a part of a board, and where its time is added up.
type Owner struct {
	Namespace, Pod, Container, UID string
	Service, Tenant                string
	SlurmCluster                   string // of a job; then Namespace is its account
}

// ofJob reports whether the owner is a job of Slurm.
func (o *Owner) ofJob() bool { return o != nil && o.SlurmCluster != "" }

// same reports whether two owners are one: by pod, and by its uid where both know it.
func (o *Owner) same(p *Owner) bool {
	if o == nil || p == nil {
		return o == p
	}
	return o.Pod == p.Pod && o.Namespace == p.Namespace && o.Container == p.Container && o.SlurmCluster == p.SlurmCluster &&
		(o.UID == p.UID || o.UID == "" || p.UID == "")
}

// Counts are what the ledger reports about itself, since it was made.
type Counts struct {
	Late           int64 // points before what is accounted
	Refused        int64 // points that a limit refused
	Bridged        int64 // ms of GPUs
	EnergyGap      int64 // ms of which the energy is credited to nothing
	EnergyLost     int64 // mJ that were not credited when their account was closed, or a counter appeared
	Oversubscribed int64 // snapshots with shares above their board
	Overflowed     int64 // rows that were added up in another
	Unbudgeted     int64 // ms that are too far ahead for a budget
}

// Ledger is the accounts of all boards and the totals of all rows.
type Ledger struct {
	books
	nodes  map[nodeKey]*node
	boards map[string]*board
	parts  int              // of boards: those that are no boards, but parts that could not be placed
	closed [NumStates]int64 // of accounts that were closed
	kept   int64            // hours that ended until then are forgotten
	newest int64            // time of the newest snapshot
	// ended is until when boards were accounted of which the account is closed.
	ended map[string]int64
}

// books are what accounts are credited with.
type books struct {
	totals
	cfg    Config
	counts Counts

	amounts []int64 // scratch of credit
	energy  []int64 // and of settle
	weights []int64
}

type nodeKey struct{ cluster, name string }

// New returns a Ledger without boards. start is the start time of its counters.
func New(cfg Config, start int64) *Ledger {
	accounts, _ := budget.New(cfg.Budgets, nil, start)
	return &Ledger{
		books:  books{totals: totals{rows: map[Key]*row{}, folds: map[foldKey]*fold{}, started: map[foldKey]int64{}, start: start, max: cfg.MaxRows, budgets: accounts}, cfg: cfg},
		nodes:  map[nodeKey]*node{},
		boards: map[string]*board{},
		ended:  map[string]int64{},
	}
}

// Start is the start time of the counters.
func (l *Ledger) Start() int64 { return l.start }

// Counts are what happened since New or Restore.
func (l *Ledger) Counts() Counts {
	counts := l.counts
	counts.Overflowed, counts.Unbudgeted = l.overflowed, l.unbudgeted
	return counts
}

// Boards is the number of open accounts.
func (l *Ledger) Boards() int { return len(l.boards) }

// Account is what one board's account contains.
type Account struct {
	Board        string
	First, Until int64
	States       [NumStates]int64
}

// Accounts calls f with each open account of a physical board, in no order.
func (l *Ledger) Accounts(f func(Account)) {
	for _, b := range l.boards {
		if !b.virtual {
			f(Account{b.id, b.first, b.until, b.states})
		}
	}
}

// Closed is the time of all accounts that were closed, by state.
func (l *Ledger) Closed() [NumStates]int64 { return l.closed }

// Behind is until when all boards are accounted of which a point has come since the last
// call, late ones included; 0 if none has.
func (l *Ledger) Behind() int64 {
	oldest := int64(0)
	for _, b := range l.boards {
		if b.arrived && b.until != 0 && (oldest == 0 || b.until < oldest) {
			oldest = b.until
		}
		b.arrived = false
	}
	return oldest
}

// Classes calls f with what the price of a whole board may depend on, once for each node
// and class of physical boards with an open account, with the number of these boards.
func (l *Ledger) Classes(f func(of *Priced, boards int64)) {
	of := map[Class]int64{}
	for _, n := range l.nodes {
		clear(of)
		for _, b := range n.boards {
			if !b.virtual && b.until != 0 {
				of[*b.class]++
			}
		}
		for class, boards := range of {
			f(&Priced{Class: &class, Node: n.key.name, Boards: n.physical(), Share: share.Whole}, boards)
		}
	}
}

// Node reports at a time whether a node is cordoned or its MIG layout being changed: then
// what has no owner is unavailable.
func (l *Ledger) Node(cluster, name string, at int64, unusable bool) {
	n := l.node(cluster, name)
	if now := &n.unusable[0]; at > now.at && unusable != now.is {
		n.unusable[1] = *now
		now.at, now.is = at, unusable
	}
}

func (l *Ledger) node(cluster, name string) *node {
	key := nodeKey{cluster, name}
	n := l.nodes[key]
	if n == nil {
		n = &node{key: key}
		l.nodes[key] = n
	}
	return n
}

// Empty reports that a node has no devices any more: its accounts are closed.
func (l *Ledger) Empty(cluster, name string, at int64) {
	n := l.nodes[nodeKey{cluster, name}]
	if n == nil || at < n.newest {
		return
	}
	for len(n.boards) > 0 {
		b := n.boards[0]
		l.ended[b.id] = at
		l.finish(b, at)
	}
}

// Complete reports that the snapshot of a node at a time is complete, of the pods or of the jobs: of
// what could not be placed before, parts that are not in it have ended.
func (l *Ledger) Complete(cluster, name string, jobs bool, at int64) {
	n := l.nodes[nodeKey{cluster, name}]
	if n == nil || l.parts == 0 {
		return
	}
	for i := len(n.boards) - 1; i >= 0; i-- {
		if b := n.boards[i]; b.virtual && b.job == jobs && max(b.open, b.until) < at {
			l.finish(b, at)
		}
	}
}

// finish closes an account at the time of a snapshot without the board, or the part.
func (l *Ledger) finish(b *board, at int64) {
	l.seal(b)
	if at-b.until <= l.cfg.AllocationTTL {
		l.credit(b, at, NumStates)
	}
	l.close(b)
}

// Expire closes the accounts of boards that have been silent for CloseAfter at now. A snapshot
// after which nothing has come for AllocationTTL is complete. While nothing comes nothing is closed:
// the clock may only be ahead.
func (l *Ledger) Expire(now int64) {
	closed := min(now, l.newest) - l.cfg.CloseAfter // what is older
	for _, b := range l.boards {
		switch {
		case max(b.until, b.open) < closed:
			l.seal(b)
			l.close(b)
		case b.quiet == 0:
			b.quiet = now
		case b.open != 0 && now-b.quiet > l.cfg.AllocationTTL:
			l.seal(b)
		}
	}
	for key, n := range l.nodes {
		if len(n.boards) == 0 && n.newest < closed {
			delete(l.nodes, key)
		}
	}
}

// Utilization reports how busy a device was, 0 to 1: of the board or, with its own id, of
// a part of it. What is outside of that is no utilization.
func (l *Ledger) Utilization(boardID, device string, at int64, value float64) {
	b := l.boards[boardID]
	if b == nil || !(value >= 0 && value <= 1) {
		return
	}
	m := b.meterOf(device)
	if m == nil {
		l.counts.Refused++
		return
	}
	m.add(piece{at, 0, int32(value*million + 0.5), value*million >= float64(l.cfg.IdleThreshold)}, b.until, l.cfg.Staleness)
}

// Energy reports the counter of a board's energy in joules. maxWatts is the greatest power
// of the board, 0 if it is not known: more than twice of it is no energy.
func (l *Ledger) Energy(boardID string, at int64, joules, maxWatts float64) {
	const most = math.MaxInt64 / 4000
	if b := l.boards[boardID]; b != nil && b.metered(at, true) && joules >= 0 && joules < most {
		l.count(b, at, int64(math.Round(joules*1000)), maxWatts)
	}
}

// Power reports the power of a board in watts, which is integrated where there is no
// counter of its energy.
func (l *Ledger) Power(boardID string, at int64, watts float64) {
	const most = 1e6
	if b := l.boards[boardID]; b != nil && b.metered(at, false) && watts >= 0 && watts < most {
		l.integrate(b, at, int64(math.Round(watts*1000)))
	}
}

// Hours returns the rows of hours that have ended long enough ago that they only change by
// what was missing then, with a revision, and those of later hours, without. Each is
// returned if it was not returned as it is now, or not acknowledged with HoursEmitted since.
// That holds across Encode and Restore too, so that no revision is lost. What can change no
// more is forgotten.
func (l *Ledger) Hours(now int64) []HourTotal {
	l.feed()
	settled := now - hour - l.cfg.IdleFor - l.cfg.AllocationTTL
	// A clock that is ahead for a while forgets nothing.
	keep := min(settled-l.cfg.Bridge, l.newest)
	for _, b := range l.boards {
		keep = min(keep, b.oldestPending())
	}
	l.kept = max(l.kept, keep)
	maps.DeleteFunc(l.ended, func(_ string, until int64) bool { return until <= l.kept })
	hours := l.hoursUntil(settled, l.kept)
	l.retire(now)
	return hours
}

// Budgets returns how much of each budget is used at a time, in their order.
func (l *Ledger) Budgets(now int64) []budget.Used {
	l.budgets.Forget(min(now, l.newest))
	l.feed()
	return l.budgets.Used(now)
}

// known is from when on all hours are known.
func (l *Ledger) known() int64 { return max(l.start, hourOf(l.kept)) }
