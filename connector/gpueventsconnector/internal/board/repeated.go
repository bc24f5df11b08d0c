// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"hash/fnv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

const (
	maxFaults  = 4 // that are kept
	manyOwners = 2 // under which a fault of the application is one of the board
)

// fault is an XID that is normally the fault of the application, under one owner.
type fault struct {
	since, last pcommon.Timestamp // when it happened first and last; 0: never
	owner       uint64
	code        uint16
	common      bool // the other boards of the owner had it too
}

// Repeats reports whether a code is normally the fault of the application, and that of
// the board where different applications have it.
func Repeats(code int) bool { return code == 13 || code == 31 }

// Common reports whether a code is the fault of a pod: at least half of its boards on the
// node had it, and more than one.
func Common(had, boards int) bool { return had > 1 && 2*had >= boards }

func hash(owner string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(owner)) // never fails
	return h.Sum64()
}

// faults are the newest ones of a board.
type faults [maxFaults]fault

// add adds a code under an owner.
func (fs *faults) add(code uint16, owner uint64, at pcommon.Timestamp) {
	oldest := &fs[0]
	for i := range fs {
		f := &fs[i]
		if f.last != 0 && f.owner == owner && f.code == code && !later(at, f.last, day) {
			if later(at, f.last, burst) && f.common {
				f.since, f.common = at, false
			}
			f.last = at
			return
		}
		if f.last < oldest.last {
			oldest = f
		}
	}
	*oldest = fault{since: at, last: at, owner: owner, code: code}
}

// find returns the code under the owner, if it happened within the length of a burst of a
// time, or nil.
func (fs *faults) find(code uint16, owner uint64, at pcommon.Timestamp) *fault {
	near := func(t pcommon.Timestamp) bool { return max(t, at)-min(t, at) < pcommon.Timestamp(burst) }
	for i := range fs {
		if f := &fs[i]; f.last != 0 && f.code == code && f.owner == owner && (near(f.last) || near(f.since)) {
			return f
		}
	}
	return nil
}

// owners returns under how many owners a code happened within a day, and when it did
// last. A fault counts once the other boards of its owner had the time to have it too.
func (fs *faults) owners(code uint16, at pcommon.Timestamp) (n int, last pcommon.Timestamp) {
	for i := range fs {
		f := &fs[i]
		if f.last != 0 && !f.common && f.code == code && later(at, f.since, burst) && !later(at, f.last, day) {
			n, last = n+1, max(last, f.last)
		}
	}
	return n, last
}

// drop drops what happened before a time.
func (fs *faults) drop(before pcommon.Timestamp) {
	for i := range fs {
		if fs[i].last < before {
			fs[i] = fault{}
		}
	}
}

const (
	day  = 24 * time.Hour
	week = 7 * day
)
