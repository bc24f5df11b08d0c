// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// queue holds the deliveries of one receiver. A delivery is ready when all
// earlier ones that have an event key in common with it have come to their end:
// a clearing waits behind its raising, also while the raising waits for its
// next attempt. No worker waits for either.
//
// Nothing in it blocks, except take.
type queue struct {
	mu    sync.Mutex
	moved *sync.Cond // something that take looks at has changed

	limit   int // of waiting
	workers int // that may take
	running int // workers that do
	waiting int // parts that are promised a place, wait, or wait for their next attempt
	flying  int // deliveries taken and not ended

	lanes   map[string][]*delivery // by key, in order; the first of each is ready, flying or waits for its next attempt
	ready   []*delivery
	retries map[*delivery]*time.Timer
	groups  groups

	paused time.Time // nothing is taken before
	resume *time.Timer

	// closed: nothing more comes, and take ends when what is ready is gone.
	closed bool
	// keep: which of what waits for its next attempt stays (it is stored); nil is
	// none. Closing makes the others ready, and what they wait for: rather too
	// early than never.
	keep     func(*delivery) bool
	deadline time.Time // of closing
	over     bool      // nothing more is taken
}

func newQueue(t *target, groupWait time.Duration) *queue {
	q := &queue{
		lanes:   map[string][]*delivery{},
		retries: map[*delivery]*time.Timer{},
		groups:  groups{wait: groupWait, byPlace: map[string]*group{}, byKey: map[string]*group{}},
	}
	q.moved = sync.NewCond(&q.mu)
	q.configure(t)
	return q
}

// configure takes over the target's limits.
func (q *queue) configure(t *target) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limit, q.workers, q.groups.limit = t.queueSize, t.workers, t.encoder.Group
	q.moved.Broadcast()
}

// reserve promises a place to one part, or says that there is none.
func (q *queue) reserve() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting >= q.limit {
		return false
	}
	q.waiting++
	return true
}

// put queues a delivery of one part for which a place is reserved. It reports
// false if the queue takes no more.
func (q *queue) put(d *delivery) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		q.waiting--
		return false
	}
	if q.groups.takes(d) {
		q.gather(d.parts[0])
		return true
	}
	q.line(d)
	return true
}

// restore queues a delivery of an earlier process, if need be beyond the limit:
// it was accepted.
func (q *queue) restore(d *delivery, now time.Time) {
	if d.Attempts == 0 {
		q.mu.Lock()
		q.waiting++
		q.mu.Unlock()
		q.put(d)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting += len(d.parts)
	if wait := d.Next.Sub(now); wait > 0 {
		q.retries[d] = time.AfterFunc(wait, func() { q.retry(d) })
	}
	q.line(d)
}

// line puts the delivery behind all that have a key in common with it.
func (q *queue) line(d *delivery) {
	for _, p := range d.parts {
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
	q.offer(d)
}

// offer makes the delivery ready if it waits for nothing.
func (q *queue) offer(d *delivery) {
	if d.blockers == 0 && q.retries[d] == nil {
		q.ready = append(q.ready, d)
		q.moved.Signal()
	}
}

// retry ends the wait of a delivery for its next attempt.
func (q *queue) retry(d *delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.retries[d] != nil && !(q.closed && q.kept(d)) {
		delete(q.retries, d)
		q.offer(d)
	}
}

// hire returns how many workers have to be started, each of which calls take
// until it gets nothing.
func (q *queue) hire() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	more := max(0, q.workers-q.running)
	q.running += more
	return more
}

// take waits for a delivery that is ready. It returns nil when the worker has to
// end: there is no more work, or there are too many workers.
func (q *queue) take() *delivery {
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
			q.waiting -= len(d.parts)
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

// done ends a delivery that was taken; those behind it may go.
func (q *queue) done(d *delivery) {
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
		q.offer(lane[0])
	}
	q.moved.Broadcast()
}

// again keeps a delivery that was taken until its next attempt.
func (q *queue) again(d *delivery, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flying--
	q.waiting += len(d.parts)
	switch {
	case q.closed && q.kept(d), q.over:
	case q.closed:
		q.offer(d)
	default:
		q.retries[d] = time.AfterFunc(wait, func() { q.retry(d) })
	}
	q.moved.Broadcast()
}

// pause lets nothing be taken before that time.
func (q *queue) pause(until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over || !until.After(q.paused) {
		return
	}
	if q.resume != nil {
		q.resume.Stop()
	}
	q.paused = until
	q.resume = time.AfterFunc(time.Until(until), q.wake)
	q.moved.Broadcast()
}

func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.moved.Broadcast()
}

// hasten ends every wait: of a receiver that is gone, or whose configuration
// has changed.
func (q *queue) hasten() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = time.Time{}
	q.endRetries(func(*delivery) bool { return true })
	q.endGroups()
	q.moved.Broadcast()
}

func (q *queue) endRetries(which func(*delivery) bool) {
	for _, d := range slices.SortedFunc(maps.Keys(q.retries), byNumber) {
		if !which(d) {
			continue
		}
		q.retries[d].Stop()
		delete(q.retries, d)
		q.offer(d)
	}
}

// close takes nothing more. Workers go on with what is there, until they are
// done with it or abandon ends them.
func (q *queue) close(keep func(*delivery) bool, deadline time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.keep, q.deadline = true, keep, deadline
	q.endGroups()
	q.endRetries(func(d *delivery) bool { return !q.kept(d) || q.withholds(d) })
	q.moved.Broadcast()
}

// withholds reports whether a delivery that does not stay waits behind this one.
func (q *queue) withholds(d *delivery) bool {
	return slices.ContainsFunc(d.keys(), func(key string) bool {
		return slices.ContainsFunc(q.lanes[key], func(other *delivery) bool { return !q.kept(other) })
	})
}

// closing reports whether the delivery has no next attempt if it fails now.
func (q *queue) closing(d *delivery) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed && !q.kept(d)
}

// keeps reports whether the delivery stays stored if a closed queue did not
// deliver it.
func (q *queue) keeps(d *delivery) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.kept(d)
}

func (q *queue) kept(d *delivery) bool { return q.keep != nil && q.keep(d) }

// abandon lets workers take nothing more.
func (q *queue) abandon() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	q.moved.Broadcast()
}

// empty returns what is left when no worker is, in order.
func (q *queue) empty() []*delivery {
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
	seen := map[*delivery]struct{}{}
	for _, lane := range q.lanes {
		for _, d := range lane {
			seen[d] = struct{}{}
		}
	}
	clear(q.retries)
	clear(q.lanes)
	q.ready, q.waiting = nil, 0
	return slices.SortedFunc(maps.Keys(seen), byNumber)
}

// lengths are how many parts wait, and how many deliveries of them for their
// next attempt.
func (q *queue) lengths() (waiting, retries int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int64(q.waiting), int64(len(q.retries))
}

// keys are those of the delivery's events, each once. What was asked for by
// hand waits for nothing, and nothing waits for it.
func (d *delivery) keys() []string {
	keys := make([]string, 0, len(d.parts))
	for _, p := range d.parts {
		key := "key " + p.Key
		switch {
		case p.Trigger != audit.TriggerEvent:
			key = "number " + strconv.FormatUint(p.number, 10)
		case p.Key == "":
			key = "id " + p.ID
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func byNumber(a, b *delivery) int { return cmp.Compare(a.parts[0].number, b.parts[0].number) }
