// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/claims"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/judge"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

// xids are codes that end no more than an application.
var xids = []int{31, 43, 45, 13, 94, 63, 79, 119}

// XIDs lets GPUs report XIDs, and knows which did: each must become an event.
type XIDs struct {
	verdict *judge.Verdict
	times   map[string]int // by GPU
	before  int            // how many of all are of earlier rounds

	mu  sync.Mutex // guards all
	all []claims.XID
}

// NewXIDs injects none yet; each will be noted in the verdict.
func NewXIDs(v *judge.Verdict) *XIDs { return &XIDs{verdict: v, times: map[string]int{}} }

// Inject lets a GPU of a node report an XID.
func (x *XIDs) Inject(n *fleet.Node, index int) error {
	devices, err := n.GPUs.Devices(n.Name)
	if err != nil {
		return err
	}
	// Never the same twice: the exporter's default fields have the last code, and
	// no count.
	id := devices[index].UUID
	x.times[id]++
	code := xids[x.times[id]%len(xids)]
	_, err = n.GPUs.StartFault(gpusim.Fault{Node: n.Name, Kind: gpusim.XID, Device: strconv.Itoa(index), Code: code})
	x.mu.Lock()
	x.all = append(x.all, claims.XID{Device: id, Code: strconv.Itoa(code), At: time.Now()})
	x.mu.Unlock()
	x.verdict.Fault(fmt.Sprintf("XID %d of %s on %s", code, id, n.Name))
	return err
}

// BeginRound begins a round, which has none yet.
func (x *XIDs) BeginRound() { x.before = len(x.All()) }

// OfRound are those of this round.
func (x *XIDs) OfRound() []claims.XID { return x.All()[x.before:] }

// All are those of all rounds. It may be called concurrently.
func (x *XIDs) All() []claims.XID {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.all)
}
