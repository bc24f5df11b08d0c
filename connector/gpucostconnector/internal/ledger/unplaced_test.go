// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
)

func TestUnplaced(t *testing.T) {
	l := New(config(), t0)
	p := owned("n/opaque", "n/opaque", "a", share.Whole)
	p.Virtual = true
	for _, at := range []int64{0, minute, 2 * minute} {
		add(l, t0+at, p)
	}
	assert.Equal(t, map[string]Amounts{"a": {Unplaced: minute}}, rows(l))
}

// Parts that cannot be placed are no boards: they have a limit of their own, and end with the next
// snapshot of their node that does not have them.
func TestUnplacedPartsAreLimited(t *testing.T) {
	cfg := config()
	cfg.MaxBoards = 8
	l := New(cfg, t0)
	part := func(i int64) Point {
		p := owned(fmt.Sprint("n/part", i), fmt.Sprint("n/part", i), fmt.Sprint("pod", i), share.Whole)
		p.Virtual = true
		return p
	}
	for at := t0; at <= t0+3*hour; at += 15 * second {
		for i := range int64(4) { // of pods that follow each other, each for ten minutes
			add(l, at, part(i+4*((at-t0)/(10*minute))))
		}
		for i := range 8 {
			add(l, at, owned(fmt.Sprint("g", i), fmt.Sprint("g", i), "train", share.Whole))
		}
		l.Complete("c", "n", false, at)
		if at == t0+hour {
			var err error
			l, err = Restore(cfg, l.Encode())
			require.NoError(t, err)
		}
	}
	got := rows(l)
	assert.InDelta(t, 8*3*hour, got["train"].Time, float64(8*minute), "the boards have the whole limit")
	for i := range 17 * 4 {
		assert.InDelta(t, 10*minute, got[fmt.Sprint("pod", i)].Unplaced, float64(16*second), i)
	}
	assert.Equal(t, 4+8, l.Boards())
	assert.Zero(t, l.Counts().Refused)
	for i := range int64(6) { // two too many, and a board
		add(l, t0+3*hour+15*second, part(1000+i))
	}
	add(l, t0+3*hour+15*second, owned("g1000", "g1000", "train", share.Whole))
	assert.Equal(t, int64(3), l.Counts().Refused)
	l.Complete("c", "n", false, t0+3*hour+15*second)
	assert.Equal(t, 4+8, l.Boards())
}
