// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// Queue holds the deliveries of one receiver. A delivery is ready when all
// earlier ones that have an event key in common with it have ended:
// a clearing waits behind its raising, also while the raising waits for its
// next attempt. No worker waits for either.
//
// Nothing in it blocks, except take.
type Queue struct {
	mu    sync.Mutex
	moved *sync.Cond // something that take looks at has changed

	limit   int // of waiting
	workers int // that may take
	running int // workers that do
	waiting int // parts that are promised a place, wait, or wait for their next attempt
	flying  int // deliveries taken and not ended

	lanes   map[string][]*Delivery // by key, in order; the first of each is ready, flying or waits for its next attempt
	ready   []*Delivery
	retries map[*Delivery]*time.Timer
	groups  groups

	paused time.Time // nothing is taken before
	resume *time.Timer

	// closed: nothing more comes, and take ends when what is ready is gone.
	closed bool
	// keep: which of what waits for its next attempt stays (it is stored); nil is
	// none. Closing makes the others ready, and what they wait for: rather too
	// early than never.
	keep     func(*Delivery) bool
	deadline time.Time // of closing
	over     bool      // nothing more is taken
}

// Limits are an endpoint's.
type Limits struct {
	Size    int // of waiting parts
	Workers int
	Group   int // parts of one delivery
}

// NewQueue returns a queue that gathers events into groups for groupWait; 0 is
// not at all.
func NewQueue(l Limits, groupWait time.Duration) *Queue {
	q := &Queue{
		lanes:   map[string][]*Delivery{},
		retries: map[*Delivery]*time.Timer{},
		groups:  groups{wait: groupWait, byPlace: map[string]*group{}, byKey: map[string]*group{}},
	}
	q.moved = sync.NewCond(&q.mu)
	q.Configure(l)
	return q
}

// Configure changes the limits. What is queued stays, whatever its number.
func (q *Queue) Configure(l Limits) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limit, q.workers, q.groups.limit = l.Size, l.Workers, l.Group
	q.moved.Broadcast()
}

// Reserve promises a place to one part, or reports false if the queue is full.
func (q *Queue) Reserve() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting >= q.limit {
		return false
	}
	q.waiting++
	return true
}

// Put queues a delivery of one part for which a place is reserved. It reports
// false if the queue takes no more.
func (q *Queue) Put(d *Delivery) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		q.waiting--
		return false
	}
	if q.groups.takes(d) {
		q.gather(d)
		return true
	}
	q.enqueue(d)
	return true
}

// Restore queues a delivery of an earlier process, if need be beyond the limit:
// it was accepted.
func (q *Queue) Restore(d *Delivery, now time.Time) {
	if d.Attempts == 0 {
		q.mu.Lock()
		q.waiting++
		q.mu.Unlock()
		q.Put(d)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting += len(d.Parts)
	if wait := d.Next.Sub(now); wait > 0 {
		q.retries[d] = time.AfterFunc(wait, func() { q.retryDue(d) })
	}
	q.enqueue(d)
}

// enqueue puts the delivery behind all that have a key in common with it.
func (q *Queue) enqueue(d *Delivery) {
	for _, p := range d.Parts {
		if g := q.groups.byKey[p.Key]; g != nil {
			q.dispatch(g) // what is in there was first
		}
	}
	for _, key := range d.keys() {
		lane := append(q.lanes[key], d)
		q.lanes[key] = lane
		if len(lane) > 1 {
			d.blockers++
		}
	}
	q.makeReady(d)
}

// makeReady makes the delivery ready if it waits for nothing.
func (q *Queue) makeReady(d *Delivery) {
	if d.blockers == 0 && q.retries[d] == nil {
		q.ready = append(q.ready, d)
		q.moved.Signal()
	}
}

// retryDue ends the wait of a delivery for its next attempt.
func (q *Queue) retryDue(d *Delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.retries[d] != nil && !(q.closed && q.kept(d)) {
		delete(q.retries, d)
		q.makeReady(d)
	}
}

// MissingWorkers returns how many workers have to be started, each of which calls take
// until it gets nothing.
func (q *Queue) MissingWorkers() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	more := max(0, q.workers-q.running)
	q.running += more
	return more
}

// Next waits for a delivery that is ready. It returns nil when the worker has to
// end: there is no more work, or there are too many workers.
func (q *Queue) Next() *Delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.over || q.running > q.workers {
			q.running--
			q.moved.Signal() // what woke this one may be meant for another
			return nil
		}
		paused := q.paused.After(time.Now())
		if len(q.ready) > 0 && !paused {
			d := q.ready[0]
			q.ready[0] = nil
			q.ready = q.ready[1:]
			q.waiting -= len(d.Parts)
			q.flying++
			return d
		}
		if q.closed && q.flying == 0 && (len(q.ready) == 0 || q.paused.After(q.deadline)) {
			q.running--
			q.moved.Broadcast()
			return nil
		}
		q.moved.Wait()
	}
}

// Done ends a delivery that was taken; those behind it may go.
func (q *Queue) Done(d *Delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flying--
	for _, key := range d.keys() {
		lane := q.lanes[key][1:]
		if len(lane) == 0 {
			delete(q.lanes, key)
			continue
		}
		q.lanes[key] = lane
		lane[0].blockers--
		q.makeReady(lane[0])
	}
	q.moved.Broadcast()
}

// Retry keeps a delivery that was taken until its next attempt.
func (q *Queue) Retry(d *Delivery, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flying--
	q.waiting += len(d.Parts)
	switch {
	case q.closed && q.kept(d), q.over:
	case q.closed:
		q.makeReady(d)
	default:
		q.retries[d] = time.AfterFunc(wait, func() { q.retryDue(d) })
	}
	q.moved.Broadcast()
}

// Pause lets nothing be taken before that time, and reports whether that was not so already.
func (q *Queue) Pause(until time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over || !until.After(q.paused) {
		return false
	}
	if q.resume != nil {
		q.resume.Stop()
	}
	q.paused = until
	q.resume = time.AfterFunc(time.Until(until), q.wake)
	q.moved.Broadcast()
	return true
}

func (q *Queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.moved.Broadcast()
}

// EndWaits ends every wait: the endpoint is gone, or its configuration has
// changed.
func (q *Queue) EndWaits() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = time.Time{}
	q.endRetries(func(*Delivery) bool { return true })
	q.endGroups()
	q.moved.Broadcast()
}

func (q *Queue) endRetries(which func(*Delivery) bool) {
	for _, d := range slices.SortedFunc(maps.Keys(q.retries), ByNumber) {
		if !which(d) {
			continue
		}
		q.retries[d].Stop()
		delete(q.retries, d)
		q.makeReady(d)
	}
}

// Close takes nothing more. Workers go on with what is there, until they are
// done with it or abandon ends them.
func (q *Queue) Close(keep func(*Delivery) bool, deadline time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.keep, q.deadline = true, keep, deadline
	q.endGroups()
	q.endRetries(func(d *Delivery) bool { return !q.kept(d) || q.withholds(d) })
	q.moved.Broadcast()
}

// withholds reports whether a delivery that does not stay waits behind this one.
func (q *Queue) withholds(d *Delivery) bool {
	return slices.ContainsFunc(d.keys(), func(key string) bool {
		return slices.ContainsFunc(q.lanes[key], func(other *Delivery) bool { return !q.kept(other) })
	})
}

// LastAttempt reports whether the delivery has no next attempt if it fails now.
func (q *Queue) LastAttempt(d *Delivery) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed && !q.kept(d)
}

// Keeps reports whether the delivery stays stored if a closed queue did not
// deliver it.
func (q *Queue) Keeps(d *Delivery) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.kept(d)
}

func (q *Queue) kept(d *Delivery) bool { return q.keep != nil && q.keep(d) }

// Stop lets workers take nothing more.
func (q *Queue) Stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	q.moved.Broadcast()
}

// Drain returns what is left when no worker is, in order.
func (q *Queue) Drain() []*Delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	q.endGroups()
	for _, timer := range q.retries {
		timer.Stop()
	}
	if q.resume != nil {
		q.resume.Stop()
	}
	seen := map[*Delivery]struct{}{}
	for _, lane := range q.lanes {
		for _, d := range lane {
			seen[d] = struct{}{}
		}
	}
	clear(q.retries)
	clear(q.lanes)
	q.ready, q.waiting = nil, 0
	return slices.SortedFunc(maps.Keys(seen), ByNumber)
}

// Lengths are how many parts wait, and how many deliveries of them for their
// next attempt.
func (q *Queue) Lengths() (waiting, retries int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int64(q.waiting), int64(len(q.retries))
}

// keys are those of the delivery's events, each once. What was asked for by
// hand waits for nothing, and nothing waits for it.
func (d *Delivery) keys() []string {
	keys := make([]string, 0, len(d.Parts))
	for _, p := range d.Parts {
		key := "key " + p.Key
		switch {
		case p.Trigger != audit.TriggerEvent:
			key = "number " + strconv.FormatUint(p.Number, 10)
		case p.Key == "":
			key = "id " + p.ID
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func ByNumber(a, b *Delivery) int { return cmp.Compare(a.Parts[0].Number, b.Parts[0].Number) }
