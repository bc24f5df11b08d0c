// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// Journal writes what happens in a run, each line with the time since its start.
type Journal struct {
	Started time.Time
	Out     io.Writer
}

// Logf writes a line.
func (j *Journal) Logf(format string, args ...any) {
	fmt.Fprintf(j.Out, "%7.1f s  %s\n", time.Since(j.Started).Seconds(), fmt.Sprintf(format, args...))
}

// clock is a time as the lines count it.
func (j *Journal) clock(at time.Time) string {
	return fmt.Sprintf("%.1f s", at.Sub(j.Started).Seconds())
}

// Recovery is a fault that is over.
type Recovery struct {
	Kind    string
	Allowed time.Duration // until the fleet is whole
}

// tally is what was seen of one kind of fault.
type tally struct {
	times   int
	allowed time.Duration // that the recovery may take
	slowest time.Duration // from the end of a round's last fault to the whole fleet
	alone   time.Duration // the same, of rounds in which it was alone
}

// Counts are what was judged.
type Counts struct {
	Points, Expected int            // about devices, and those with a rightly unknown owner
	Evaluations      int            // of services
	Partial          int            // of them, those with a judged flag
	TruePartial      int            // of these, those that had to be partial
	Averages         map[string]int // that were right, by their key
	AveragesSkipped  int            // evaluations
	Probes           int            // XIDs
	Measured         int            // collectors, after each round
	Verified         int            // audit logs
}

// Verdict collects what is found in a run. Its methods may be called concurrently.
type Verdict struct {
	journal *Journal
	seed    uint64

	mu         sync.Mutex // guards what follows
	violations int
	by         map[string]int // invariant
	faults     []string       // since the fleet was last whole
	rounds     int
	injected   int
	kinds      map[string]*tally
	counts     Counts
}

// NewVerdict is the verdict on a run of a seed, of which nothing was judged yet.
func NewVerdict(journal *Journal, seed uint64) *Verdict {
	return &Verdict{journal: journal, seed: seed, by: map[string]int{}, kinds: map[string]*tally{}, counts: Counts{Averages: map[string]int{}}}
}

// maxPrinted is how many violations of one invariant are printed.
const maxPrinted = 20

// Violate notes a violation and prints it, with all that is needed to see it
// again.
func (v *Verdict) Violate(invariant, format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.violations++
	if v.by[invariant]++; v.by[invariant] > maxPrinted {
		return
	}
	v.journal.Logf("VIOLATION of %s (seed %d, round %d): %s", invariant, v.seed, v.rounds, fmt.Sprintf(format, args...))
	v.journal.Logf("  since the fleet was last whole: %v", v.faults)
}

// Round notes that a round of so many faults begins, and returns its number, from 1 on.
func (v *Verdict) Round(faults int) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rounds++
	v.injected += faults
	return v.rounds
}

// Fault notes a fault that begins or ends.
func (v *Verdict) Fault(what string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faults = append(v.faults, v.journal.clock(time.Now())+" "+what)
}

// Recovered notes that a round's faults are over and that it took so long.
func (v *Verdict) Recovered(faults []Recovery, took time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faults = nil
	for _, f := range faults {
		t := v.kinds[f.Kind]
		if t == nil {
			t = &tally{allowed: f.Allowed}
			v.kinds[f.Kind] = t
		}
		t.times++
		t.slowest = max(t.slowest, took)
		if len(faults) == 1 {
			t.alone = max(t.alone, took)
		}
	}
}

// Count lets add change the counts under the lock.
func (v *Verdict) Count(add func(c *Counts)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	add(&v.counts)
}

// Violations is how many there were.
func (v *Verdict) Violations() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.violations
}

// ReportCounts prints the faults and what was judged.
func (v *Verdict) ReportCounts() {
	v.mu.Lock()
	defer v.mu.Unlock()
	logf, c := v.journal.Logf, &v.counts
	logf("%-26s %5s  %s", "fault", "times", "slowest recovery of what it may take alone (of rounds in which it was alone)")
	for _, name := range slices.Sorted(maps.Keys(v.kinds)) {
		t := v.kinds[name]
		alone := ""
		if t.alone > 0 {
			alone = fmt.Sprintf(" (%.1f s)", t.alone.Seconds())
		}
		logf("%-26s %5d  %.1f s of %.0f s%s", name, t.times, t.slowest.Seconds(), t.allowed.Seconds(), alone)
	}
	logf("owners: %d points, %d rightly without one", c.Points, c.Expected)
	right := 0
	for _, n := range c.Averages {
		right += n
	}
	logf("summary: %d evaluations, %d of them judged for partial (%d had to be), %d averages of %d fields (of %d evaluations none: the machine stalled)",
		c.Evaluations, c.Partial, c.TruePartial, right, len(c.Averages), c.AveragesSkipped)
	logf("XIDs reported: %d; measured: %d times memory, goroutines, files and series; audit verified: %d times", c.Probes, c.Measured, c.Verified)
}

// ReportViolations prints how often each invariant was violated.
func (v *Verdict) ReportViolations() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, invariant := range slices.Sorted(maps.Keys(v.by)) {
		v.journal.Logf("violations of %s: %d", invariant, v.by[invariant])
	}
}

// Summary is the last line; events is how many were received.
func (v *Verdict) Summary(events int) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return fmt.Sprintf("%d rounds, %d faults of %d kinds, %d points, %d evaluations, %d events, %d violations",
		v.rounds, v.injected, len(v.kinds), v.counts.Points, v.counts.Evaluations, events, v.violations)
}
