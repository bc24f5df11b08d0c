// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package engine has the state of all rules: what is watched, what is raised, and the
// events about it. It does no I/O, starts no goroutine and reads no clock.
package engine

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/healthmetrics"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/kernellog"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
)

// Options of an Engine.
type Options struct {
	Devices, Services bool // the rule sets that run
	// Rules are the settings of each rule by its event; a rule without settings does not
	// run.
	Rules map[string]rule.Settings
	// MaxSubjects is how many devices, exporters, nodes and services each are watched, and
	// how many conditions may be raised.
	MaxSubjects int
	Staleness   time.Duration // for how long a point is true
	SubjectTTL  time.Duration // of a subject without telemetry, while there is some of others
	RestoredTTL time.Duration // of a service from before a restart without an evaluation

	MaxReasons int                  // that are listed of one board
	Expected   map[string]int       // boards of a node, by host.type
	Cleared    map[string]time.Time // until when a person has acknowledged reasons, by hw.id or node
}

// settings returns the settings of a rule; they are empty where its set does not run.
func (o *Options) settings(r *rule.Rule) rule.Settings {
	if r.Set == rule.Device && !o.Devices || r.Set == rule.Service && !o.Services {
		return nil
	}
	return o.Rules[r.Event]
}

// Engine judges metrics as they arrive. Its methods must not be called at the same
// time.
type Engine struct {
	*ledger
	inputs     inputs
	onServices bool
	subjectTTL time.Duration

	devices   *devices
	exporters *exporters
	nodes     *nodes
	services  *services

	stragglers *stragglers

	log       kernellog.Reader
	addresses addresses

	forgot time.Duration // when the last round of forgetting was
	times  []pcommon.Timestamp

	resource resource // that is read
}

// New returns an engine that has seen nothing.
func New(o Options) *Engine {
	e := &Engine{
		ledger:     &ledger{staleness: o.Staleness, maxSubjects: o.MaxSubjects},
		onServices: o.Services, subjectTTL: o.SubjectTTL,
	}
	e.devices = newDevices(e.ledger, &o, &e.inputs)
	e.exporters = newExporters(e.ledger, &o, &e.inputs, e.devices)
	e.devices.boards.exporters = e.exporters.all
	e.nodes = newNodes(e.ledger, &o, &e.inputs)
	e.services = newServices(e.ledger, &o, &e.inputs, e.nodes)
	e.stragglers = newStragglers(e.ledger, &o, &e.inputs, e.devices)
	return e
}

// advance moves time on. After a time for which this process did not run, durations start again,
// and nodes have the time to come back that they have after a restart.
func (e *Engine) advance(now time.Time) {
	if !e.ledger.advance(now) {
		return
	}
	e.devices.resume()
	e.exporters.resume()
	e.nodes.resume()
}

// Consume reads one batch.
func (e *Engine) Consume(md pmetric.Metrics, now time.Time) {
	e.advance(now)
	e.stragglers.advance()
	e.read(md)
	e.services.judge(md)
	e.stragglers.refuse()
}

// ExpectLines notes that a pipeline has lines of the kernel log: the state has then what a
// restart must not forget of them.
func (e *Engine) ExpectLines() { e.devices.logged = true }

// Tick moves time on: it judges what has settled, and raises and clears what became
// due in between.
func (e *Engine) Tick(now time.Time) {
	e.advance(now)
	e.judgeOpen(settle)
	e.devices.elapse()
	e.exporters.elapse()
	e.nodes.elapse()
	e.stragglers.elapse()
	e.devices.boards.elapse()
	if e.now-e.forgot > time.Minute {
		e.forgot = e.now
		e.forget()
	}
}

// Finish judges everything that has arrived. The state is stored then even where only
// counters have changed: a GPU that is reset until the next start has smaller ones.
func (e *Engine) Finish(now time.Time) {
	e.advance(now)
	e.judgeOpen(0)
	e.changed = e.changed || e.devices.boards.on && len(e.devices.all) > 0
}

// judgeOpen judges devices first: the exporter that misses one may be judged then.
func (e *Engine) judgeOpen(age time.Duration) {
	e.devices.judgeOpen(age)
	e.exporters.judgeOpen(age)
}

// forget drops subjects without telemetry while there is some of others. What is raised
// about them is cleared: nothing stays raised for ever.
func (e *Engine) forget() {
	newest := max(e.devices.newest(), e.exporters.newest(), e.nodes.newest())
	if e.now-newest > time.Minute+e.staleness {
		return // without any telemetry nothing is known
	}
	old := func(seen time.Duration) bool { return e.now-seen > e.subjectTTL }
	e.devices.forget(old, e.subjectTTL)
	e.exporters.forget(old, e.subjectTTL)
	e.nodes.forget(old, e.subjectTTL)
}

// Waiting is how many events wait to be taken.
func (e *Engine) Waiting() int { return len(e.waiting) }

// Take appends the waiting events to events, in their order, and drops them.
func (e *Engine) Take(events []event.Event) []event.Event {
	events = append(events, e.waiting...)
	clear(e.waiting)
	e.waiting = e.waiting[:0]
	return events
}

// PutBack makes events that were taken wait again, before all others.
func (e *Engine) PutBack(events []event.Event) { e.waiting = append(events, e.waiting...) }

// Health writes the health of the boards that were judged, or became unknown, since the
// last call, and that of their nodes; and the boards that are slow among their peers.
func (e *Engine) Health(w *healthmetrics.Writer) {
	e.devices.boards.publish(w)
	e.stragglers.publish(w)
}

// HealthAgain makes Health write once more what it wrote last, as it is now: the next
// component did not take it.
func (e *Engine) HealthAgain() {
	e.devices.boards.again()
	e.stragglers.again()
}

// Judged reports whether Health has something.
func (e *Engine) Judged() bool { return e.devices.boards.waiting() }

// Changed reports whether the state has changed since Save.
func (e *Engine) Changed() bool { return e.changed }

// Raised is how many conditions are raised.
func (e *Engine) Raised() int { return e.raised }

// Subjects is how many subjects are watched, by kind.
func (e *Engine) Subjects() map[string]int {
	return map[string]int{
		"device": len(e.devices.all), "exporter": len(e.exporters.all), "node": len(e.nodes.all), "service": len(e.services.all),
	}
}

// TakeCounts returns what was left out since the last call.
func (e *Engine) TakeCounts() Counts {
	c := e.counts
	e.counts = Counts{}
	c.Lines = e.log.TakeCounts()
	return c
}
