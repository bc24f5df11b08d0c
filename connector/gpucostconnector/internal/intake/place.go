// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/migprofile"
)

// unresolved is a part that an owner has, or that is free, of a device that the kubelet
// could not name.
type unresolved struct {
	id      string
	profile string // as in part; "" where no point names it
	owner   *owner // nil: it is free
	share   float64
	at      *board // where it was placed, and which part of it
	part    int
}

// maxUnresolved bounds those of a node.
const maxUnresolved = 1024

// unresolve keeps a point until the snapshot is complete.
func (n *node) unresolve(a *allocation) {
	for i := range n.unresolved {
		if u := &n.unresolved[i]; u.id == a.id && u.owner == a.owner {
			return // the same point once more
		}
	}
	if len(n.unresolved) >= maxUnresolved {
		return
	}
	profile := migprofile.Normal(a.profile)
	n.unresolved = append(n.unresolved, unresolved{id: strings.Clone(a.id), owner: a.owner, share: a.share, profile: strings.Clone(profile)})
}

// complete ends the newest snapshot of a node: what the kubelet could not name is placed, and
// what is nowhere is counted as unplaced. Boards that telemetry shows and the snapshot does
// not name are unknown, unless nothing is unplaced and they were named before: then the
// ledger knows that they are missing. So are boards that no job has any more.
func (x *snapshots) complete(n *node) {
	if n.at == 0 || n.empty {
		return
	}
	unplaced := false
	if len(n.unresolved) > 0 {
		x.placeOwned(n)
		x.placeFree(n)
		for i := range n.unresolved {
			u := &n.unresolved[i]
			if u.at == nil && u.owner != nil {
				unplaced = true
				x.unplaced(n, u)
			}
		}
	}
	for _, b := range n.boards {
		if b.shown(n) && (unplaced || !b.listed || b.placed(n)) || b.left(n) {
			x.unnamed(n, b)
		}
		x.release(b) // before the next snapshot ends the time of this one
	}
	clear(n.unresolved)
	n.unresolved = n.unresolved[:0]
	for manager, at := range n.reports {
		if at == n.at {
			x.ledger.Complete(n.key.cluster, n.key.name, manager == bySlurm, at)
		}
	}
}

// shown reports whether there is telemetry of the board at about the newest snapshot.
func (b *board) shown(n *node) bool { return b.fresh(n.at) && b.seen <= n.at+5*minute }

// candidates calls f with the parts of the node that telemetry shows and the snapshot does
// not name: instances, and boards without them.
func (n *node) candidates(f func(b *board, i int)) {
	for _, b := range n.boards {
		if !b.fresh(n.at) {
			continue
		}
		divided := b.divided(n.at)
		for i := range b.parts {
			p := &b.parts[i]
			switch {
			case p.named == n.at || !b.current(p) || isReplica(p.id):
			case p.id == b.id && (divided || b.named == n.at):
			default:
				f(b, i)
			}
		}
	}
}

// current reports whether telemetry still shows a part.
func (b *board) current(p *part) bool { return p.seen != 0 && p.seen >= b.seen-minute }

// divided reports whether telemetry or a snapshot shows instances of the board.
func (b *board) divided(at int64) bool {
	for i := range b.parts {
		if p := &b.parts[i]; p.id != b.id && !isReplica(p.id) && (b.current(p) || p.named == at) {
			return true
		}
	}
	return false
}

func isReplica(id string) bool {
	_, replica := deviceid.CutReplica(id)
	return replica != ""
}

// placeOwned places parts with owners: where telemetry names the pod on as many devices as the
// pod has that the kubelet could not name, they are these.
func (x *snapshots) placeOwned(n *node) {
	for i := range n.unresolved {
		u := &n.unresolved[i]
		if u.owner == nil || u.at != nil || u.share < 1-1e-6 {
			continue
		}
		wanted := 0
		for j := range n.unresolved {
			if o := n.unresolved[j].owner; o != nil && samePod(o, u.owner) && n.unresolved[j].at == nil {
				wanted++
			}
		}
		found, at, part := 0, (*board)(nil), 0
		n.candidates(func(b *board, i int) {
			if o := b.parts[i].owner; o != nil && samePod(o, u.owner) {
				if found++; at == nil && u.fits(&b.parts[i]) {
					at, part = b, i
				}
			}
		})
		if found == wanted && at != nil {
			x.put(n, u, at, part)
		}
	}
}

func samePod(a, b *owner) bool {
	if a.is.Pod == "" {
		return a.key == b.key && a.key.service == "" // a job
	}
	return a.is.Pod == b.is.Pod && a.is.Namespace == b.is.Namespace
}

// fits reports whether a part can be the one that is meant.
func (u *unresolved) fits(p *part) bool {
	return u.profile == "" || p.profile == "" || u.profile == p.profile
}

// placeFree places parts without owner. The kubelet lists what is allocatable: where as many
// devices are left as it lists without owner, they are these.
func (x *snapshots) placeFree(n *node) {
	for i := range n.unresolved {
		u := &n.unresolved[i]
		if u.owner != nil || u.at != nil {
			continue
		}
		wanted := 0
		for j := range n.unresolved {
			// One that was not placed may be any of those that are left.
			if v := &n.unresolved[j]; v.at == nil && (v.profile == u.profile || v.profile == "") {
				wanted++
			}
		}
		found, at, part := 0, (*board)(nil), 0
		n.candidates(func(b *board, i int) {
			if p := &b.parts[i]; p.profile == u.profile {
				if found++; at == nil && p.owner == nil {
					at, part = b, i
				}
			}
		})
		if found == wanted && at != nil {
			x.put(n, u, at, part)
		}
	}
}

// put places what is unresolved on a part of a board.
func (x *snapshots) put(n *node, u *unresolved, b *board, i int) {
	u.at, u.part = b, i
	b.parts[i].named, b.named = n.at, n.at
	x.add(n, b, i, n.at, u.owner, ledger.Free)
}

// add adds a part of a board at a time: of an owner, else in a state. gpu.allocation had it, or
// telemetry alone shows it, which knows nothing that is free.
func (x *snapshots) add(n *node, b *board, i int, at int64, o *owner, state ledger.State) {
	d := &b.parts[i]
	x.fill(n, o, at)
	p := &x.point
	p.Board, p.Ref, p.Part, p.Class, p.Share = b.id, &b.ref, d.id, x.classOf(b), share.Whole
	p.Listed = state == ledger.Free
	if o == nil {
		p.State = state
	}
	if device, replica := deviceid.CutReplica(d.id); replica != "" {
		p.Device, p.Replicas = device, 1
		if d = b.part(device); d == nil {
			return
		}
	}
	if d.id != b.id {
		known := false
		p.Profile, p.Rest = d.profile, ledger.Stranded
		if p.Share, known = x.instance(b, d); !known {
			p.State, p.Owner, p.Rest = ledger.Unknown, nil, ledger.Unknown
		}
		p.Estimated = d.estimated
	}
	x.claim(n, b)
}

// unplaced counts the time of an owner of which the board is not known.
func (x *snapshots) unplaced(n *node, u *unresolved) {
	x.fill(n, u.owner, n.at)
	p := &x.point
	id := u.owner.partition(u.id) // several may have parts of one device
	p.Board, p.Part, p.Virtual = id, id, true
	of, ok := share.FromFloat(min(u.share, 1))
	if !ok {
		return
	}
	p.Share = of
	c := ledger.Class{Cluster: clean(n.key.cluster)}
	if x.classes[c] == nil {
		x.classes[c] = &c
	}
	p.Class = x.classes[c]
	x.ledger.Add(p)
}

// placed reports whether parts of the board were placed in the newest snapshot.
func (b *board) placed(n *node) bool {
	for i := range n.unresolved {
		if n.unresolved[i].at == b {
			return true
		}
	}
	return false
}

// unnamed adds what telemetry shows of a board and the newest snapshot of its node does not
// name.
func (x *snapshots) unnamed(n *node, b *board) {
	if b.divided(n.at) {
		for i := range b.parts {
			if p := &b.parts[i]; p.id != b.id && !isReplica(p.id) && p.named != n.at && b.current(p) {
				x.add(n, b, i, n.at, nil, ledger.Unknown)
			}
		}
		return
	}
	if b.named == n.at {
		return
	}
	x.fill(n, nil, n.at)
	p := &x.point
	p.Board, p.Ref, p.Part, p.Class, p.Share = b.id, &b.ref, b.id, x.classOf(b), share.Whole
	p.State, p.Rest = ledger.Unknown, ledger.Unknown
	x.ledger.Add(p)
}
