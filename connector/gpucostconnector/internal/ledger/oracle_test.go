// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
)

// listing is a snapshot of a node: its boards with their owners, "" for a free one.
type listing struct {
	at     int64
	boards map[string]string
}

// TestTimeIsWhereItBelongs compares the ledger with what is computed afterwards, from the
// whole history at once, by the rules for gaps.
func TestTimeIsWhereItBelongs(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 11))
		boards := []string{"g0", "g1", "g2"}
		owners := map[string]string{}
		var node []listing
		at := int64(t0)
		for i := range 60 {
			at += []int64{15 * second, minute, 5 * minute, 5*minute + 1, 20 * minute, hour, hour + 1, 3 * hour, day, day + 1}[min(r.IntN(10), r.IntN(10), r.IntN(10))]
			is := listing{at, map[string]string{}}
			for _, b := range boards {
				if r.IntN(5) == 0 {
					owners[b] = []string{"", "a", "b"}[r.IntN(3)]
				}
				if r.IntN(3) > 0 || i > 57 || i < 1 {
					is.boards[b] = owners[b]
				}
			}
			if len(is.boards) > 0 {
				node = append(node, is)
			}
		}
		l := New(config(), t0)
		for _, is := range node {
			r.Shuffle(len(boards), func(i, j int) { boards[i], boards[j] = boards[j], boards[i] })
			for _, b := range boards {
				owner, listed := is.boards[b]
				switch {
				case listed && owner == "":
					add(l, is.at, free(b, b, share.Whole))
				case listed:
					add(l, is.at, owned(b, b, owner, share.Whole))
				}
			}
		}
		want := map[string]int64{}
		for _, b := range boards {
			settled(node[:len(node)-1], b, want)
		}
		got := map[string]int64{}
		for name, sums := range rows(l) {
			got[name] = sums.Time
		}
		require.Equal(t, want, got, "seed %d: %v", seed, fmt.Sprint(node))
	}
}

// settled adds the time of a board up to its last listing.
func settled(node []listing, board string, sums map[string]int64) {
	const ttl, bridge, closeAfter, unavailableFor = 5 * minute, hour, day, 7 * day
	give := func(name string, ms int64) {
		if name == "" {
			name = "(free)"
		}
		if ms > 0 {
			sums[name] += ms
		}
	}
	last := -1 // its listing before
	for i, is := range node {
		owner, listed := is.boards[board]
		if !listed {
			continue
		}
		if last < 0 {
			last = i
			continue
		}
		before, had := node[last].at, node[last].boards[board]
		from, missing, closed := before, int64(-1), false
		for j := last + 1; j < i && !closed; j++ {
			at := node[j].at
			if missing < 0 && at-before <= ttl {
				continue
			}
			run := at // since when the node lists without a gap
			for k := j; k > 0 && node[k].at-node[k-1].at <= ttl; k-- {
				run = node[k-1].at
			}
			switch {
			case at-from > closeAfter:
				closed = true
				continue
			case run > from:
				give("(unknown)", run-from)
				from = run
			}
			if missing < 0 {
				missing = from
			}
			give("(unavailable)", at-from)
			from = at
			closed = at-missing > unavailableFor
		}
		gap := is.at - from
		switch {
		case closed, gap > closeAfter:
		case missing >= 0 && gap <= ttl:
			give("(unavailable)", gap)
		case missing >= 0:
			give("(unknown)", gap)
		case gap <= ttl, gap <= bridge && had == owner:
			give(had, gap)
		default:
			give("(unknown)", gap)
		}
		last = i
	}
}
