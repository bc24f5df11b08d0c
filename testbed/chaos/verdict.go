// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// tally is what was seen of one kind of fault.
type tally struct {
	times   int
	allowed time.Duration // that the recovery may take
	slowest time.Duration // from the end of a round's last fault to the whole fleet
	alone   time.Duration // the same, of rounds in which it was alone
}

// verdict collects what the judges find.
type verdict struct {
	w *world

	mu         sync.Mutex
	violations int
	by         map[string]int // invariant
	faults     []string       // since the fleet was last whole
	rounds     int
	injected   int
	kinds      map[string]*tally

	points, expected   int // about devices, and those with a rightly unknown owner
	evaluations        int
	partial            int            // evaluations with a judged flag
	averages           map[string]int // that were right, by their key
	averagesSkipped    int            // evaluations
	truePartial        int            // of them, those that had to be partial
	probes             int
	measured, verified int
	partials           map[string][]time.Time // evaluations that reported it, by service, since reported was judged
}

// maxPrinted is how many violations of one invariant are printed.
const maxPrinted = 20

// violate notes a violation and prints it, with all that is needed to see it
// again.
func (v *verdict) violate(invariant, format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.violations++
	if v.by[invariant]++; v.by[invariant] > maxPrinted {
		return
	}
	v.w.logf("VIOLATION of %s (seed %d, round %d): %s", invariant, v.w.Seed, v.rounds, fmt.Sprintf(format, args...))
	v.w.logf("  since the fleet was last whole: %v", v.faults)
}

// fault notes a fault that begins or ends.
func (v *verdict) fault(what string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faults = append(v.faults, fmt.Sprintf("%.1f s %s", time.Since(v.w.started).Seconds(), what))
}

// recovered notes that a round's faults are over and that it took so long.
func (v *verdict) recovered(faults []*fault, took time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faults = nil
	for _, f := range faults {
		t := v.kinds[f.kind.name]
		if t == nil {
			t = &tally{allowed: time.Duration(float64(f.recovery) * v.w.factor)}
			v.kinds[f.kind.name] = t
		}
		t.times++
		t.slowest = max(t.slowest, took)
		if len(faults) == 1 {
			t.alone = max(t.alone, took)
		}
	}
}

// count adds to counters under the lock.
func (v *verdict) count(do func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	do()
}

// Violations is how many there were.
func (v *verdict) Violations() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.violations
}

// report prints the sum of the run.
func (v *verdict) report() {
	v.mu.Lock()
	defer v.mu.Unlock()
	w := v.w
	w.logf("%-26s %5s  %s", "fault", "times", "slowest recovery of what it may take alone (of rounds in which it was alone)")
	for _, name := range slices.Sorted(maps.Keys(v.kinds)) {
		t := v.kinds[name]
		alone := ""
		if t.alone > 0 {
			alone = fmt.Sprintf(" (%.1f s)", t.alone.Seconds())
		}
		w.logf("%-26s %5d  %.1f s of %.0f s%s", name, t.times, t.slowest.Seconds(), t.allowed.Seconds(), alone)
	}
	w.logf("owners: %d points, %d rightly without one", v.points, v.expected)
	right := 0
	for _, n := range v.averages {
		right += n
	}
	w.logf("summary: %d evaluations, %d of them judged for partial (%d had to be), %d averages of %d fields (of %d evaluations none: the machine stalled)",
		v.evaluations, v.partial, v.truePartial, right, len(v.averages), v.averagesSkipped)
	w.logf("XIDs reported: %d; measured: %d times memory, goroutines, files and series; audit verified: %d times", v.probes, v.measured, v.verified)
	for _, p := range w.processes() {
		var longest *measured
		for _, life := range w.measures {
			if life.process == p.Name && (longest == nil || life.last.Sub(life.first) > longest.last.Sub(longest.first)) {
				longest = life
			}
		}
		if longest != nil {
			w.logf("longest life of %s: over %.0f s heap %.1f to %.1f MiB, goroutines %.0f to %.0f, files %.0f to %.0f", p.Name, longest.last.Sub(longest.first).Seconds(),
				longest.from["heap"]/mib, longest.to["heap"]/mib, longest.from["goroutines"], longest.to["goroutines"], longest.from["files"], longest.to["files"])
		}
	}
	w.logf("the machine had no time for %.1f s in all", w.history.Stalled().Seconds())
	for _, invariant := range slices.Sorted(maps.Keys(v.by)) {
		w.logf("violations of %s: %d", invariant, v.by[invariant])
	}
}

// Summary is the last line.
func (v *verdict) Summary() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return fmt.Sprintf("%d rounds, %d faults of %d kinds, %d points, %d evaluations, %d events, %d violations",
		v.rounds, v.injected, len(v.kinds), v.points, v.evaluations, len(v.w.recorder.Events()), v.violations)
}
