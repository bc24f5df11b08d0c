// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
