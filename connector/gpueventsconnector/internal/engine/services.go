// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/evaluations"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/servicerules"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
)

// service is a service that is watched.
type service struct {
	id         subject.Service
	at         pcommon.Timestamp // of the newest evaluation
	seen       time.Duration     // when it arrived
	restored   bool              // something is raised since before a restart, and there was no evaluation since
	conditions []condition.Condition
}

func (t *service) raised() bool {
	return slices.ContainsFunc(t.conditions, func(c condition.Condition) bool { return c.Level > 0 })
}

// services are the services that are watched.
type services struct {
	*ledger
	nodes       *nodes
	on          []bool // the rules that run
	restoredTTL time.Duration

	all        map[subject.Service]*service
	first      time.Duration // when the first evaluation arrived; 0: there was none
	unseen     int           // services that are restored
	batch      evaluations.Batch
	unfinished []unfinished
}

// unfinished is an event in the ledger that gets its sentence and attributes once the
// details are collected: only batches with events pay for that.
type unfinished struct {
	index int // in ledger.waiting
	rule  *servicerules.Rule
	of    evaluations.Moment
}

func newServices(l *ledger, o *Options, in *inputs, n *nodes) *services {
	s := &services{ledger: l, nodes: n, on: make([]bool, len(servicerules.Rules)), restoredTTL: o.RestoredTTL, all: map[subject.Service]*service{}}
	for i, r := range servicerules.Rules {
		if o.settings(&r.Rule).Enabled() {
			s.on[i] = true
			in.add(&r.Rule)
		}
	}
	return s
}

// judge judges the evaluations of a batch, in the order of their times.
func (s *services) judge(md pmetric.Metrics) {
	b := &s.batch
	if b.Empty() {
		return
	}
	all := b.Sorted()
	for i := range all {
		s.judgeOne(&all[i])
	}
	if len(s.unfinished) > 0 {
		of := make([]evaluations.Moment, len(s.unfinished))
		for i := range s.unfinished {
			of[i] = s.unfinished[i].of
		}
		known := evaluations.Gather(of, md)
		for _, u := range s.unfinished {
			u.rule.Describe(u.of.Service, known[u.of], &s.waiting[u.index])
		}
		s.unfinished = s.unfinished[:0]
	}
	b.Reset()
	s.forgetUnseen()
}

func (s *services) judgeOne(ev *evaluations.Evaluation) {
	if !ev.Gone && !ev.Live {
		return
	}
	t := s.all[ev.Service]
	if t == nil {
		if ev.Gone {
			return
		}
		if t = s.add(ev); t == nil {
			return
		}
	}
	if ev.At < t.at && s.now-t.seen < clockSet {
		s.counts.Late++
		return
	}
	t.at, t.seen = ev.At, s.now
	if t.restored {
		t.restored = false
		s.unseen--
	}
	if s.first == 0 {
		s.first = s.now
	}
	if ev.Gone {
		s.drop(t, ev.At, event.SubjectGone)
		return
	}
	for i, r := range servicerules.Rules {
		if !s.on[i] {
			continue
		}
		v := r.Judge(&ev.Evaluation)
		if !v.Known || r.WithNode && v.Met > 0 && t.conditions[i].Level == 0 && s.nodes.silent(t.id) {
			continue
		}
		s.moveTo(t, i, v.Met, ev.At, event.Denied)
	}
}

func (s *services) moveTo(t *service, i int, next uint8, at pcommon.Timestamp, why event.Ending) {
	r := servicerules.Rules[i]
	s.move(&t.conditions[i], &r.Spec, r.Event, next, at, func(ev *event.Event) {
		t.id.About(ev)
		ev.Ended = why
		s.unfinished = append(s.unfinished, unfinished{len(s.waiting), r, evaluations.Moment{Service: t.id, At: at}})
	})
}

// add adds a service. Where there are too many, one about which nothing is raised makes
// room; nil when there is none.
func (s *services) add(ev *evaluations.Evaluation) *service {
	if len(s.all) >= s.maxSubjects {
		for id, t := range s.all {
			if !t.raised() {
				delete(s.all, id)
				break
			}
		}
	}
	if len(s.all) >= s.maxSubjects {
		if ev.Partial > 0 && s.on[slices.Index(servicerules.Rules, &servicerules.Partial)] {
			s.refuse(servicerules.Partial.Event)
		} else {
			s.unwatched("service")
		}
		return nil
	}
	id := ev.Service
	return s.put(subject.Service{Cluster: strings.Clone(id.Cluster), Slurm: strings.Clone(id.Slurm), Namespace: strings.Clone(id.Namespace), Name: strings.Clone(id.Name)})
}

func (s *services) put(id subject.Service) *service {
	t := &service{id: id, conditions: make([]condition.Condition, len(servicerules.Rules))}
	s.all[id] = t
	return t
}

// restore returns the condition of a service that was raised before a restart, and nil
// where its rule does not run.
func (s *services) restore(name string, id subject.Service) *condition.Condition {
	i := slices.IndexFunc(servicerules.Rules, func(r *servicerules.Rule) bool { return r.Event == name })
	if i < 0 || !s.on[i] || id.Name == "" {
		return nil
	}
	t := s.all[id]
	if t == nil {
		t = s.put(id)
		t.seen, t.restored = s.now, true
		s.unseen++
	}
	return &t.conditions[i]
}

// drop forgets a service and clears what is raised about it.
func (s *services) drop(t *service, at pcommon.Timestamp, why event.Ending) {
	for i := range t.conditions {
		s.moveTo(t, i, 0, at, why)
	}
	if !t.raised() {
		delete(s.all, t.id)
	}
}

// forgetUnseen clears what was raised before a restart about services without an
// evaluation for restored_ttl: they went during the restart.
func (s *services) forgetUnseen() {
	if s.unseen == 0 || s.first == 0 || s.now-s.first < s.restoredTTL {
		return
	}
	var gone []*service
	for _, t := range s.all {
		if t.restored {
			gone = append(gone, t)
		}
	}
	slices.SortFunc(gone, func(a, b *service) int { return cmp.Compare(a.id.String(), b.id.String()) })
	for _, t := range gone {
		s.drop(t, pcommon.NewTimestampFromTime(s.wall), event.NotSeen)
		if t.restored = t.raised(); !t.restored {
			s.unseen--
		}
	}
	for _, u := range s.unfinished {
		u.rule.Describe(u.of.Service, servicerules.NewDetails(), &s.waiting[u.index])
	}
	s.unfinished = s.unfinished[:0]
}
