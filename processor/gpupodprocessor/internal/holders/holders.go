// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package holders knows who holds which device. It learns from gpu.allocation
// points, joins the devices that the kubelet could not name with those seen in
// telemetry, and answers from immutable snapshots: Lookup takes no lock and
// allocates nothing.
package holders

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
)

// State is what is known of a device's holder.
type State uint8

const (
	// Unknown: nobody ever told anything that can be joined to the device.
	Unknown State = iota
	// Held by one container, or by several of one pod.
	Held
	// Free is a fact: the newest snapshot lists the device and no holder.
	Free
	// Shared by several containers: no one of them holds the device.
	Shared
	// Contested: several hold it whole, and that cannot be.
	Contested
	// Expired: what was known of the device is too old to be believed.
	Expired
	// MIGParent is a GPU in MIG mode: its instances are held, it is not.
	MIGParent
)

// Fact is the answer about one device. It is immutable.
type Fact struct {
	State    State
	Holder   owner.Owner // if Held
	DRA      bool        // the holder is known from a ResourceClaim
	Replicas []Replica   // of a Shared device, those with one holder
	// Since is the time of the first snapshot of those in a row that name this
	// holder: of what was before it is not known whose the device was.
	Since pcommon.Timestamp
}

// Replica is a part of a shared device.
type Replica struct {
	Suffix string // "::<n>", what follows the device's hw.id
	Holder owner.Owner
	Since  pcommon.Timestamp // as Fact's
}

var (
	unknown   = &Fact{State: Unknown}
	contested = &Fact{State: Contested}
	expired   = &Fact{State: Expired}
	migParent = &Fact{State: MIGParent}
)

func (f *Fact) agrees(o *Fact) bool {
	return f.State == o.State && f.Holder == o.Holder && slices.EqualFunc(f.Replicas, o.Replicas, func(x, y Replica) bool {
		return x.Suffix == y.Suffix && x.Holder == y.Holder
	})
}

// claim is what one point says of a device.
type claim struct {
	holder  owner.Owner
	share   float64
	replica string
	shared  bool // time-slicing or MPS
	dra     bool
}

func (c claim) compare(o claim) int {
	return cmp.Or(cmp.Compare(len(c.replica), len(o.replica)), cmp.Compare(c.replica, o.replica), c.holder.Compare(o.holder))
}

// decide turns the claims on one device, in any order, into a Fact.
func decide(claims []claim) *Fact {
	slices.SortFunc(claims, claim.compare)
	var whole, parts []claim // held ones
	for _, c := range claims {
		switch {
		case c.holder == owner.Owner{}:
		case c.replica == "":
			whole = append(whole, c)
		default:
			parts = append(parts, c)
		}
	}
	switch {
	case len(whole) == 0 && len(parts) == len(claims) && ofOnePodByClaim(parts):
		return &Fact{State: Held, Holder: parts[0].holder.Whole(), DRA: true}
	case len(parts) > 0:
		return &Fact{State: Shared, Replicas: replicas(parts)}
	case len(whole) == 0:
		return &Fact{State: Free}
	}
	first := whole[0]
	one, samePod, shared, dra, sum := true, true, false, true, 0.0
	for i, c := range whole {
		one = one && c.holder == first.holder
		samePod = samePod && c.holder.SamePod(first.holder)
		shared = shared || c.shared
		dra = dra && c.dra
		// A container that holds a device under two names holds it once.
		if i == 0 || c.holder != whole[i-1].holder {
			sum += c.share
		}
	}
	const rounding = 1e-6
	switch {
	case one:
		return &Fact{State: Held, Holder: first.holder, DRA: dra}
	case samePod:
		return &Fact{State: Held, Holder: first.holder.Whole(), DRA: dra}
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
		if !c.dra || !c.holder.SamePod(parts[0].holder) {
			return false
		}
		sum += c.share
	}
	return len(parts) > 1 && sum >= 1-rounding
}

// replicas gives each replica its holder; parts are sorted by replica. One that
// two pods claim has none, and is left out.
func replicas(parts []claim) []Replica {
	out := make([]Replica, 0, len(parts))
	for len(parts) > 0 {
		n := 1
		for n < len(parts) && parts[n].replica == parts[0].replica {
			n++
		}
		if f := decideWhole(parts[:n]); f.State == Held {
			out = append(out, Replica{Suffix: parts[0].replica, Holder: f.Holder})
		}
		parts = parts[n:]
	}
	return slices.Clip(out)
}

func decideWhole(parts []claim) *Fact {
	own := make([]claim, len(parts))
	for i, c := range parts {
		own[i] = claim{holder: c.holder, share: 1, dra: c.dra}
	}
	return decide(own)
}

// Lookup says who holds the device or replica id at the time now. The answer is
// never nil.
func (k *Knowledge) Lookup(id string, now time.Time) *Fact {
	device, replica := deviceid.CutReplica(id)
	f := k.device(device, now)
	if replica == "" || f.State != Shared {
		return f
	}
	for i := range f.Replicas {
		if r := &f.Replicas[i]; r.Suffix == replica {
			return &Fact{State: Held, Holder: r.Holder, Since: r.Since}
		}
	}
	return f
}

func (k *Knowledge) device(id string, now time.Time) *Fact {
	found, stale := unknown, false
	for _, n := range k.index.get(id) {
		v := n.view.Load()
		f := v.fact(id, now)
		switch {
		case f == nil:
		case now.Sub(v.arrived) > v.believed:
			stale = true
		case found == unknown:
			found = f
		case !found.agrees(f):
			// Two nodes claim one device, as after a machine got a new name.
			found = contested
		}
	}
	if found != unknown && found.State != Free {
		return found
	}
	if s := k.seen.get(id); s != nil && k.fresh(&s.childHeard, now) {
		return migParent
	}
	if found == unknown && stale {
		return expired
	}
	return found
}

// Unjoined reports whether the node has allocations that are joined to no
// device: a device of it without holder may be one of them.
func (k *Knowledge) Unjoined(node Node, now time.Time) bool {
	n := k.nodes.get(node.id())
	if n == nil {
		return false
	}
	v := n.view.Load()
	return v.unjoined && now.Sub(v.arrived) <= v.believed
}

// Resolve gives the hw.id of a device that the kubelet could not name, replica
// included, if it is joined to one.
func (k *Knowledge) Resolve(node Node, hwID string) (string, bool) {
	n := k.nodes.get(node.id())
	if n == nil {
		return "", false
	}
	v := n.view.Load()
	if len(v.joined) == 0 {
		return "", false
	}
	h := parseHint(node, hwID)
	id, ok := v.joined[h.Device]
	return id + h.Replica, ok
}
