// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
)

const (
	window       = 5  // minutes of which a board's clock is the mean
	leastSamples = 10 // in it
	// mostApart is how far apart pages are at most of which there are enough in the window.
	mostApart = window * time.Minute / leastSamples
	leastBusy = 0.5
	// afterStart is how long a pod loads and warms up.
	afterStart = 10 * time.Minute
	// moreThrottled is by how much of the time more than its peers a board is throttled
	// where that is the cause.
	moreThrottled = 0.10
	// goneAfter is after how long without a point a board is forgotten.
	goneAfter = time.Hour
	// reasonFor is for how long a point about a reason against a board is true.
	reasonFor = 5 * time.Minute
	// settle is how long the parts of one page may arrive one after the other.
	settle = time.Second
	// clockSet is after how long without a later point an earlier one is used again.
	clockSet = 2 * time.Minute
)

// group is what peers have in common.
type group struct {
	service subject.Service
	model   string
	limit   float64 // of power, in W; 0: not known
}

// Board is a board that is compared with its peers.
type Board struct {
	subject.Device
	Member
	// Cause is why a slow board is slow, as far as it is known.
	Cause Cause
	// Explained is whether a reason against the board explains it, so that it needs no
	// event of its own.
	Explained bool
	// Condition is that of the event. The caller that reports the event advances it.
	Condition condition.Condition

	group     group
	restored  bool          // it was slow before a restart, and was not compared since
	seen      time.Duration // when the newest point arrived
	started   time.Duration // when its pod was seen first, or started
	start     string        // k8s.pod.start_time, as it was parsed last
	divided   time.Duration // when it had MIG instances or replicas last; 0: never
	open      sample        // the points of the newest time
	rare      int           // pages in a row that were further apart
	apart     time.Duration // the last of them
	minutes   [window + 1]minute
	limits    [2]float64 // of power: in effect, and set
	durations [throttles]duration
	reasons   map[string]time.Duration // when each was seen last
	published published
}

// openAt begins the points of another time. It reports whether they are not late.
func (b *Board) openAt(at pcommon.Timestamp, now time.Duration) bool {
	if at == b.open.at {
		return true
	}
	if at < b.open.at && now-b.seen < clockSet {
		return false
	}
	b.close()
	if gap := time.Duration(at - b.open.at); b.open.at == 0 || at < b.open.at || gap <= mostApart+settle || gap > condition.MaxGap {
		b.rare = 0
	} else {
		b.rare, b.apart = b.rare+1, gap
	}
	nan := math.NaN()
	b.open = sample{at: at, minute: int(now / time.Minute), clock: nan, busy: nan}
	b.seen = now
	return true
}

// present takes what the resource contains. Another pod begins with no past.
func (b *Board) present(facts *subject.Facts, start string, now time.Duration, wall time.Time) {
	if *facts == b.Facts && start == b.start {
		return
	}
	old := b.Facts.Owner
	if o := facts.Owner; o.Namespace != old.Namespace || o.Pod != old.Pod || o.Service != old.Service || o.Job.ID != old.Job.ID {
		b.started = now
		b.minutes, b.open = [window + 1]minute{}, sample{}
	}
	if start != b.start {
		b.start = strings.Clone(start)
		if at, err := time.Parse(time.RFC3339, start); err == nil {
			b.started = now - max(0, wall.Sub(at))
		}
	}
	if *facts != b.Facts {
		b.Facts = facts.Clone()
	}
}

// prepare finds the peers of a board for a comparison, where it has any. Among others it
// has no past.
func (b *Board) prepare(now time.Duration) (g group, compared bool) {
	if now-b.seen >= settle {
		b.close()
	}
	g, compared = b.peers(now)
	if g != b.group && (!b.restored || g.service != b.group.service) {
		b.Leave()
	}
	b.group = g
	b.Clock = b.mean(int(now / time.Minute))
	b.Fresh = now-b.started < afterStart
	if compared = compared && !math.IsNaN(b.Clock); compared {
		b.restored = false
	}
	return g, compared
}

// wants is whether the event is raised. A reason that comes later than the event does
// not clear it.
func (b *Board) wants() bool { return b.Slow && (!b.Explained || b.Condition.Level > 0) }

// peers are those that the board is compared with, where it is at all: a whole board
// that a service owns.
func (b *Board) peers(now time.Duration) (g group, compared bool) {
	g = group{b.Facts.Owner.ServiceIn(b.ID.Cluster), b.Facts.Model, b.limits[0]}
	if g.limit == 0 {
		g.limit = b.limits[1]
	}
	whole := b.divided == 0 || now-b.divided > course*time.Minute
	return g, whole && g.service.Name != "" && g.model != ""
}

// minute are the samples of a busy board in one minute.
type minute struct {
	number    int32
	samples   int32
	clock     float64 // sum, in Hz
	throttled [throttles]float32
}

// in returns the minute with that number, emptied where it was another one.
func (b *Board) in(number int) *minute {
	m := &b.minutes[number%len(b.minutes)]
	if int(m.number) != number {
		*m = minute{number: int32(number)}
	}
	return m
}

// total adds up the minutes before that one.
func (b *Board) total(before int) (t minute) {
	for _, m := range b.minutes {
		if number := int(m.number); number < before && number >= before-window {
			t.samples += m.samples
			t.clock += m.clock
			for i := range m.throttled {
				t.throttled[i] += m.throttled[i]
			}
		}
	}
	return t
}

// mean is the mean clock in the minutes before that one; NaN: there are too few samples.
func (b *Board) mean(before int) float64 {
	t := b.total(before)
	if t.samples < leastSamples {
		return math.NaN()
	}
	return t.clock / float64(t.samples)
}

// sample are the points of one time.
type sample struct {
	at          pcommon.Timestamp
	minute      int     // in which they arrived
	clock, busy float64 // NaN: there was none
	throttled   [throttles]float32
}

// close ends a time: of a busy board it counts.
func (b *Board) close() {
	s := &b.open
	if s.clock > 0 && s.busy >= leastBusy {
		m := b.in(s.minute)
		m.samples++
		m.clock += s.clock
		for i, v := range s.throttled {
			m.throttled[i] += v
		}
	}
	s.clock, s.busy = math.NaN(), math.NaN()
}
