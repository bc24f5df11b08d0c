// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	// bareAfter is how long telemetry of a node's boards must come without gpu.allocation
	// until it is taken for a node without Kubernetes. What came meanwhile counts then.
	bareAfter = 2 * minute
	// maxWaiting bounds the values of a board that are kept until then.
	maxWaiting = 256
)

// value is what was measured on a part of a board.
type value struct {
	metric, part string
	at           int64
	v            float64
}

// bare reads that there is telemetry of a board at a time. On a node without gpu.allocation
// that is what its account is made of: the owner is the one that telemetry names, and what it
// does not name is unknown.
func (x *snapshots) bare(b *board, at int64) {
	n := b.node
	if !n.bare(at) {
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
	x.shown(n, b, b.open)
	// Of the energy, a board's first snapshot takes one value alone, and the next one all.
	for i := range b.waiting {
		x.measure(b, &b.waiting[i])
	}
	if b.first != b.open {
		b.first, b.waiting = 0, nil
	}
	b.open = at
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

// value adds a value to the account of a board, or keeps it as long as the account waits.
func (x *snapshots) value(b *board, v value) {
	if b.first == 0 || b.node == nil || !b.node.bare(v.at) {
		x.release(b)
		x.measure(b, &v)
		return
	}
	p := b.part(v.part)
	if p == nil || len(b.waiting) >= maxWaiting {
		x.counts.Refused++
		return
	}
	v.part = p.id
	b.waiting = append(b.waiting, v)
}

// release adds the values that were kept.
func (x *snapshots) release(b *board) {
	for i := range b.waiting {
		x.measure(b, &b.waiting[i])
	}
	b.waiting = nil
}

func (x *snapshots) measure(b *board, v *value) {
	switch v.metric {
	case names.GPUUtilization.Name:
		x.ledger.Utilization(b.id, v.part, v.at, v.v)
	case names.HwEnergy.Name:
		watts := float64(maxWatts)
		if b.watts > 0 {
			watts = b.watts
		}
		x.ledger.Energy(b.id, v.at, v.v, watts)
	default:
		x.ledger.Power(b.id, v.at, v.v)
	}
}
