// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package nccl runs random jobs with a known truth through nccl in both scopes: a collector on each
// host reads the files, and one where they meet names who is late.
package nccl

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/ncclsim"
)

type componentHost = component.Host

func number(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return n
}

// result is what came of a run.
type result struct {
	due, found  bool
	wrong       []string // names of who is not late, or of a job that does not hang; and lost records
	falseAlarms []string // alarms where nobody is late
	windows     int
}

// TestRuns plays random runs. Of those in which somebody is late enough it counts in how many the
// right one is named.
func TestRuns(t *testing.T) {
	runs, seed := number(t, "RUNS", 8), number(t, "SEED", 1)
	due, found, wrong, alarms, windows := 0, 0, 0, 0, 0
	for i := range runs {
		fault := ncclsim.Faults[i%uint64(len(ncclsim.Faults))]
		var r result
		synctest.Test(t, func(t *testing.T) { r = play(t, seed, i, fault) })
		if r.due {
			due++
		}
		if r.due && r.found {
			found++
		} else if r.due {
			fmt.Printf("seed %d, run %d, %s: not found\n", seed, i, fault)
		}
		for _, text := range append(r.wrong, r.falseAlarms...) {
			fmt.Printf("seed %d, run %d, %s: %s\n", seed, i, fault, text)
		}
		wrong, alarms, windows = wrong+len(r.wrong), alarms+len(r.falseAlarms), windows+r.windows
	}
	t.Logf("%d windows of a minute", windows)
	fmt.Printf("runs %d, found %d of %d, wrong %d, false alarms %d\n", runs, found, due, wrong, alarms)
	assert.GreaterOrEqual(t, 100*found, 99*due)
	assert.Zero(t, wrong)
	assert.LessOrEqual(t, 1000*alarms, windows)
}

// every is the time between two readings of the files.
const every = 5 * time.Second

func play(t *testing.T, seed, i uint64, fault ncclsim.Fault) (r result) {
	rng := rand.New(rand.NewPCG(seed, i))
	run, end, err := ncclsim.Random(rng, fault, t.TempDir(), time.Now())
	require.NoError(t, err)
	f := newFleet(t, run)
	for now := time.Now(); now.Before(end); now = time.Now() {
		require.NoError(t, run.Advance(now))
		f.read(now)
		time.Sleep(every)
		r.windows += len(run.Communicators)
	}
	r.windows /= int(ncclsim.Window / every)
	require.NoError(t, run.Flush())
	f.read(time.Now())
	time.Sleep(11 * time.Second) // an evaluation
	synctest.Wait()
	for _, stop := range slices.Backward(f.stop) {
		stop()
	}
	require.NoError(t, run.Close())
	f.judge(fault, &r)
	return r
}

// judge compares what was sent with the truth.
func (f *fleet) judge(fault ncclsim.Fault, r *result) {
	truth := f.run.Stragglers()
	for _, s := range truth {
		r.due = r.due || s.Sure
	}
	r.due = r.due || fault == ncclsim.Hangs
	named := map[ncclsim.Straggler]bool{}
	for _, e := range f.events {
		if e.state != "raised" {
			continue
		}
		text := fmt.Sprintf("%s: %s raised for %s, rank %d, host %s", e.at.Sub(f.run.Start), e.name, e.communicator, e.rank, e.host)
		if e.name == "nccl.stall" {
			if fault != ncclsim.Hangs {
				r.wrong = append(r.wrong, text)
			} else if e.stall == "confirmed" {
				r.found = true
			}
			continue
		}
		right, any := false, false
		for _, s := range truth {
			label := s.Communicator.Name
			if f.run.Unnamed {
				label = fmt.Sprintf("%dx%d", s.Communicator.Ranks(), s.Communicator.Nodes)
			}
			if label != e.communicator {
				continue
			}
			any = true
			// One process a host: the rank is the host.
			if s.Host == e.host && int64(s.Rank) == e.rank && !e.at.Before(f.run.Late.From) {
				right = true
				named[s] = true
			}
		}
		switch {
		case right:
		case any:
			r.wrong = append(r.wrong, text)
		default:
			r.falseAlarms = append(r.falseAlarms, text)
		}
	}
	for _, s := range truth {
		if s.Sure && named[s] {
			r.found = true
		}
	}
	counted := map[string]uint64{}
	for _, one := range f.counts {
		for operation, n := range one {
			counted[operation] += n
		}
	}
	for operation, n := range f.run.Written {
		// A marker that is cut short takes its batch with it; and what a process wrote last is lost
		// where the next one begins its file before it was read.
		lost := slices.Contains(slices.Collect(maps.Values(f.run.Damaged)), ncclsim.Marker) || f.run.SamePIDs
		if is := counted[operation]; is != n && (is > n || !lost || 10*is < 8*n) {
			r.wrong = append(r.wrong, fmt.Sprintf("%s, damages %v: %d records of %s, the files have %d", f.run.Version, f.run.Damaged, is, operation, n))
		}
	}
}
