// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"maps"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

func TestStateThatIsNotWhole(t *testing.T) {
	l := New(config(), t0)
	run(l, fleet(3), t0, t0+5*minute)
	state := l.Encode()
	again, err := Restore(config(), state)
	require.NoError(t, err)
	require.Equal(t, whole(l), whole(again))
	for i := range state {
		changed := append([]byte{}, state...)
		changed[i] ^= 0x10
		_, err := Restore(config(), changed)
		assert.ErrorIs(t, err, ErrState)
		_, err = Restore(config(), state[:i])
		assert.ErrorIs(t, err, ErrState)
	}
}

// testdata/state-5 is of the release before clusters of Slurm were kept, state-6 of the one before
// the times at which counters of energy changed, and state-7 of the one before the snapshots of
// gpu.allocation.
func TestStateOfAnOlderRelease(t *testing.T) {
	for _, file := range []string{"testdata/state-5", "testdata/state-6", "testdata/state-7"} {
		state, err := os.ReadFile(file)
		require.NoError(t, err)
		old, err := Restore(config(), state)
		require.NoError(t, err)
		l := New(config(), t0)
		run(l, fleet(3), t0, t0+5*minute)
		assert.Equal(t, whole(l), whole(old), file)
		run(old, fleet(3), t0+5*minute, t0+10*minute)
		assert.Zero(t, old.Counts().EnergyGap, file)
		assert.Greater(t, energyOf(old), energyOf(l), file)
	}
}

func energyOf(l *Ledger) (sum int64) {
	for _, total := range l.Totals() {
		sum += total.Energy[OfBoard] + total.Energy[OfShare]
	}
	return sum
}

// The cluster of Slurm is a part of an account, and comes back from a state.
func TestStateOfJobs(t *testing.T) {
	l := New(config(), t0)
	points := fleet(2)
	run(l, points, t0, t0+5*minute)
	k := Key{Namespace: "physics", Service: "train", State: Held}
	l.row(k, t0).total.Time = 1
	k.SlurmCluster = "hpc"
	l.row(k, t0).total.Time = 2
	again, err := Restore(config(), l.Encode())
	require.NoError(t, err)
	assert.Equal(t, whole(l), whole(again))
	assert.Len(t, again.Totals(), len(l.Totals()))
}

// whole is all accounts and totals.
func whole(l *Ledger) map[any]any {
	all := map[any]any{"closed": l.Closed(), "start": l.Start()}
	for _, t := range l.Totals() {
		all[t.Key] = t
	}
	l.Accounts(func(a Account) { all[a.Board] = a })
	for key, n := range l.nodes {
		all[key] = [2]int64{n.newest, n.run}
	}
	return all
}

// FuzzRestore: what is damaged is refused, and what is not is as it was.
func FuzzRestore(f *testing.F) {
	l, points := New(config(), t0), fleet(3)
	run(l, points, t0, t0+20*minute)
	for _, seed := range []*Ledger{l, New(config(), t0)} {
		body, err := unseal(seed.Encode())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add(l.Encode())
	f.Fuzz(func(t *testing.T, state []byte) {
		for _, text := range [][]byte{state, seal(state)} {
			l, err := Restore(config(), text)
			if err != nil {
				continue
			}
			again, err := Restore(config(), l.Encode())
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(whole(l), whole(again)) {
				t.Fatal("it is another one")
			}
			points := fleet(3)
			run(again, points, t0+20*minute, t0+21*minute)
		}
	})
}

// A price that is new with a restart does not count for what was held before it.
func TestNewPriceAfterARestart(t *testing.T) {
	rates := func(nano int64) Config {
		cfg := config()
		cfg.Price = func(*Priced, int64) Price { return Price{prices.Rate{Nano: nano, Per: 1}, prices.KindList, 1 << 60} }
		return cfg
	}
	l := New(rates(1), t0)
	board := []Point{instance(owned("g", "g/1", "a", share.Fraction{P: 3, Q: 7}), "3g.40gb")}
	for at := t0; at <= t0+10*minute; at += minute {
		add(l, at, board...)
	}
	cfg := rates(2)
	cfg.PricedFrom = t0 + 15*minute
	l, err := Restore(cfg, l.Encode())
	require.NoError(t, err)
	for at := t0 + 20*minute; at <= t0+30*minute; at += minute {
		add(l, at, board...)
	}
	got := map[int64]int64{}
	for _, total := range l.Totals() {
		got[total.Key.Rate.Nano] += total.Time
	}
	assert.Equal(t, map[int64]int64{1: 15 * minute, 2: 14 * minute}, got)
}
