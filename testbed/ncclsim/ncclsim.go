// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package ncclsim simulates jobs whose ranks run NCCL with its Inspector: the files that each process
// writes, in the three shapes that exist, and the truth behind them: who is late, by how much, since
// when, and which lines are intact. It shares no code with the product.
//
// The model of a collective: rank i arrives at a_i; its kernel starts then, and all kernels end
// together at max(a) + c, c being the communication. So the rank that arrives last has the shortest
// time. Arrivals vary by up to Noise of c.
package ncclsim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// Version is the format of the files.
type Version string

// The versions: v4.0 of NCCL 2.28 to 2.30, v4.3 of its development branch, v5.0 of RCCL.
const (
	V40 Version = "v4.0"
	V43 Version = "v4.3"
	V50 Version = "v5.0"
)

// Operation is one that a communicator runs again and again.
type Operation struct {
	Name  string
	Bytes uint64        // of the message, as NCCL states it
	Time  time.Duration // of the communication
	P2P   bool          // each rank sends to the next

	sequence uint64
}

// Communicator is a set of processes.
type Communicator struct {
	ID, Name   string
	Nodes      int
	Period     time.Duration // between two rounds of its operations
	Operations []*Operation

	hash    uint64
	members []*member // by rank
	next    time.Time
}

// Ranks is how many there are.
func (c *Communicator) Ranks() int { return len(c.members) }

// Rank is that of a process, or -1.
func (c *Communicator) Rank(process int) int {
	for rank, m := range c.members {
		if m.process.Number == process {
			return rank
		}
	}
	return -1
}

// Hosts is on how many hosts the ranks are.
func (c *Communicator) Hosts() int {
	hosts := map[int]bool{}
	for _, m := range c.members {
		hosts[m.process.Host] = true
	}
	return len(hosts)
}

// Late says which processes come late, from a time until another.
type Late struct {
	Processes   []int
	Turns       bool    // one of them at random each time, in place of all
	By          float64 // of the communication's time
	Share       float64 // of the collectives
	From, Until time.Time
}

// Damage is what becomes of some lines of a process.
type Damage string

// The damages.
const (
	Intact Damage = ""
	NULs   Damage = "NUL bytes before a line"
	Joined Damage = "two lines joined"
	Half   Damage = "half a line"
	Text   Damage = "a line of text between two"
	Marker Damage = "a marker cut short"
)

// Options are those of a run; see Random.
type Options struct {
	Version  Version
	Dir      string // where the folders of the hosts are made
	Start    time.Time
	Hosts    int
	PerHost  int
	Slurm    bool          // a folder a job, not one a pod
	Interval time.Duration // between two dumps of a process
	Ring     int           // records that a communicator keeps for a dump; more overwrite the oldest
	LastOnly bool          // one record a dump and communicator, as NCCL 2.28 and 2.29 keep
	Noise    float64       // of the communication's time
	Outliers float64       // share of collectives with one rank that is very late
	Early    int           // a process that always comes first by far; -1 is none
	Unnamed  bool          // no comm_name
	Torn     bool          // the reader sees lines that are half written
	CPU      float64       // share of collectives that have no time of the GPU
	Graph    float64       // share of collectives captured in a graph (v5.0)
	Skew     time.Duration // clocks of hosts are off by up to this
	Late     *Late
	Hang     time.Time // nothing ends from then on
	Restart  time.Time // all processes die, and others follow after Gap
	Gap      time.Duration
	SamePIDs bool                // those others have the same numbers
	Paused   map[int][]time.Time // [from, until] in which a process does not dump
	Damaged  map[int]Damage
}

// Process is one rank's process.
type Process struct {
	Number, Host, PID int

	path    string
	file    *os.File
	phase   time.Duration
	members []*member
	buffer  []byte // not written yet
	damages int
}

// Run is a job.
type Run struct {
	Options
	Communicators []*Communicator // of the life that runs, or ran last
	Ended         []*Communicator // of lives before
	Processes     []*Process
	Written       map[string]uint64 // intact records in the files, by operation
	Dropped       uint64            // by rings, as the files state it

	rng       *rand.Rand
	skew      []time.Duration
	make      func(r *Run) // adds the communicators of a life
	arrivals  []float64
	restarted bool
}

// New makes a run; communicators is called for each life and uses Add.
func New(rng *rand.Rand, o Options, communicators func(*Run)) (*Run, error) {
	r := &Run{Options: o, rng: rng, make: communicators, Written: map[string]uint64{}}
	for host := range o.Hosts {
		if err := os.MkdirAll(filepath.Join(o.Dir, r.Host(host), r.Folder(host)), 0o755); err != nil {
			return nil, err
		}
		r.skew = append(r.skew, time.Duration((2*rng.Float64()-1)*float64(o.Skew)))
	}
	return r, r.begin(o.Start)
}

// Host is the name of one.
func (r *Run) Host(n int) string { return fmt.Sprintf("gpu-%03d", n) }

// Folder is the one below a host's in which its processes write.
func (r *Run) Folder(host int) string {
	if r.Slurm {
		return "41"
	}
	return fmt.Sprintf("ml_train-%d", host)
}

// Add makes a communicator of processes, in the order of their ranks, that starts after a while.
func (r *Run) Add(name string, period time.Duration, processes []int, operations ...Operation) {
	// The name of 16 digits loses two, for NCCL prints it into 17 bytes.
	c := &Communicator{hash: r.rng.Uint64() | 1<<63, Name: name, Period: period}
	c.ID = fmt.Sprintf("0x%x", c.hash)[:16]
	for i := range operations {
		c.Operations = append(c.Operations, &operations[i])
	}
	for rank, p := range processes {
		m := &member{process: r.Processes[p], communicator: c, rank: rank}
		m.process.members = append(m.process.members, m)
		c.members = append(c.members, m)
	}
	c.Nodes = c.Hosts()
	r.Communicators = append(r.Communicators, c)
}

// begin starts the processes of a life.
func (r *Run) begin(at time.Time) error {
	old := r.Processes
	r.Ended = append(r.Ended, r.Communicators...)
	r.Processes, r.Communicators = nil, nil
	for n := range r.Hosts * r.PerHost {
		p := &Process{Number: n, Host: n / r.PerHost, PID: 1000 + n%r.PerHost}
		if old != nil && !r.SamePIDs {
			p.PID += 5000
		}
		p.phase = time.Duration(r.rng.Int64N(int64(r.Interval)))
		p.path = filepath.Join(r.Dir, r.Host(p.Host), r.Folder(p.Host), fmt.Sprintf("%s-pid%d.log", r.Host(p.Host), p.PID))
		var err error
		if p.file, err = os.Create(p.path); err != nil {
			return err
		}
		r.Processes = append(r.Processes, p)
	}
	r.make(r)
	for _, c := range r.Communicators {
		c.next = at.Add(time.Duration(r.rng.Int64N(int64(c.Period))))
	}
	return nil
}

// Advance runs the job until a time and writes what its processes have dumped by then.
func (r *Run) Advance(now time.Time) error {
	if !r.Restart.IsZero() && !r.restarted && !now.Before(r.Restart) {
		r.restarted = true
		if err := r.until(r.Restart); err != nil {
			return err
		}
		if err := r.kill(); err != nil {
			return err
		}
		if err := r.begin(r.Restart.Add(r.Gap)); err != nil {
			return err
		}
	}
	return r.until(now)
}

func (r *Run) until(now time.Time) error {
	for _, c := range r.Communicators {
		for !c.next.After(now) {
			at := c.next
			for _, o := range c.Operations {
				if !r.Hang.IsZero() && !at.Before(r.Hang) {
					break
				}
				at = r.collective(c, o, at).Add(time.Millisecond)
			}
			c.next = c.next.Add(c.Period)
		}
	}
	for _, p := range r.Processes {
		if err := r.dump(p, now); err != nil {
			return err
		}
	}
	return nil
}

// collective runs one operation and returns when it ended.
func (r *Run) collective(c *Communicator, o *Operation, at time.Time) time.Time {
	n := len(c.members)
	if cap(r.arrivals) < n {
		r.arrivals = make([]float64, n)
	}
	a := r.arrivals[:n]
	took := o.Time.Seconds() * 1e6 * (0.95 + 0.1*r.rng.Float64()) // µs
	for i := range a {
		a[i] = took * r.Noise * r.rng.Float64()
	}
	if r.Early >= 0 {
		if i := c.Rank(r.Early); i >= 0 {
			a[i] -= 2 * took
		}
	}
	if r.Outliers > 0 && r.rng.Float64() < r.Outliers {
		a[r.rng.IntN(n)] += took * (2 + 20*r.rng.Float64())
	}
	if l := r.Late; l != nil && !at.Before(l.From) && (l.Until.IsZero() || at.Before(l.Until)) && r.rng.Float64() < l.Share {
		late := l.Processes
		if l.Turns {
			late = late[r.rng.IntN(len(late)):][:1]
		}
		for _, p := range late {
			if i := c.Rank(p); i >= 0 {
				a[i] += took * l.By
			}
		}
	}
	first, last := a[0], a[0]
	for _, v := range a {
		first, last = min(first, v), max(last, v)
	}
	if o.P2P {
		last = took * r.Noise // nobody waits for others
	}
	rec := record{operation: o, sequence: o.sequence, end: at.Add(time.Duration((last - first + took) * 1e3))}
	o.sequence++
	rec.cpu = r.rng.Float64() < r.CPU
	rec.graph = r.rng.Float64() < r.Graph
	for i, m := range c.members {
		rec.took = uint64(max(1, last-a[i]+took))
		r.keep(m, rec)
	}
	return rec.end
}
