// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/collectors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/history"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/judge"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/process"
)

// Scene is what faults break.
type Scene struct {
	Fleet      *fleet.Fleet
	Collectors *collectors.Collectors
	Recorder   *judge.Recorder // of what the gateway sends
	Audit      string          // path of the webhooks' audit log
	XIDs       *XIDs
	Verdict    *judge.Verdict
}

// Fault is one of a round. It is begun and ended once.
type Fault struct {
	*Kind
	At   time.Duration // of its beginning, from that of its round
	Last time.Duration // how long it lasts

	node *collectors.Member // of faults of a node
	rand *rand.Rand
	on   bool
	end  func() error

	counted     float64 // what counts reported before
	countedLife time.Time
}

func (f *Fault) String() string {
	if f.node == nil {
		return f.name
	}
	return f.name + " of " + f.node.Name
}

// Recovery is how long the fleet may take to be whole again, on a machine that is not
// slow.
func (f *Fault) Recovery() time.Duration { return f.recovery }

// Name is that of its kind.
func (f *Fault) Name() string { return f.name }

// where is the place that it disturbs, "" for none.
func (f *Fault) where() string {
	switch f.place {
	case onNode:
		return f.node.Name
	case onGateway:
		return history.Gateway
	case onAPI:
		return history.API
	}
	return ""
}

// Toggle begins the fault, or ends it if it is on, and returns whether it is on now.
func (f *Fault) Toggle(ctx context.Context, s *Scene) (on bool, err error) {
	f.on = !f.on
	if !f.on {
		s.Verdict.Fault("end of " + f.String())
		// From before its end on nothing is sure any more.
		if f.place == onNode {
			s.Fleet.History.Silence(f.node.Name, false, time.Now())
			s.Fleet.History.Deafen(f.node.Name, false, time.Now())
		}
		return false, f.end()
	}
	s.Verdict.Fault(f.String())
	f.counted, f.countedLife = f.counter(ctx, s.Collectors)
	if place := f.where(); place != "" && !f.harmless {
		s.Fleet.History.Disturb(place, time.Now())
	}
	if f.end, err = f.begin(s, f); err != nil {
		return true, err
	}
	if f.place == onNode && f.silent {
		s.Fleet.History.Silence(f.node.Name, true, time.Now())
	}
	if f.place == onNode && f.deaf {
		s.Fleet.History.Deafen(f.node.Name, true, time.Now())
	}
	return true, nil
}

// process is the collector that it affects.
func (f *Fault) process(c *collectors.Collectors) *process.Process {
	if f.node != nil {
		return f.node.Agent
	}
	return c.Gateway
}

// counter reads what the fault's metric reports, and of which life of the process.
func (f *Fault) counter(ctx context.Context, c *collectors.Collectors) (float64, time.Time) {
	if f.counts.name == "" {
		return 0, time.Time{}
	}
	p := f.process(c)
	_, since := p.Running()
	value, _ := p.Metric(ctx, f.counts.name, f.counts.labels...)
	return value, since
}

// CheckCounted checks that what the fault made a collector refuse was counted.
func (f *Fault) CheckCounted(ctx context.Context, s *Scene) {
	if f.counts.name == "" {
		return
	}
	if after, since := f.counter(ctx, s.Collectors); since.Equal(f.countedLife) && after <= f.counted {
		s.Verdict.Violate("counters", "%s %v is %g after %s, as before", f.counts.name, f.counts.labels, after, f)
	}
}

// HidesXIDs reports whether an XID of a node may go unreported because of the fault:
// it damages the state without which an agent cannot know that an XID is new, or what
// the exporter reports.
func (f *Fault) HidesXIDs(n *collectors.Member) bool {
	return f.node == n && slices.Contains([]string{"agent_state_damaged", "sentinel", "gpu_lost", "agent_kill_cut_off"}, f.name)
}
