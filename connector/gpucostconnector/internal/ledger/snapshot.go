// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
)

// snapshot is the parts of a board at a time. The last one is the rest, which no point
// stands for.
type snapshot struct {
	parts            []part
	weights, carried []int64
	whole            int64
	rest             State
	over             bool
}

// part is one part of a board.
type part struct {
	id, device, profile string
	owner               *Owner
	share               share.Fraction
	replicas            int32
	was                 int32 // its place in the snapshot before, -1: it is new
	remainder           int64 // of used, in millionths of a ms
	credited            credited
	idle                idle
	state               State
	contested           bool
	estimated           bool // the share is
}

// points are the parts that points stand for.
func (s *snapshot) points() []part {
	if len(s.parts) == 0 {
		return nil
	}
	return s.parts[:len(s.parts)-1]
}

// keepUID is an owner, with the uid of one that is the same if its own is not known.
func keepUID(o, known *Owner) *Owner {
	if o.UID != "" || known == nil || known.UID == "" || !o.same(known) {
		return o
	}
	with := *o
	with.UID = known.UID
	return &with
}

// is reports whether a point is the part as it was, the row of its owner included.
func (q *part) is(p *Point) bool {
	if q.id != p.Part || q.state != p.State || q.share != p.Share || q.replicas != int32(p.Replicas) || q.device != p.Device || q.profile != p.Profile || q.estimated != p.Estimated {
		return false
	}
	if q.owner == nil || p.Owner == nil {
		return q.owner == nil && p.Owner == nil
	}
	return q.owner.same(p.Owner) && q.owner.Service == p.Owner.Service && q.owner.Tenant == p.Owner.Tenant
}

// take makes the part what the point reports. What is known of the same owner is kept.
func (q *part) take(b *board, p *Point) {
	if q.id == "" {
		rest, of := strings.CutPrefix(p.Part, b.id)
		q.id = b.named(rest, of)
	}
	if q.device != p.Device {
		rest, of := strings.CutPrefix(p.Device, b.id)
		q.device = b.named(rest, of)
	}
	if q.profile != p.Profile {
		q.profile = strings.Clone(p.Profile)
	}
	q.share, q.replicas, q.state, q.estimated = p.Share, int32(p.Replicas), p.State, p.Estimated
	if p.Owner == nil {
		q.owner = nil
		return
	}
	q.owner = keepUID(p.Owner, q.owner)
}

// unknown reports whether nothing is known of any part of the board.
func (s *snapshot) unknown() bool {
	return s.rest == Unknown && !slices.ContainsFunc(s.points(), func(q part) bool { return q.state != Unknown })
}

func (s *snapshot) reset() {
	clear(s.parts)
	s.parts = s.parts[:0]
	s.rest, s.over = Free, false
}

// begin starts a snapshot with the first parts of the one before.
func (s *snapshot) begin(known []part) {
	for i := range known {
		s.parts = append(s.parts, known[i])
		s.parts[i].was = int32(i)
	}
}

// name gives owners of the snapshot before the service that is known only now: names are
// added by others, which may begin later than the points.
func (s *snapshot) name(before *snapshot) {
	for i := range s.parts {
		q := &s.parts[i]
		if q.was < 0 || q.owner == nil || q.owner.Service == "" {
			continue
		}
		if was := &before.parts[q.was]; was.owner != nil && was.owner.Service == "" {
			was.owner, was.credited = q.owner, credited{}
		}
	}
}

// follow takes over what the parts that stay have become while the interval between the
// two snapshots was credited.
func (s *snapshot) follow(before *snapshot) {
	for i := range s.parts {
		q := &s.parts[i]
		q.idle, q.remainder = idle{}, 0
		if q.was < 0 {
			q.credited = credited{}
			continue
		}
		was := &before.parts[q.was]
		q.idle, q.remainder, q.credited = was.idle, was.remainder, was.credited
		if q.owner != was.owner || q.profile != was.profile {
			q.credited = credited{}
		}
	}
}

// finish computes the weights of a complete snapshot and appends the rest. Where the
// layout is that of the last one, what was carried is carried further.
func (s *snapshot) finish(b *board, counts *Counts) {
	n := len(s.parts)
	shares := make([]share.Fraction, n)
	for i := range s.parts {
		q := &s.parts[i]
		owners, replicas := s.alike(q)
		q.contested = owners > 1
		shares[i] = q.share
		if q.replicas > 0 {
			shares[i] = share.Replica(shares[i], max(int(q.replicas), replicas))
		}
		if q.contested {
			shares[i] = share.Replica(shares[i], owners)
		}
	}
	s.parts = append(s.parts, part{state: s.rest})
	s.weights, s.carried = make([]int64, n+1), make([]int64, n+1)
	s.whole, s.over = share.Divide(shares, s.weights[:n])
	s.weights[n] = s.whole
	for _, w := range s.weights[:n] {
		s.weights[n] -= w
	}
	if s.over && !b.virtual {
		counts.Oversubscribed++
	}
	if slices.Equal(s.weights, b.current.weights) {
		copy(s.carried, b.current.carried)
	}
}

// alike counts the owners of a part, and the replicas of its device.
func (s *snapshot) alike(q *part) (owners, replicas int) {
	for j := range s.parts {
		other := &s.parts[j]
		if other.id == q.id {
			owners++
		}
		if q.replicas > 0 && other.device == q.device && !slices.ContainsFunc(s.parts[:j], func(p part) bool { return p.id == other.id }) {
			replicas++
		}
	}
	return owners, replicas
}
