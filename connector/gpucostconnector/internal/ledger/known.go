// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

// Known is what the ledger has of a physical board: after Restore it is all that is known.
type Known struct {
	Board, Cluster, Node string
	Class                *Class
	Until                int64 // the newest snapshot
	// Listed is true where a part has a pod or is free: something listed the board.
	Listed bool
	Parts  []KnownPart
}

// KnownPart is a part of the newest snapshot.
type KnownPart struct{ ID, Profile string }

// Known calls f with each open account of a physical board, in no order. What it gets is of
// use until it returns.
func (l *Ledger) Known(f func(*Known)) {
	for _, b := range l.boards {
		if b.virtual {
			continue
		}
		k := Known{Board: b.id, Cluster: b.node.key.cluster, Node: b.node.key.name, Class: b.class, Until: max(b.until, b.open)}
		for _, q := range b.current.points() {
			k.Listed = k.Listed || q.state == Free || q.owner != nil && q.owner.Pod != ""
			k.Parts = append(k.Parts, KnownPart{q.id, q.profile})
		}
		f(&k)
	}
}
