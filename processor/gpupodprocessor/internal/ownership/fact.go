// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
)

// State is what is known of a device's owner.
type State uint8

const (
	// Unknown: no gpu.allocation can be joined to the device.
	Unknown State = iota
	// Owned by one container, or by several of one pod.
	Owned
	// Free is a fact: the newest snapshot lists the device and no owner.
	Free
	// Shared by several containers: no one of them holds the device.
	Shared
	// Contested: several hold it whole, and that cannot be.
	Contested
	// Expired: what was known of the device is too old.
	Expired
	// MIGParent is a GPU in MIG mode: its instances are held, it is not.
	MIGParent
)

// Fact is the answer about one device. It is immutable.
type Fact struct {
	State    State
	Owner    owner.Owner // if Owned
	DRA      bool        // the owner is known from a ResourceClaim
	Replicas []Replica   // of a Shared device, those with one owner
	// Since is the time of the first snapshot of those in a row that name this
	// owner: the owner before it is unknown.
	Since pcommon.Timestamp
}

// Replica is a part of a shared device.
type Replica struct {
	Suffix string // "::<n>", what follows the device's hw.id
	Owner  owner.Owner
	Since  pcommon.Timestamp // as Fact's
}

var (
	unknown   = &Fact{State: Unknown}
	contested = &Fact{State: Contested}
	expired   = &Fact{State: Expired}
	migParent = &Fact{State: MIGParent}
)

func (f *Fact) agrees(o *Fact) bool {
	return f.State == o.State && f.Owner == o.Owner && slices.EqualFunc(f.Replicas, o.Replicas, func(x, y Replica) bool {
		return x.Suffix == y.Suffix && x.Owner == y.Owner
	})
}

// claim is what one point states of a device.
type claim struct {
	owner   owner.Owner
	share   float64
	replica string
	shared  bool // time-slicing or MPS
	dra     bool
}

func (c claim) compare(o claim) int {
	return cmp.Or(cmp.Compare(len(c.replica), len(o.replica)), cmp.Compare(c.replica, o.replica), c.owner.Compare(o.owner))
}

// decide turns the claims on one device, in any order, into a Fact.
func decide(claims []claim) *Fact {
	slices.SortFunc(claims, claim.compare)
	var whole, parts []claim // held ones
	for _, c := range claims {
		switch {
		case c.owner == owner.Owner{}:
		case c.replica == "":
			whole = append(whole, c)
		default:
			parts = append(parts, c)
		}
	}
	switch {
	case len(whole) == 0 && len(parts) == len(claims) && ofOnePodByClaim(parts):
		return &Fact{State: Owned, Owner: parts[0].owner.Whole(), DRA: true}
	case len(parts) > 0:
		return &Fact{State: Shared, Replicas: replicas(parts)}
	case len(whole) == 0:
		return &Fact{State: Free}
	}
	first := whole[0]
	one, samePod, shared, dra, sum := true, true, false, true, 0.0
	for i, c := range whole {
		one = one && c.owner == first.owner
		samePod = samePod && c.owner.SamePod(first.owner)
		shared = shared || c.shared
		dra = dra && c.dra
		// A container that holds a device under two names holds it once.
		if i == 0 || c.owner != whole[i-1].owner {
			sum += c.share
		}
	}
	const rounding = 1e-6
	switch {
	case one:
		return &Fact{State: Owned, Owner: first.owner, DRA: dra}
	case samePod:
		return &Fact{State: Owned, Owner: first.owner.Whole(), DRA: dra}
	case shared, dra, sum <= 1+rounding:
		// GKE's replicas; a claim that several pods use; compute instances.
		return &Fact{State: Shared}
	}
	return contested
}

// ofOnePodByClaim reports whether parts are those that several containers of one
// pod have through ResourceClaims, and no other pod has one: the pod owns the device.
func ofOnePodByClaim(parts []claim) bool {
	const rounding = 1e-6
	sum := 0.0
	for _, c := range parts {
		if !c.dra || !c.owner.SamePod(parts[0].owner) {
			return false
		}
		sum += c.share
	}
	return len(parts) > 1 && sum >= 1-rounding
}

// replicas gives each replica its owner; parts are sorted by replica. One that
// two pods claim has none, and is left out.
func replicas(parts []claim) []Replica {
	out := make([]Replica, 0, len(parts))
	for len(parts) > 0 {
		n := 1
		for n < len(parts) && parts[n].replica == parts[0].replica {
			n++
		}
		if f := decideWhole(parts[:n]); f.State == Owned {
			out = append(out, Replica{Suffix: parts[0].replica, Owner: f.Owner})
		}
		parts = parts[n:]
	}
	return slices.Clip(out)
}

func decideWhole(parts []claim) *Fact {
	own := make([]claim, len(parts))
	for i, c := range parts {
		own[i] = claim{owner: c.owner, share: 1, dra: c.dra}
	}
	return decide(own)
}

// date sets since when a Fact of the snapshot at t is known: since the one before it,
// where that is the same.
func (f *Fact) date(before *Fact, t pcommon.Timestamp) {
	if f.State == Owned {
		f.Since = t
		if before != nil && before.State == Owned && before.Owner.Is(f.Owner) {
			f.Since = min(t, before.Since)
		}
	}
	for i := range f.Replicas {
		r := &f.Replicas[i]
		r.Since = t
		if before == nil {
			continue
		}
		for _, old := range before.Replicas {
			if old.Suffix == r.Suffix && old.Owner == r.Owner {
				r.Since = min(t, old.Since)
			}
		}
	}
}
