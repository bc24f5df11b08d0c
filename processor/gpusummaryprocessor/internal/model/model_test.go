// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	evaluations = flag.Int("evaluations", 20_000, "evaluations to compare")
	firstSeed   = flag.Uint64("seed", 1, "seed of the first world")
)

// TestModel compares the summary with the model over random worlds, until as many
// evaluations as asked for are done. A difference is reported with the smallest world
// that was found to have it; -seed=N -evaluations=1 repeats it.
func TestModel(t *testing.T) {
	var done, differences atomic.Int64
	var next atomic.Uint64
	next.Store(*firstSeed)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for done.Load() < int64(*evaluations) && differences.Load() < 3 {
				seed := next.Add(1) - 1
				r := compare(generate(seed), seed)
				done.Add(int64(r.evaluations))
				if r.difference != "" {
					differences.Add(1)
					t.Errorf("seed %d: %s", seed, story(seed))
				}
			}
		})
	}
	workers.Wait()
	fmt.Printf("evaluations %d, differences %d\n", done.Load(), differences.Load())
}

// story is the smallest world like that of the seed in which model and summary
// differ.
func story(seed uint64) string {
	w := shrink(generate(seed), func(w world) bool { return compare(w, seed).difference != "" })
	r := compare(w, seed)
	return fmt.Sprintf("at %s %s\n%s", r.at, r.difference, w)
}
