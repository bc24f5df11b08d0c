// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package claims judges what collectors report over time, across their restarts: not
// whether a value is right at one moment, but whether what stands after each agrees.
package claims

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// lookBack is for how long stores show a value that was not reported again.
const lookBack = 5 * time.Minute

// StatePoint is a point of gpu.pod.state.
type StatePoint struct {
	Service, Pod, State string
	At                  time.Time
	Value               float64
	Ended               bool
}

type pod struct{ service, name string }

type value struct {
	at   time.Time
	is   float64
	over bool
}

// States is what a store shows of the states of pods.
type States struct {
	pods map[pod]map[string]value
}

// Observe takes the points of one batch in their order, and reports which pods of it are
// in several states at once: the end of one was never reported, or was lost.
func (s *States) Observe(points []StatePoint) (found []string) {
	if s.pods == nil {
		s.pods = map[pod]map[string]value{}
	}
	newest := map[pod]time.Time{}
	for _, p := range points {
		key := pod{p.Service, p.Pod}
		if s.pods[key] == nil {
			s.pods[key] = map[string]value{}
		}
		if last, ok := s.pods[key][p.State]; ok && p.At.Before(last.at) {
			continue // no store takes it
		}
		s.pods[key][p.State] = value{p.At, p.Value, p.Ended}
		if p.At.After(newest[key]) {
			newest[key] = p.At
		}
	}
	for key, at := range newest {
		var in []string
		for _, state := range slices.Sorted(maps.Keys(s.pods[key])) {
			if v := s.pods[key][state]; v.is != 0 && !v.over && at.Sub(v.at) < lookBack {
				in = append(in, state)
			}
		}
		if len(in) > 1 {
			found = append(found, fmt.Sprintf("pod %s of %s is %s at once", key.name, key.service, strings.Join(in, " and ")))
		}
	}
	slices.Sort(found)
	return found
}

// XID is one that a GPU reported, or that was raised.
type XID struct {
	Device, Code string
	At           time.Time
}

// OldXIDs reports which of the XIDs raised are of no GPU's report within the time before.
// What was never reported is not judged: GPUs report some by themselves.
func OldXIDs(raised, reported []XID, within time.Duration) (found []string) {
	for _, r := range raised {
		last := time.Time{}
		for _, x := range reported {
			if x.Device == r.Device && x.Code == r.Code && x.At.After(last) && !x.At.After(r.At.Add(5*time.Second)) {
				last = x.At
			}
		}
		if age := r.At.Sub(last); !last.IsZero() && age > within {
			found = append(found, fmt.Sprintf("XID %s of %s is raised %.0f s after it was last reported", r.Code, r.Device, age.Seconds()))
		}
	}
	return found
}

// NotFrozen is a report that an exporter's pages do not stand still.
type NotFrozen struct {
	Node string
	At   time.Time
}

// Frozen is for how long the pages of a node's exporter stand still for sure, with the
// start of the agent that reads them; To is zero while they do.
type Frozen struct {
	From, To, Agent time.Time
}

// Known reports whether the report can be known: an agent that started while the pages stood
// still has seen no two that differ.
func (w *NotFrozen) Known(f Frozen) bool {
	return w.At.Before(f.Agent) || f.Agent.Before(f.From) || !f.To.IsZero() && !w.At.Before(f.To)
}
