// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"testing"
)

// TestOrderAndGroupingChangeNothing: the order in which batches arrive between two
// evaluations, the moment at which they do, and how points are grouped into them
// change nothing in what is reported, to the last bit.
func TestOrderAndGroupingChangeNothing(t *testing.T) {
	for seed := range uint64(150) {
		w := generate(seed)
		differ := func(w world) bool { return reordered(w, seed) >= 0 }
		if differ(w) {
			w = shrink(w, differ)
			t.Fatalf("seed %d: at %s other things are said when what arrives since the evaluation before arrives late and in other batches\n%s",
				seed, w.facts[reordered(w, seed)].at, w)
		}
	}
}

// reordered is the index of the first evaluation that differs when all that arrives
// between two evaluations arrives at the end of that time, -1 if none does.
func reordered(w world, seed uint64) int {
	a, b := newSubject(w.cfg, seed), newSubject(w.cfg, seed+1)
	var waiting []fact
	for i, f := range w.facts {
		switch {
		case f.point != nil || f.announcement != nil:
			a.observe(w.facts[i:i+1], f.at)
			waiting = append(waiting, f)
			if !mayWait(w, i) {
				b.observe(waiting, f.at)
				waiting = nil
			}
			continue
		case len(waiting) > 0:
			b.observe(waiting, f.at)
			waiting = nil
		}
		switch {
		case f.evaluate:
			reported, fault := a.evaluate(f.at)
			again, faultAgain := b.evaluate(f.at)
			if fault != faultAgain || !maps.Equal(reported, again) {
				return i
			}
		case f.pods != nil:
			a.setPods(*f.pods, f.at)
			b.setPods(*f.pods, f.at)
		default:
			for _, s := range []*subject{a, b} {
				s.offset += f.step
				s.summary.Shift(f.step)
			}
		}
	}
	return -1
}

// mayWait reports whether a point means the same when it arrives with what comes next:
// one from the future counts as arriving when it does, and one that is about to be
// too old must not become it.
func mayWait(w world, i int) bool {
	f := w.facts[i]
	next := f.at
	for _, later := range w.facts[i+1:] {
		next = later.at
		if later.point == nil && later.announcement == nil {
			break
		}
	}
	if f.point != nil {
		return f.point.stamp <= f.at+30*second && next-f.point.stamp <= w.cfg.ServiceTTL
	}
	return f.announcement.stamp <= f.at+30*second && next-f.announcement.stamp <= w.cfg.AllocationTTL
}
