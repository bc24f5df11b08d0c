// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"hash/fnv"
	"slices"
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

// Fault takes a code that Repeats, under the owner that the board has. An empty owner is
// not known, and no other one.
func (b *Board) Fault(code int, owner string, at pcommon.Timestamp) {
	if owner == "" {
		return
	}
	faults, id := &b.memory.rarely().faults, hash(owner)
	oldest := &faults[0]
	for i := range faults {
		f := &faults[i]
		if f.last != 0 && f.owner == id && f.code == uint16(code) && !later(at, f.last, day) {
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
	*oldest = fault{since: at, last: at, owner: id, code: uint16(code)}
}

// HadFault reports whether the board had the code under the owner within the length of a
// burst of a time.
func (b *Board) HadFault(code int, owner string, at pcommon.Timestamp) bool {
	return b.memory.seldom != nil && slices.ContainsFunc(b.memory.seldom.faults[:], func(f fault) bool { return f.is(code, owner, at) })
}

// Spread takes that other boards of the owner had a code at the same time: see Common.
func (b *Board) Spread(code int, owner string, at pcommon.Timestamp) {
	if s := b.memory.seldom; s != nil {
		for i := range s.faults {
			if f := &s.faults[i]; f.is(code, owner, at) {
				f.common = true
			}
		}
	}
}

func (f *fault) is(code int, owner string, at pcommon.Timestamp) bool {
	near := func(t pcommon.Timestamp) bool { return max(t, at)-min(t, at) < pcommon.Timestamp(burst) }
	return f.last != 0 && f.code == uint16(code) && f.owner == hash(owner) && (near(f.last) || near(f.since))
}

// repeats raises xid_repeated. A fault counts once the other boards of its owner had the
// time to have it too.
func (b *Board) repeats(at pcommon.Timestamp) {
	faults := &b.memory.seldom.faults
	for _, code := range [...]int{13, 31} {
		owners, last := 0, pcommon.Timestamp(0)
		for i := range faults {
			f := &faults[i]
			if f.last != 0 && !f.common && int(f.code) == code && later(at, f.since, burst) && !later(at, f.last, day) {
				owners, last = owners+1, max(last, f.last)
			}
		}
		if owners >= manyOwners {
			a := b.raise(repeatedPlace, last, Finding{Value: float64(owners), Threshold: manyOwners})
			a.Codes = addCode(a.Codes, code)
		}
	}
}

const (
	day  = 24 * time.Hour
	week = 7 * day
)
