// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package faults has the kinds of faults that a fleet and its collectors are put
// through, and draws rounds of them that go together.
package faults

import (
	"fmt"
	"time"
)

// place is what a kind of fault befalls.
type place int

const (
	onNode    place = iota // one node, its exporter, kubelet, agent or link
	onGateway              // the gateway
	onAPI                  // the API server
	onNothing              // it must disturb nothing
)

// counter is a metric of a collector about itself that must have grown.
type counter struct {
	name   string
	labels []string // name, value, …
}

// Kind is a kind of fault.
type Kind struct {
	name  string
	place place
	// silent: nothing can be known of the node while it lasts.
	silent bool
	// deaf: the kubelet reports nothing while it lasts.
	deaf bool
	// changes: pods come, go or change owners.
	changes bool
	// harmless: the affected component does all that it should while it lasts: it
	// goes together with no other fault of that place, and is judged as ever.
	harmless bool
	// restarts: a collector starts again.
	restarts bool
	node     string // on which alone it makes sense; empty: any
	weight   int    // how often it is drawn, beside others; 0 counts as 4
	// recovery is how long the fleet may take to be whole again, on a machine
	// that is not slow.
	recovery time.Duration
	// counts must grow meanwhile: the agent's, or of faults of no node the
	// gateway's.
	counts counter
	begin  func(s *Scene, f *Fault) (end func() error, err error)
}

// How long the fleet may take to be whole again: what it takes for a fresh point
// to come through, a collector to start, gRPC to try again.
const (
	soon      = 12 * time.Second
	restart   = 25 * time.Second
	reconnect = 30 * time.Second
	// What no pace.Interval shrinks: client-go lists again after a pause that grows to
	// 30 s with each failure of the last two minutes, and up to twice that by chance.
	relist = 75 * time.Second
)

// kinds are all of them.
func kinds() []*Kind {
	var all []*Kind
	all = append(all, exporterKinds()...)
	all = append(all, kubeletKinds()...)
	all = append(all, podKinds()...)
	all = append(all, apiKinds()...)
	all = append(all, processKinds()...)
	all = append(all, linkKinds()...)
	all = append(all, diskKinds()...)
	all = append(all, auditKinds()...)
	all = append(all, hostileKinds()...)
	for _, k := range all {
		if k.weight == 0 {
			k.weight = 4
		}
	}
	return all
}

// Pick finds the kinds that are named; none named: all.
func Pick(names []string) ([]*Kind, error) {
	all := kinds()
	if len(names) == 0 {
		return all, nil
	}
	var out []*Kind
	for _, name := range names {
		before := len(out)
		for _, k := range all {
			if k.name == name {
				out = append(out, k)
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("there is no kind of fault %q", name)
		}
	}
	return out, nil
}
