// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

const (
	// Together is how long the parts of a snapshot may take to arrive. Until then the
	// snapshot before it still counts for devices that are in no part so far.
	Together = time.Second

	// MaxSilence is how long a silent device, series or node is remembered. What was
	// silent for longer has aged out of every backend: it needs no end.
	MaxSilence = 10 * time.Minute
)

// Newest is the newest snapshot of a node's gpu.allocation. All points of one time are
// one snapshot, which may arrive in several batches. The zero Newest is before
// the first one.
//
// Which of two snapshots is newer is decided by their own times. Age is measured by
// arrival, so that a node with a wrong clock is no worse off.
type Newest struct {
	Time    pcommon.Timestamp
	Arrived time.Time     // its first part
	Every   time.Duration // the interval of the snapshots, 0 where it is unknown
	Number  int           // of the snapshots
	Whole   int           // the number of the newest one before it of which all parts had the time to arrive
}

// Fresh is for how long a snapshot counts: for maxAge, or for three of its intervals
// where those are longer.
func (n *Newest) Fresh(maxAge time.Duration) time.Duration {
	return max(maxAge, min(3*n.Every, MaxSilence))
}

// Turn makes the snapshot of time t, which arrives now, the newest one. ok reports
// whether it is the newest, turned whether it was not before. An older one is late,
// unless the newest is no longer fresh: then the node's clock was set back.
func (n *Newest) Turn(t pcommon.Timestamp, now time.Time, maxAge time.Duration) (ok, turned bool) {
	switch {
	case t == n.Time && !n.Arrived.IsZero():
		return true, false
	case t < n.Time && now.Sub(n.Arrived) <= n.Fresh(maxAge):
		return false, false
	}
	if n.Complete(now) {
		n.Whole = n.Number
	}
	n.Number++
	n.Time, n.Arrived = t, now
	return true, true
}

// Complete reports whether all parts of the snapshot had the time to arrive.
func (n *Newest) Complete(now time.Time) bool { return now.Sub(n.Arrived) >= Together }
