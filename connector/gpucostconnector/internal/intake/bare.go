// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import "github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"

// bareAfter is how long telemetry of a node's boards must come without gpu.allocation until
// it is taken for a node without Kubernetes. What came meanwhile counts then.
const bareAfter = 2 * minute

// bare reads that there is telemetry of a board at a time. On a node without gpu.allocation
// that is what its account is made of: the owner is the one that telemetry names, and what it
// does not name is unknown.
func (x *snapshots) bare(b *board, at int64) {
	n := b.node
	if n.listed != 0 && at-n.listed < day {
		return
	}
	if n.since == 0 || n.since < n.listed {
		n.since = at
	}
	if b.open == 0 || b.open < n.since {
		b.first, b.open = at, at
	}
	if at <= b.open || at-n.since < bareAfter {
		return
	}
	if b.first != 0 && b.first < b.open {
		x.shown(n, b, b.first)
	}
	x.shown(n, b, b.open)
	b.first, b.open = 0, at
}

// shown adds what telemetry showed of a board at a time.
func (x *snapshots) shown(n *node, b *board, at int64) {
	divided := b.divided(at)
	for i := range b.parts {
		divided = divided || b.current(&b.parts[i]) && isReplica(b.parts[i].id)
	}
	for i := range b.parts {
		if d := &b.parts[i]; b.current(d) && (d.id != b.id || !divided) {
			x.add(n, b, i, at, d.owner, ledger.Unknown)
		}
	}
}
