// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package communicator brings the ranks of communicators together: what they wait for, which rank
// or host is late, and which job is silent while it holds its devices. It has no clock, no goroutine
// and no I/O: batches and the time are passed in.
package communicator

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/stall"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/straggler"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/wire"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// Config of State.
type Config struct {
	Straggler straggler.Config
	// StallAfter is for how long a job may be silent, at least.
	StallAfter time.Duration
	MaxDevices int
}

// Subject is a service of Kubernetes, a pod without one, or a job of Slurm.
type Subject struct {
	Cluster, Namespace, Service, Pod string
	SlurmCluster, Job                string
}

// subjectOf is the subject that a resource names; the zero Subject where it names none.
func subjectOf(attrs pcommon.Map) Subject {
	s := Subject{Cluster: points.Str(attrs, names.K8sClusterName)}
	pod := points.Str(attrs, names.K8sPodName)
	if job := points.Str(attrs, names.SlurmJobID); job != "" && pod == "" {
		s.SlurmCluster, s.Job = points.Str(attrs, names.SlurmClusterName), job
		return s
	}
	s.Namespace, s.Service = points.Str(attrs, names.K8sNamespaceName), points.Str(attrs, names.ServiceName)
	if s.Service == "" {
		s.Pod = pod
	}
	if s.Service == "" && s.Pod == "" {
		return Subject{}
	}
	return s
}

// job is what is known of one with communicators.
type job struct {
	comms int
	quiet stall.Job
	held  int // devices, when it was judged
}

// comm is what is known of a communicator beside the times of its ranks.
type comm struct {
	subject Subject
	places  map[int]place
}

// place is where a rank runs.
type place struct {
	host, pod, device string
}

// Counts are since the State was made.
type Counts struct {
	straggler.Counts
	// Malformed are log records of nccl that state what cannot be.
	Malformed int
	// LimitDevices are points of devices over MaxDevices.
	LimitDevices int
}

// State is what is known. It is not safe for concurrent use.
type State struct {
	cfg     Config
	late    *straggler.State
	comms   map[straggler.Communicator]*comm
	jobs    map[Subject]*job
	fleet   fleet
	emitted map[series]bool
	known   map[Subject]pcommon.Map // identities, until the evaluation after a job has gone
	counts  Counts
}

// New returns a State that knows nothing.
func New(cfg Config) *State {
	return &State{
		cfg: cfg, late: straggler.New(cfg.Straggler), comms: map[straggler.Communicator]*comm{},
		jobs: map[Subject]*job{}, fleet: fleet{most: cfg.MaxDevices, all: map[deviceKey]*device{}}, emitted: map[series]bool{},
		known: map[Subject]pcommon.Map{},
	}
}

// Counts returns what was done so far.
func (s *State) Counts() Counts {
	c := s.counts
	c.Counts, c.LimitDevices = s.late.Counts(), s.fleet.refused
	return c
}

// Tracked is how many communicators and devices are known.
func (s *State) Tracked() (communicators, devices int) { return len(s.comms), len(s.fleet.all) }

// Logs takes in the records that nccl on the nodes sends; every other log record is left alone.
func (s *State) Logs(ld plog.Logs, now time.Time) {
	for _, rl := range ld.ResourceLogs().All() {
		attrs := rl.Resource().Attributes()
		for _, sl := range rl.ScopeLogs().All() {
			for _, r := range sl.LogRecords().All() {
				if b, is, ok := wire.Read(r); is && ok {
					s.batch(attrs, &b, now)
				} else if is {
					s.counts.Malformed++
				}
			}
		}
	}
}

// Resume takes that this process did not run for some time until now: what is known stays so for as
// long as it would have.
func (s *State) Resume(now time.Time, away time.Duration) {
	for _, j := range s.jobs {
		j.quiet.Resume(now, away)
	}
	for _, d := range s.fleet.all {
		d.seen, d.read = d.seen.Add(away), d.read.Add(away)
	}
}

// Metrics takes in who has which device, and what state it is in.
func (s *State) Metrics(md pmetric.Metrics, now time.Time) { s.fleet.observe(md, now) }

func (s *State) batch(attrs pcommon.Map, b *wire.Batch, now time.Time) {
	subject := subjectOf(attrs)
	host := points.Str(attrs, names.K8sNodeName)
	if host == "" {
		host = b.Host
	}
	id := straggler.Communicator{Cluster: subject.Cluster + "\x00" + subject.SlurmCluster, Key: b.Key}
	if !s.late.Observe(id, straggler.Samples{Rank: b.Rank, Host: host, Operation: b.Operation, Sequences: b.Sequences, Durations: b.Durations}, now) {
		return
	}
	c := s.comms[id]
	if c == nil {
		c = &comm{places: map[int]place{}}
		s.comms[id] = c
	}
	if c.subject != subject || s.jobs[subject] == nil {
		s.move(c, subject)
		j := s.jobs[subject]
		if j == nil {
			j = &job{}
			s.jobs[subject], s.known[subject] = j, identity(attrs, subject)
		}
		j.comms++
	}
	c.places[b.Rank] = place{host, points.Str(attrs, names.K8sPodName), b.Device}
	s.jobs[subject].quiet.Heard(now)
}

// move takes a communicator from the job that it was of.
func (s *State) move(c *comm, to Subject) {
	if j := s.jobs[c.subject]; j != nil {
		if j.comms--; j.comms == 0 {
			delete(s.jobs, c.subject)
		}
	}
	c.subject = to
}

// identity is what a resource says of a subject, without what is of one pod or node.
func identity(attrs pcommon.Map, of Subject) pcommon.Map {
	out := pcommon.NewMap()
	keys := []string{names.K8sClusterName, names.K8sNamespaceName, names.ServiceNamespace, names.ServiceName}
	if of.Job != "" {
		keys = append(keys, names.SlurmClusterName, names.SlurmJobID, names.SlurmJobUser, names.SlurmJobAccount, names.SlurmPartition)
	}
	if of.Pod != "" {
		keys = append(keys, names.K8sPodName)
	}
	for _, key := range keys {
		if v := points.Str(attrs, key); v != "" {
			out.PutStr(key, v)
		}
	}
	return out
}

// forgotten drops what belongs to communicators that the times have forgotten.
func (s *State) forgotten() {
	for id, c := range s.comms {
		if !s.late.Knows(id) {
			s.move(c, Subject{})
			delete(s.comms, id)
		}
	}
}
