// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
	"github.com/otelcol-gpu/otelcol-gpu/internal/migprofile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/partition"
)

// fleet is what is known of nodes, boards and owners.
type fleet struct {
	cfg    Config
	counts Counts
	now    int64 // of Read
	newest int64 // of all points

	nodes   map[nodeKey]*node
	last    *node             // that was looked up: agents send what is of one node
	hosts   map[nodeKey]*node // by host.name, where that is not the node's name
	boards  map[string]*board
	owners  owners
	tenants tenantKeys
	classes map[ledger.Class]*ledger.Class
}

func newFleet(cfg Config, now int64) fleet {
	return fleet{
		cfg: cfg, now: now,
		nodes: map[nodeKey]*node{}, hosts: map[nodeKey]*node{}, boards: map[string]*board{}, owners: owners{named: map[string]*owner{}},
		tenants: newTenantKeys(cfg.Tenant), classes: map[ledger.Class]*ledger.Class{},
	}
}

// timeOf is the time of a point in ms; false if it cannot be used.
func (x *fleet) timeOf(ts pcommon.Timestamp) (at int64, ok bool) {
	at = int64(ts / 1e6)
	switch {
	case at > x.now+maxAhead:
		x.counts.Future++
		return 0, false
	case at < x.now-maxAge:
		x.counts.Old++
		return 0, false
	}
	x.newest = max(x.newest, at)
	return at, true
}

type nodeKey struct{ cluster, name string }

// node is what is known of a node.
type node struct {
	key     nodeKey
	boards  []*board
	facts   facts
	version uint32 // of facts
	info    int64  // time of the newest gpu.node.info

	cordoned, reconfiguring bool
	stateAt                 int64

	at, before int64 // the newest snapshot of gpu.allocation, and the one before it
	listed     int64 // the newest that listed devices, or reported an empty node
	empty      bool  // the newest reported an empty node
	reports    reported
	unresolved []unresolved
	since      int64 // the first telemetry of its boards without gpu.allocation
	seen       int64 // the newest
}

// facts are what prices depend on.
type facts struct{ hostType, region, capacity, pool, labels string }

// board is what is known of a physical board.
type board struct {
	id     string
	ref    ledger.Ref
	node   *node
	model  string
	memory int64   // MiB; 0: not known
	watts  float64 // its greatest power limit; 0: not known
	class  *ledger.Class
	known  uint32                   // version of the node's facts in class
	held   reported                 // the newest snapshot in which it or a part of it had an owner
	listed bool                     // gpu.allocation has named it or a part of it
	seen   int64                    // its newest telemetry, that of its parts included
	claims [managers][]ledger.Point // of a node with two managers: what each gave away in its newest snapshot with it
	named  int64                    // the newest snapshot with it
	vague  int64                    // the newest snapshot with a part of which the share is not known
	parts  []part
	// Of a node without gpu.allocation: the newest time of its telemetry, and the first as
	// long as values wait for its account.
	open, first int64
	waiting     []value
}

// part is a board or a part of it, as telemetry and gpu.allocation show it.
type part struct {
	id        string
	profile   string         // of an instance or of a partition, in its normal form
	owner     *owner         // as telemetry names it
	seen      int64          // its newest telemetry
	named     int64          // the newest snapshot with it
	replicas  int32          // how many equal parts it is shared by, as far as is known
	share     share.Fraction // of an instance
	estimated bool
	computed  bool // share is that of profile, model and memory
}

// maxParts bounds the parts of a board.
const maxParts = 256

// node returns a node, nil where there are too many.
func (x *fleet) node(cluster, name string) *node {
	key := nodeKey{cluster, name}
	if x.last != nil && x.last.key == key {
		return x.last
	}
	if n := x.nodes[key]; n != nil {
		x.last = n
		return n
	}
	if name == "" || tooLong(cluster, name) {
		x.counts.Invalid++
		return nil
	}
	if len(x.nodes) >= x.cfg.MaxDevices {
		x.counts.Refused++
		return nil
	}
	key = nodeKey{strings.Clone(cluster), strings.Clone(name)}
	n := &node{key: key, version: 1}
	x.nodes[key] = n
	return n
}

// board returns a board, nil where there are too many.
func (x *fleet) board(id string) *board {
	if b := x.boards[id]; b != nil {
		return b
	}
	if id == "" || tooLong(id) {
		x.counts.Invalid++
		return nil
	}
	if len(x.boards) >= x.cfg.MaxDevices {
		x.counts.Refused++
		return nil
	}
	b := &board{id: strings.Clone(id)}
	x.boards[b.id] = b
	return b
}

// take makes a board one of the node's.
func (n *node) take(b *board) {
	if b.node == n {
		return
	}
	if b.node != nil {
		b.node.drop(b)
	}
	b.node, b.class = n, nil
	n.boards = append(n.boards, b)
}

func (n *node) drop(b *board) {
	n.boards = slices.DeleteFunc(n.boards, func(c *board) bool { return c == b })
}

// part returns a part of the board, nil where there are too many.
func (b *board) part(id string) *part {
	for i := range b.parts {
		if b.parts[i].id == id {
			return &b.parts[i]
		}
	}
	if len(b.parts) >= maxParts {
		b.parts = slices.DeleteFunc(b.parts, func(p part) bool { return max(p.seen, p.named) < b.seen-hour })
		if len(b.parts) >= maxParts {
			return nil
		}
	}
	if id == b.id {
		id = b.id // they share the memory
	} else {
		id = strings.Clone(id)
	}
	b.parts = append(b.parts, part{id: id})
	return &b.parts[len(b.parts)-1]
}

// describe notes the profile of an instance or of a partition, as a point names it.
func (p *part) describe(profile string) {
	if profile == "" || profile == p.profile {
		return
	}
	if profile = text(migprofile.Normal(profile)); profile != p.profile {
		p.profile, p.computed = profile, false
	}
}

// changed forgets what was computed from the model and the memory of the board.
func (b *board) changed() {
	for i := range b.parts {
		b.parts[i].computed = false
	}
}

// instance is the share of a MIG instance or of a partition; false where it is not known.
func (x *fleet) instance(b *board, p *part) (share.Fraction, bool) {
	if !p.computed {
		p.share, p.estimated = share.Fraction{}, false
		if n := partition.Count(p.profile, b.model); n > 0 {
			p.share, _ = share.Of(1, int64(n)) // partitions of a board are equal
		} else if profile, ok := migprofile.Parse(p.profile); ok {
			of, _ := share.SlicesOf(b.model, x.cfg.MIGSlices)
			p.share, p.estimated, _ = share.Instance(profile, of, x.cfg.MIGShare, b.memory)
		}
		p.computed = true
	}
	return p.share, p.share.Valid()
}

// classOf is the class of a board: one for equal ones.
func (x *fleet) classOf(b *board) *ledger.Class {
	n := b.node
	if b.class != nil && b.known == n.version && b.class.Model == b.model {
		return b.class
	}
	c := ledger.Class{
		Cluster: clean(n.key.cluster), Model: b.model, HostType: n.facts.hostType, Region: n.facts.region,
		Capacity: n.facts.capacity, Pool: n.facts.pool, Labels: n.facts.labels,
	}
	if x.classes[c] == nil {
		x.classes[c] = &c
	}
	b.class, b.known = x.classes[c], n.version
	return b.class
}

func (x *fleet) forgetClasses() {
	clear(x.classes)
	for _, b := range x.boards {
		if b.class != nil {
			x.classes[*b.class] = b.class
		}
	}
}

// bare reports whether nothing lists the boards of the node at a time.
func (n *node) bare(at int64) bool { return n.listed == 0 || at-n.listed >= day }

// hasTelemetry reports whether there is telemetry of the node's boards at about a time.
func (n *node) hasTelemetry(at int64) bool {
	for _, b := range n.boards {
		if b.fresh(at) {
			return true
		}
	}
	return false
}

// fresh reports whether there is telemetry of the board at about a time.
func (b *board) fresh(at int64) bool { return b.seen != 0 && b.seen >= at-5*minute }

const (
	// maxWatts is more than one board draws; it stands in for a limit that is not known.
	maxWatts = 2000
	// maxMemory is more MiB than a board has.
	maxMemory = 1 << 24
)

// size notes the memory of the board, in bytes.
func (b *board) size(bytes float64) {
	if mib := int64(min(bytes, maxMemory<<20)) >> 20; mib > 0 && mib != b.memory {
		b.memory = mib
		b.changed()
	}
}
