// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	// settle is how long the parts of one scrape may come one after the other.
	// Points of one time are judged together, when this has passed or the first
	// point of a later time arrives.
	settle = time.Second
	// grace is how much longer than its duration the end of a duration is waited
	// for, because the point that decides may be on its way.
	grace = 2 * time.Second
	// maxWaiting is how many events wait for the next component to take them.
	maxWaiting = 10_000
)

// engine is the state of all rules. It does no I/O; its times are passed in.
type engine struct {
	cfg    *Config
	clock  clock
	now    time.Duration // of clock, at the last call
	wall   time.Time     // likewise
	inputs names.Table[input]

	deviceRules []deviceRule
	down        rule
	onDevices   bool // the set device is on
	onServices  bool

	devices   map[deviceID]*device
	exporters map[exporterID]*exporter
	sites     map[place]*site
	nodes     map[place]*node
	services  map[service]*tenant

	open         []*device   // with a snapshot that is not judged yet
	opened       []*exporter // likewise
	pending      map[*device]struct{}
	waiting      []event // for the next component
	raised       int
	changed      bool // since the state was stored
	counts       counts
	summed       time.Duration // when an evaluation was first heard of; 0: never
	forgot       time.Duration // when the last round of forgetting was
	unheard      int           // services that come from before a restart and were not heard of since
	serviceBatch serviceBatch
	times        []pcommon.Timestamp
}

// counts is what the engine counted since it was last asked.
type counts struct {
	late     int64            // points older than what was judged
	invalid  int64            // points that say nothing
	example  string           // the metric of one of them
	twice    int64            // counts of a device that two exporters have
	twiceOn  deviceID         // one of them
	refused  map[string]int64 // events that were not raised, by name
	subjects map[string]int64 // subjects that are not watched, by kind
}

func newEngine(cfg *Config) *engine {
	e := &engine{
		cfg: cfg, devices: map[deviceID]*device{}, exporters: map[exporterID]*exporter{},
		sites: map[place]*site{}, nodes: map[place]*node{}, services: map[service]*tenant{},
		pending: map[*device]struct{}{},
	}
	for _, set := range cfg.Rules {
		e.onDevices = e.onDevices || set == RuleSetDevice
		e.onServices = e.onServices || set == RuleSetService
	}
	if e.onDevices {
		e.deviceRules = deviceRules(&cfg.Events)
		e.down = downRule(&cfg.Events.ExporterDown)
	}
	e.choose()
	return e
}

// tick moves time on: it judges what has settled, and raises and clears what was
// due in between.
func (e *engine) tick(now time.Time) {
	e.advance(now)
	e.judgeOpen(settle)
	for d := range e.pending {
		if d.snapshot == 0 && e.elapseDevice(d) {
			delete(e.pending, d)
		}
	}
	for _, x := range e.exporters {
		if x.snapshot == 0 {
			e.elapseExporter(x)
		}
	}
	e.judgeNodes()
	if e.now-e.forgot > time.Minute {
		e.forgot = e.now
		e.forget()
	}
}

func (e *engine) advance(now time.Time) { e.now, e.wall = e.clock.read(now), now }

// judgeOpen judges snapshots that are at least that old.
func (e *engine) judgeOpen(age time.Duration) {
	// Devices first: what they are is told when an exporter misses them.
	devices := e.open
	e.open = e.open[:0]
	for _, d := range devices {
		switch {
		case d.snapshot == 0 || e.devices[d.id] != d:
			d.opened = false
		case e.now-d.heard < age:
			e.open = append(e.open, d)
		default:
			d.opened = false
			e.judgeDevice(d)
		}
	}
	exporters := e.opened
	e.opened = e.opened[:0]
	for _, x := range exporters {
		switch {
		case x.snapshot == 0:
			x.opened = false
		case e.now-x.heard < age:
			e.opened = append(e.opened, x)
		default:
			x.opened = false
			e.judgeExporter(x)
		}
	}
}

// due reports whether the time t of a subject whose newest point, of the time
// at, was heard at that moment, has come here, and whether that point still says
// something about it.
func (e *engine) due(t, at pcommon.Timestamp, heard time.Duration) (come, fresh bool) {
	local := heard + grace
	if t > at {
		local += time.Duration(t - at)
	}
	return e.now >= local, local-grace-heard <= e.cfg.Staleness
}

// move gives a condition its next level and queues the event that tells of it,
// which describe completes. Where a limit is reached nothing is changed, so that
// the next point or tick tries again.
func (e *engine) move(c *condition, r *rule, next uint8, at pcommon.Timestamp, describe func(*event)) {
	if next == c.level {
		return
	}
	raise := next > 0
	if raise && c.level == 0 && e.raised >= e.cfg.MaxSubjects || len(e.waiting) >= maxWaiting {
		e.refuse(r.event)
		return
	}
	ev := event{name: r.event, state: names.EventCleared, severity: plog.SeverityNumberInfo, at: at, level: next}
	switch {
	case raise:
		ev.state, ev.severity = names.EventRaised, r.levels[next-1].severity
		if c.level == 0 {
			e.raised++
		}
	default:
		e.raised--
	}
	c.level = next
	describe(&ev)
	e.waiting = append(e.waiting, ev)
	e.changed = true
}

// notify queues an event that nothing clears, and reports whether there was room.
func (e *engine) notify(ev event) bool {
	if len(e.waiting) >= maxWaiting {
		e.refuse(ev.name)
		return false
	}
	ev.state = names.EventRaised
	e.waiting = append(e.waiting, ev)
	e.changed = true
	return true
}

func (e *engine) refuse(event string) {
	if e.counts.refused == nil {
		e.counts.refused = map[string]int64{}
	}
	e.counts.refused[event]++
}

// unwatched counts a subject for which there is no room.
func (e *engine) unwatched(kind string) {
	if e.counts.subjects == nil {
		e.counts.subjects = map[string]int64{}
	}
	e.counts.subjects[kind]++
}

// forget drops subjects that were not heard of for long while others were. What
// is raised about them is cleared: nothing stays raised for ever.
func (e *engine) forget() {
	old := func(heard time.Duration) bool { return e.now-heard > e.cfg.SubjectTTL }
	var newest time.Duration
	for _, d := range e.devices {
		newest = max(newest, d.heard)
	}
	for _, x := range e.exporters {
		newest = max(newest, x.heard)
	}
	for _, n := range e.nodes {
		newest = max(newest, n.heard)
	}
	if e.now-newest > time.Minute+e.cfg.Staleness {
		return // silence says nothing
	}
	for _, d := range e.devices {
		if old(d.heard) {
			e.dropDevice(d, "was not heard of for "+inWords(e.cfg.SubjectTTL))
		}
	}
	for _, x := range e.exporters {
		if old(x.heard) {
			e.dropExporter(x)
		}
	}
	for _, n := range e.nodes {
		if old(n.heard) {
			e.dropNode(n)
		}
		n.forget()
	}
	for p, s := range e.sites {
		if len(s.devices) == 0 && old(s.heard) {
			delete(e.sites, p)
		}
	}
}
