// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/board"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/healthmetrics"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/devicerules"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/state"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// boards judges the health of devices over time, and of the nodes that they are on. A MIG
// instance has none of its own.
type boards struct {
	*ledger
	on         bool
	places     board.Places
	kinds      map[model]board.Kind // a fleet has few
	resets     int                  // the place of by how much gpu.device.resets rose
	maxReasons int
	expected   map[string]int       // boards of a node, by host.type
	cleared    map[string]time.Time // by hw.id or node

	devices   map[subject.DeviceID]*device
	pending   map[*device]struct{}
	xid       *notices
	exporters map[subject.ExporterID]*exporter
	sites     sites
	judged    subjects // those with a health to publish
	written   subjects // those that publish wrote last
	// moved are boards with series under another description.
	moved map[*device]subject.Device
}

// subjects are boards and nodes.
type subjects struct {
	boards map[*device]struct{}
	nodes  map[subject.Node]struct{}
}

func noSubjects() subjects { return subjects{map[*device]struct{}{}, map[subject.Node]struct{}{}} }

// newBoards registers what the reasons read, where the rule runs.
func newBoards(l *ledger, o *Options, in *inputs, d *devices) *boards {
	b := &boards{
		ledger: l, kinds: map[model]board.Kind{}, maxReasons: o.MaxReasons, expected: o.Expected, cleared: o.Cleared,
		devices: d.all, pending: d.pending, xid: &d.xid, sites: d.sites, judged: noSubjects(), written: noSubjects(), moved: map[*device]subject.Device{},
	}
	if b.on = o.settings(&devicerules.Health).Enabled(); !b.on {
		return b
	}
	add := func(reads []rule.Input) []int {
		return in.add(&rule.Rule{Set: rule.Device, Reads: reads})
	}
	b.places.Counters = add(board.Counters[:])
	for _, r := range board.Reasons {
		b.places.Reasons = append(b.places.Reasons, add(r.Reads))
	}
	b.resets = add(board.Resets[:])[1]
	add([]rule.Input{{Metric: &names.GPUNodeInfo}})
	add(devicerules.ExporterDown.Reads)
	return b
}

// maxKinds are kept by model.
const maxKinds = 64

// model is the vendor of a board, and what it has as its model.
type model struct {
	of   deviceid.Make
	name string
}

func (b *boards) kindOf(d *device) board.Kind {
	m := model{d.Make, d.Facts.Model}
	kind, known := b.kinds[m]
	if !known {
		if len(b.kinds) >= maxKinds {
			clear(b.kinds)
		}
		kind = board.KindOf(d.ID.ID, m.name)
		m.name = strings.Clone(m.name)
		b.kinds[m] = kind
	}
	return kind
}

// has reports whether the device is a board of which the health is judged.
func (b *boards) has(d *device) bool { return b.on && d.Facts.Parent == "" }

// healthOf is the health of one device.
type healthOf struct {
	board     board.Board
	condition condition.Condition // its level is the state
	reported  string              // the verdict of the last event
	driver    string
	// undriven is the time of the first page since then without a version of the driver; 0: all had one.
	undriven  pcommon.Timestamp
	energy    float64 // on the last page before it was lost
	published healthmetrics.Published
}

// judge judges the snapshot of a device, after everything else about it. Hot is whether
// its temperature is critical, and cut whether it lost a link.
func (b *boards) judge(d *device, hot, cut bool) {
	if !b.has(d) {
		b.instance(d)
		return
	}
	h := &d.health
	h.board.Kind = b.kindOf(d)
	for _, code := range d.xids.Happened {
		h.board.XID(int(code), board.XIDOf(int(code)), d.at)
		if board.Repeats(int(code)) {
			b.fault(d, int(code), d.at)
		}
	}
	b.happened(d)
	h.board.Set(board.Temperature, hot, d.at)
	h.board.Set(board.LinkDown, cut, d.at)
	if d.measured && d.lost.Level == 0 {
		h.board.Set(board.Lost, false, d.at) // its event was refused, or is switched off now
	}
	if driver := d.Facts.Driver; driver != "" {
		if h.driver != "" && h.driver != driver {
			h.board.Seen(board.Driver|board.Reset, cmp.Or(h.undriven, d.at))
		}
		h.driver, h.undriven = driver, 0
	} else if h.undriven == 0 {
		h.undriven = d.at
	}
	// A page that repeats old values is no evidence that a cause is over.
	if x := b.exporters[d.exporter]; x == nil || !x.WasFrozen() {
		h.board.Take(d.values, &b.places, d.at)
	}
	b.mark(d)
	if e := d.values[b.places.Counters[0]]; d.lost.Level == 0 && e > 0 {
		h.energy = e
	}
	if d.lost.Level == 0 || !d.measured { // else it is back, which is reported at once
		b.report(d, d.at)
	}
}

// lost takes whether a device is lost. One that is back was reset, unless its energy went on
// rising: then the exporter did not see it.
func (b *boards) lost(d *device, is bool, at pcommon.Timestamp) {
	if !b.has(d) {
		return
	}
	d.health.board.Set(board.Lost, is, at)
	if h := &d.health; !is && !(h.energy > 0 && d.values[b.places.Counters[0]] >= h.energy) {
		h.board.Seen(board.Reset, at)
	}
	b.mark(d)
	b.report(d, at)
}

// missing notes that a page of its exporter is without a device, which is lost: that is
// what is known of it as of then.
func (b *boards) missing(d *device) {
	if d.lost.Level > 0 && b.has(d) {
		b.mark(d)
	}
}

// mark notes that the health of a board is to be published.
func (b *boards) mark(d *device) {
	b.judged.boards[d] = struct{}{}
	b.judged.nodes[d.node()] = struct{}{}
}

// describe notes that a device is about to be described in another way, or to be on
// another node: its series are others then.
func (b *boards) describe(d *device, as *subject.Facts) {
	was, is := d.Facts, *as
	if was.Node != is.Node {
		b.judged.nodes[d.node()] = struct{}{}
	}
	was.Owner, was.Driver = is.Owner, is.Driver // no part of the description
	if _, known := b.moved[d]; was != is && !known && d.health.published.Live() {
		b.moved[d] = d.Device
	}
}

// forget notes that a device is not watched any more.
func (b *boards) forget(d *device) {
	delete(b.judged.boards, d)
	delete(b.written.boards, d)
	if d.health.published.Live() {
		b.mark(d) // its series end
	} else {
		delete(b.moved, d)
	}
}

// report reports the health of a device, where it is known and another one than was
// reported last. Of a board on the pages of which nothing decides that it is well, that no
// reason is left is reported.
func (b *boards) report(d *device, at pcommon.Timestamp) {
	v, leftOut := b.verdict(d)
	if !v.Known && (d.health.condition.Level == 0 || v.Waits || d.at == 0) {
		return // what was reported stands, but for reasons that are over
	}
	key := summary(&v)
	if key == d.health.reported {
		return
	}
	c := &d.health.condition
	if b.change(c, &devicerules.HealthSpec, devicerules.Health.Event, uint8(v.State), at, func(ev *event.Event) {
		devicerules.DescribeHealth(&d.Device, &v, ev)
	}) {
		d.health.reported = key
		if b.counts.LeftOut += int64(leftOut); leftOut > 0 {
			b.counts.LeftOutOf = d.ID
		}
	}
}

// verdict is the health of a board with the worst of its reasons, as many as are listed.
func (b *boards) verdict(d *device) (v board.Verdict, leftOut int) {
	v = d.health.board.Verdict()
	if leftOut = len(v.Reasons) - b.maxReasons; leftOut > 0 {
		v.Reasons = v.Reasons[:b.maxReasons]
	}
	return v, max(0, leftOut)
}

// summary is what an event about health reports; empty for a board that is well.
func summary(v *board.Verdict) string {
	if len(v.Reasons) == 0 {
		return ""
	}
	parts := []string{v.State.String(), v.Action.String()}
	for i := range v.Reasons {
		parts = append(parts, v.Reasons[i].Reason.Name)
	}
	return strings.Join(parts, " ")
}

// restore takes the stored health of a device. What a person has acknowledged since is
// reported with the first page.
func (b *boards) restore(d *device, s *state.Device) {
	if s.Health == nil || !b.has(d) {
		return
	}
	h := &d.health
	h.board.Restore(s.Health)
	h.driver, h.reported = s.Driver, s.Reported
	if v, _ := b.verdict(d); len(v.Reasons) > 0 {
		h.published = healthmetrics.Restored(listed(&v))
	}
	if site := b.sites.of(d); site != nil && s.Boot != "" {
		site.boot, site.bootAt = s.Boot, pcommon.Timestamp(s.BootAt)
		site.informed, site.informedSeen = site.bootAt, b.now
	}
	for _, name := range []string{d.ID.ID, d.Facts.Node} {
		if before, set := b.cleared[name]; set && !before.After(b.wall) {
			h.board.Seen(board.Person, pcommon.NewTimestampFromTime(before))
		}
	}
}

// fresh reports whether what is known of a board is true now: its last page is not too
// old, or its exporter answers without it, and its exporter does not repeat old values.
func (b *boards) fresh(d *device) bool {
	x := b.exporters[d.exporter]
	switch {
	case b.devices[d.ID] != d, x != nil && x.WasFrozen():
		return false
	case b.now-d.seen <= b.staleness+grace:
		return true
	}
	return d.lost.Level > 0 && x != nil && x.answered != 0 && b.now-x.answered <= b.staleness+grace
}

// known reports whether a verdict is known, and true now. Where the fields of the exporter are
// not known, those that are left do not show that a board is well.
func (b *boards) known(d *device, v *board.Verdict) bool {
	return v.Known && b.fresh(d) && (!b.unrecognized(d) || len(v.Reasons) > 0 && v.WithData > 0)
}

// unrecognized reports whether the fields of a device's exporter are not known.
func (b *boards) unrecognized(d *device) bool {
	x := b.exporters[d.exporter]
	return x != nil && x.IsUnrecognized()
}

// elapse finds boards that became unknown without a page of theirs, and nodes with too few
// of them.
func (b *boards) elapse() {
	if !b.on {
		return
	}
	for _, d := range b.devices {
		if d.health.published.Live() && !b.fresh(d) {
			b.mark(d)
		}
	}
	for n, site := range b.sites {
		b.count(n, site)
		if site.missed && !b.paged(site) {
			b.judged.nodes[n] = struct{}{}
		}
	}
}

// waiting reports whether publish has something.
func (b *boards) waiting() bool { return len(b.judged.boards)+len(b.judged.nodes) > 0 }

// publish writes the health of the boards that were judged, or became unknown, since the
// last call, and that of their nodes.
func (b *boards) publish(w *healthmetrics.Writer) {
	all := b.judged
	b.judged, b.written = noSubjects(), all
	for _, d := range slices.SortedFunc(maps.Keys(all.boards), func(x, y *device) int {
		return cmp.Or(strings.Compare(x.ID.Cluster, y.ID.Cluster), strings.Compare(x.ID.ID, y.ID.ID))
	}) {
		s := b.status(d)
		if was, moved := b.moved[d]; moved {
			w.Write(&d.health.published, healthmetrics.Board(&was), &healthmetrics.Status{At: s.At})
			delete(b.moved, d)
		}
		w.Write(&d.health.published, healthmetrics.Board(&d.Device), &s)
	}
	for _, n := range slices.SortedFunc(maps.Keys(all.nodes), func(x, y subject.Node) int {
		return cmp.Or(strings.Compare(x.Cluster, y.Cluster), strings.Compare(x.Name, y.Name))
	}) {
		if site := b.sites[n]; site != nil && n.Name != "" {
			s := b.statusOf(site)
			site.missed = len(s.Reasons) > 0
			w.Write(&site.published, healthmetrics.Node(n), &s)
		}
	}
}

// again makes publish write once more what it wrote last, as it is now.
func (b *boards) again() {
	maps.Copy(b.judged.boards, b.written.boards)
	maps.Copy(b.judged.nodes, b.written.nodes)
}

// status is the health of a board as of its last page, or of its exporter's without it;
// of one of which nothing is known, as of now.
func (b *boards) status(d *device) healthmetrics.Status {
	v, _ := b.verdict(d)
	s := healthmetrics.Status{At: d.at, Known: b.known(d, &v), State: v.State, Score: v.Score}
	if v.Applicable > 0 {
		s.Coverage = float64(v.WithData) / float64(v.Applicable)
	}
	s.Reasons = listed(&v)
	if !s.Known {
		s.At = max(d.at+1, pcommon.NewTimestampFromTime(b.wall))
	} else if x := b.exporters[d.exporter]; x != nil && d.lost.Level > 0 {
		s.At = max(d.at, x.at)
	}
	return s
}
