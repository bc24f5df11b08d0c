// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ncclsim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Fault is what is wrong with a random run.
type Fault string

// The faults.
const (
	LateRank  Fault = "a rank is late"
	LateHost  Fault = "all ranks of a host are late"
	LateTurns Fault = "the ranks of a host are late in turns"
	Healthy   Fault = "nobody is late"
	Weak      Fault = "a rank is late by less than counts"
	Recovers  Fault = "a rank is late for a while"
	Hangs     Fault = "nothing ends from a time on"
	Restarts  Fault = "all processes start again, and a rank is late"
)

// Faults are all of them, the common ones more than once.
var Faults = []Fault{LateRank, Healthy, LateHost, LateRank, Restarts, LateTurns, Recovers, LateRank, Healthy, Weak, LateRank, Hangs}

// Window is that of the analysis.
const Window = time.Minute

// Straggler is what is true of a communicator: a rank or a host that comes late.
type Straggler struct {
	Communicator *Communicator
	Rank         int    // -1 where it is the host
	Host         string // of the rank, or that is late
	Sure         bool   // late enough to be found
}

// Random is a run of a fault, of 2 to 1,024 ranks, that began at a time, and when it ends.
func Random(rng *rand.Rand, fault Fault, dir string, start time.Time) (run *Run, end time.Time, err error) {
	o := Options{
		Version: []Version{V40, V43, V50}[rng.IntN(3)],
		Dir:     dir, Start: start, Slurm: rng.IntN(2) == 0,
		Interval: time.Duration(1+rng.IntN(4)) * 500 * time.Millisecond,
		Ring:     1024, Noise: 0.1, Early: -1,
		Unnamed: rng.IntN(4) == 0, Torn: rng.IntN(2) == 0,
		Skew: []time.Duration{0, 100 * time.Millisecond, 2 * time.Second}[rng.IntN(3)],
	}
	if o.Version == V43 {
		o.Unnamed = false
	}
	o.PerHost = []int{1, 2, 4, 8, 8, 8}[rng.IntN(6)]
	ranks := int(8 * math.Exp2(7*rng.Float64()))
	switch {
	case rng.IntN(12) == 0:
		ranks = 2
		o.PerHost = min(o.PerHost, 1+rng.IntN(2))
	case ranks > 64:
		o.PerHost = 8
	}
	o.Hosts = max(1, ranks/o.PerHost)
	if fault == LateHost || fault == LateTurns {
		o.Hosts = max(o.Hosts, 2)
	}
	ranks = o.Hosts * o.PerHost

	period := time.Duration(1200+rng.IntN(800)) * time.Millisecond
	if o.Version == V40 && rng.IntN(4) == 0 {
		o.LastOnly = true
		o.Interval = 500 * time.Millisecond
		period *= 2
	}
	if rng.IntN(3) == 0 {
		o.Outliers = 0.03 * rng.Float64()
	}
	if rng.IntN(4) == 0 {
		o.CPU = 0.1 * rng.Float64()
	}
	if o.Version == V50 && rng.IntN(2) == 0 {
		o.Graph = 0.1 * rng.Float64()
	}
	onset := start
	if rng.IntN(2) == 0 {
		onset = start.Add(time.Duration(30+rng.IntN(60)) * time.Second)
	}
	end = onset.Add(5*Window + Window/2)
	late := &Late{Processes: []int{rng.IntN(ranks)}, By: 0.2 * math.Exp(rng.Float64()*3), Share: 0.85 + 0.15*rng.Float64(), From: onset}
	if ranks == 2 {
		late.Share = 0.95 + 0.05*rng.Float64()
	}
	switch fault {
	case LateRank:
	case LateHost, LateTurns:
		late.Processes = nil
		host := rng.IntN(o.Hosts)
		for i := range o.PerHost {
			late.Processes = append(late.Processes, host*o.PerHost+i)
		}
		late.Turns = fault == LateTurns
	case Healthy:
		late = nil
		if ranks > 2 && rng.IntN(3) == 0 {
			o.Early = rng.IntN(ranks)
		}
	case Weak:
		late.By = 0.03 + 0.1*rng.Float64()
	case Recovers:
		late.Until = onset.Add(5 * Window)
		end = late.Until.Add(5*Window + Window/2)
	case Hangs:
		late = nil
		o.Hang = onset.Add(2 * Window)
		end = o.Hang.Add(8 * time.Minute)
	case Restarts:
		o.Restart = onset.Add(time.Duration(30+rng.IntN(90)) * time.Second)
		o.Gap = time.Duration(5+rng.IntN(40)) * time.Second
		o.SamePIDs = rng.IntN(2) == 0
		end = o.Restart.Add(o.Gap + 5*Window + Window/2)
	}
	o.Late = late
	if ranks >= 32 && fault != Hangs && rng.IntN(4) == 0 {
		// A process that does not dump for a while, with a ring too small for it.
		o.Ring = 16
		from := start.Add(time.Duration(rng.IntN(120)) * time.Second)
		o.Paused = map[int][]time.Time{rng.IntN(ranks): {from, from.Add(50 * time.Second)}}
	}
	if rng.IntN(3) == 0 {
		kinds := []Damage{NULs, Joined, Half, Text}
		if o.Version == V43 {
			kinds = append(kinds, Marker)
		}
		o.Damaged = map[int]Damage{}
		for range 1 + ranks/16 {
			o.Damaged[rng.IntN(ranks)] = kinds[rng.IntN(len(kinds))]
		}
	}

	comm := time.Duration(float64(time.Millisecond) * math.Exp(rng.Float64()*4.5)) // 1 ms to 90 ms
	size := func() uint64 { return uint64(comm.Seconds()*50e9) &^ 4095 }
	operations := []Operation{{Name: "AllReduce", Bytes: size(), Time: comm}}
	if !o.LastOnly && rng.IntN(2) == 0 {
		operations = []Operation{{Name: "AllGather", Bytes: size() / uint64(ranks), Time: comm}, {Name: "ReduceScatter", Bytes: size() / uint64(ranks), Time: comm}}
	}
	if !o.LastOnly && ranks <= 64 && rng.IntN(3) == 0 {
		operations = append(operations, Operation{Name: "Send", Bytes: 1 << 24, Time: comm / 10, P2P: true}, Operation{Name: "AllToAll", Bytes: 0, Time: comm / 2})
	}
	tensor := o.PerHost > 1 && o.Hosts > 1 && ranks <= 256 && rng.IntN(3) == 0
	run, err = New(rng, o, func(r *Run) {
		all := make([]int, ranks)
		for i := range all {
			all[i] = i
		}
		r.Add("DP", period, all, operations...)
		for h := range o.Hosts {
			if tensor {
				r.Add(fmt.Sprintf("TP %d", h), period, all[h*o.PerHost:(h+1)*o.PerHost], Operation{Name: "AllReduce", Bytes: 1 << 26, Time: 2 * time.Millisecond})
			}
		}
	})
	return run, end, err
}

// Stragglers is what is true of the communicators of all lives, once somebody is late.
func (r *Run) Stragglers() (found []Straggler) {
	l := r.Late
	if l == nil {
		return nil
	}
	for _, c := range append(r.Ended[:len(r.Ended):len(r.Ended)], r.Communicators...) {
		ranks := map[int]bool{}
		host := 0
		for _, p := range l.Processes {
			if i := c.Rank(p); i >= 0 {
				ranks[i] = true
				host = r.Processes[p].Host
			}
		}
		s := Straggler{Communicator: c, Rank: -1, Host: r.Host(host), Sure: l.By >= 0.2}
		switch {
		case len(ranks) == 0:
			continue
		case len(ranks) == 1:
			for s.Rank = range ranks {
			}
		case c.Hosts() == 1:
			continue // they wait for each other, or for one after the other
		}
		found = append(found, s)
	}
	return found
}
