// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import "slices"

// node is a node as its snapshots show it.
type node struct {
	key    nodeKey
	boards []*board
	newest int64  // time of its newest snapshot
	run    int64  // the first snapshot since the last gap above the ttl
	layout uint32 // changes with the number of boards, on which prices may depend
	// unusable[0] is the newest report about the node that differs from the one before.
	unusable [2]struct {
		at int64
		is bool
	}
}

// usable reports whether parts without owner could have one at a time.
func (n *node) usable(at int64) bool {
	for _, u := range n.unusable {
		if u.at <= at {
			return !u.is
		}
	}
	return true
}

func (n *node) add(b *board) {
	n.layout++
	n.boards = append(n.boards, b)
}

func (n *node) remove(b *board) {
	n.layout++
	n.boards = slices.DeleteFunc(n.boards, func(c *board) bool { return c == b })
}

// replaced reports whether a board that the newest complete snapshot of the node does not list
// has a successor: boards that are new since make up for all that are missing.
func (n *node) replaced(b *board, newest int64) bool {
	last := max(b.open, b.until)
	if last >= newest {
		return false
	}
	added, missing := 0, 0
	for _, c := range n.boards {
		switch listed := max(c.open, c.until) >= newest; {
		case c.virtual, c.open == 0 && c.until == 0:
		case !listed:
			missing++
		case c.since > last:
			added++
		}
	}
	return added >= missing
}

// physical is the number of boards that were listed before the newest snapshot.
func (n *node) physical() (boards int64) {
	for _, b := range n.boards {
		if !b.virtual && b.since < n.newest {
			boards++
		}
	}
	return boards
}
