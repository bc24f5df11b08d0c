// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/answers"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/devicerules"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
)

// exporter is an exporter that is watched.
type exporter struct {
	answers.Answers
	id       subject.ExporterID
	seen     time.Duration     // when the newest point arrived
	opened   bool              // it is in exporters.open
	snapshot pcommon.Timestamp // the time of the points that are read; 0: all were judged
	at       pcommon.Timestamp // the newest time that was judged
	answered time.Duration     // when the newest scrape that succeeded arrived; 0: none did
	down     condition.Condition
	frozen   bool // as it is stored
}

// subject is the exporter at the address that is down, else at the newest; reason is why
// it is down.
func (x *exporter) subject() (s subject.Exporter, reason string) {
	address, port, reason := x.Worst()
	return subject.Exporter{ID: x.id, Address: address, Port: port}, reason
}

// exporters are the exporters that are watched. A successful scrape of one decides which
// devices are missing.
type exporters struct {
	*ledger
	devices *devices
	on      bool
	spec    condition.Spec
	all     map[subject.ExporterID]*exporter
	open    []*exporter // with a snapshot that is not judged yet
}

func newExporters(l *ledger, o *Options, in *inputs, d *devices) *exporters {
	e := &exporters{ledger: l, devices: d, all: map[subject.ExporterID]*exporter{}}
	if s := o.settings(&devicerules.ExporterDown); s.Enabled() {
		e.on, e.spec = true, devicerules.ExporterDownSpec(s)
		in.add(&devicerules.ExporterDown)
	}
	return e
}

// get finds or adds an exporter; nil when there is no room.
func (s *exporters) get(id subject.ExporterID) *exporter {
	x := s.all[id]
	if x != nil {
		return x
	}
	if len(s.all) >= s.maxSubjects {
		s.unwatched("exporter")
		return nil
	}
	id.Cluster, id.Node, id.Address = strings.Clone(id.Cluster), strings.Clone(id.Node), strings.Clone(id.Address)
	x = &exporter{id: id}
	s.all[id] = x
	return x
}

// openAt is as that of devices.
func (s *exporters) openAt(x *exporter, at pcommon.Timestamp) bool {
	if at == x.snapshot {
		return true
	}
	if !s.isNew(at, x.snapshot, x.at, x.seen) {
		return false
	}
	if x.snapshot != 0 {
		s.judge(x)
	}
	x.snapshot, x.seen = at, s.now
	if !x.opened {
		x.opened = true
		s.open = append(s.open, x)
	}
	return true
}

// judgeOpen judges snapshots that are at least that old.
func (s *exporters) judgeOpen(age time.Duration) {
	open := s.open
	s.open = s.open[:0]
	for _, x := range open {
		switch {
		case x.snapshot == 0:
			x.opened = false
		case s.now-x.seen < age:
			s.open = append(s.open, x)
		default:
			x.opened = false
			s.judge(x)
		}
	}
}

// resume starts all durations again.
func (s *exporters) resume() {
	for _, x := range s.all {
		x.down.Restart()
	}
}

// judge judges one scrape, of which all parts have arrived.
func (s *exporters) judge(x *exporter) {
	x.snapshot, x.at = 0, x.snapshot
	got := x.Settle(x.at, s.staleness)
	if s.on {
		maybeFrozen := got.Known && !got.Down && x.MaybeFrozen(x.at)
		if v := devicerules.JudgeExporter(got.Known, got.Down, maybeFrozen); v.Known {
			x.down.Take(x.at, v)
			s.moveTo(x, x.at)
		}
	}
	if frozen := x.WasFrozen(); frozen != x.frozen {
		x.frozen, s.changed = frozen, true
	}
	// Of two exporters at one port the one that is down may be the one that has
	// the devices.
	if got.Succeeded && !got.Failed {
		x.answered = s.now
		s.devices.miss(x.id, x.at, x.IsUnrecognized())
	}
}

func (s *exporters) moveTo(x *exporter, at pcommon.Timestamp) {
	if next := x.down.Next(&s.spec, at); next != x.down.Level {
		s.move(&x.down, &s.spec, devicerules.ExporterDown.Event, next, at, func(ev *event.Event) {
			about, reason := x.subject()
			devicerules.DescribeExporter(about, reason, ev)
		})
	}
}

// elapse raises what became due since the newest scrapes.
func (s *exporters) elapse() {
	for _, x := range s.all {
		if x.snapshot != 0 || !s.on || x.down.At != x.at {
			continue
		}
		if due := x.down.Due(&s.spec); due != 0 {
			if passed, fresh := s.due(due, x.at, x.seen); passed && fresh {
				s.moveTo(x, due)
			}
		}
	}
}

// newest is when the newest point of an exporter arrived.
func (s *exporters) newest() (newest time.Duration) {
	for _, x := range s.all {
		newest = max(newest, x.seen)
	}
	return newest
}

// forget drops exporters that are old, and clears what is raised about them.
func (s *exporters) forget(old func(seen time.Duration) bool, ttl time.Duration) {
	for _, x := range s.all {
		if !old(x.seen) {
			continue
		}
		s.move(&x.down, &s.spec, devicerules.ExporterDown.Event, 0, pcommon.NewTimestampFromTime(s.wall), func(ev *event.Event) {
			about, reason := x.subject()
			devicerules.DescribeExporter(about, reason, ev)
			about.Address = "" // that of a pod that may be gone
			ev.Body = about.String() + " was not seen for " + event.InWords(ttl) + ", and is no longer expected."
		})
		if x.down.Level == 0 {
			delete(s.all, x.id)
			s.changed = true
		}
	}
}
