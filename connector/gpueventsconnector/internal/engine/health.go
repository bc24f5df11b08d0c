// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/board"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/healthmetrics"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/devicerules"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// boards judges the health of devices over time, and of the nodes that they are on. A MIG
// instance has none of its own.
type boards struct {
	*ledger
	on     bool
	places board.Places

	devices   map[subject.DeviceID]*device
	exporters map[subject.ExporterID]*exporter
	sites     sites
	judged    map[*device]struct{} // those with a health to publish
	written   []*device            // those that publish wrote last
}

// newBoards registers what the reasons read, where the rule runs.
func newBoards(l *ledger, o *Options, in *inputs, d *devices) *boards {
	b := &boards{ledger: l, devices: d.all, sites: d.sites, judged: map[*device]struct{}{}}
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
	add([]rule.Input{{Metric: &names.GPUNodeInfo}})
	return b
}

// has reports whether the device is a board of which the health is judged.
func (b *boards) has(d *device) bool { return b.on && d.Facts.Parent == "" }

// healthOf is the health of one device.
type healthOf struct {
	board     board.Board
	condition condition.Condition // its level is the state
	reported  string              // the verdict of the last event
	driver    string
	published healthmetrics.Published
}

// judge judges the snapshot of a device, after everything else about it. Hot is whether
// its temperature is critical.
func (b *boards) judge(d *device, hot bool) {
	if !b.has(d) {
		return
	}
	h := &d.health
	h.board.Kind = board.KindOf(d.Facts.Model)
	for _, code := range d.xids.Happened {
		h.board.XID(int(code), board.XIDOf(int(code)), d.at)
		if board.Repeats(int(code)) {
			b.fault(d, int(code))
		}
	}
	h.board.Set(board.Temperature, hot, d.at)
	if driver := d.Facts.Driver; driver != "" {
		if h.driver != "" && h.driver != driver {
			h.board.Seen(board.Driver|board.Reset, d.at)
		}
		h.driver = driver
	}
	// A page that repeats old values is no evidence that a cause is over.
	if x := b.exporters[d.exporter]; x == nil || !x.wasFrozen() {
		h.board.Take(d.values, &b.places, d.at)
	}
	b.judged[d] = struct{}{}
	b.report(d, d.at)
}

// fault takes a code that is normally the fault of the application: under which owner
// the board had it, and whether the owner's other boards on the node have it too.
func (b *boards) fault(d *device, code int) {
	o := &d.Facts.Owner
	owner := o.Namespace + "/" + o.Pod
	if o.Pod == "" {
		owner = "" // no owner, or not known
	}
	d.health.board.Fault(code, owner, d.at)
	site := b.sites.of(d)
	if site == nil {
		return
	}
	var all []*board.Board
	had := 0
	for of := range site.devices {
		if b.has(of) && of.Facts.Owner.Namespace == o.Namespace && of.Facts.Owner.Pod == o.Pod {
			all = append(all, &of.health.board)
			if of.health.board.HadFault(code, owner, d.at) {
				had++
			}
		}
	}
	if board.Common(had, len(all)) {
		for _, of := range all {
			of.Spread(code, owner, d.at)
		}
	}
}

// lost takes whether a device is lost. One that is back was reset.
func (b *boards) lost(d *device, is bool, at pcommon.Timestamp) {
	if !b.has(d) {
		return
	}
	d.health.board.Set(board.Lost, is, at)
	if !is {
		d.health.board.Seen(board.Reset, at)
	}
	b.judged[d] = struct{}{}
	b.report(d, at)
}

// missing notes that a page of its exporter is without a device, which is lost: that is
// what is known of it as of then.
func (b *boards) missing(d *device) {
	if d.lost.Level > 0 && b.has(d) {
		b.judged[d] = struct{}{}
	}
}

// forget notes that a device is not watched any more.
func (b *boards) forget(d *device) {
	if d.health.published.Live() {
		b.judged[d] = struct{}{} // its series end
	}
}

// boot takes the boot id of a node. Another one than before is a boot, which all of its
// boards have seen.
func (b *boards) boot(n subject.Node, id string, at pcommon.Timestamp) {
	site := b.sites[n]
	if site == nil || id == "" || site.boot == id {
		return
	}
	booted := site.boot != ""
	site.boot = id
	b.changed = true
	if !booted {
		return
	}
	for d := range site.devices {
		if b.has(d) {
			d.health.board.Seen(board.Boot|board.Reset, at)
			b.report(d, at)
		}
	}
}

// report reports the health of a device, where it is known and another one than was
// reported last.
func (b *boards) report(d *device, at pcommon.Timestamp) {
	v := d.health.board.Verdict()
	if !v.Known {
		return
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
	}
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

// reported is the summary of a board as it was stored.
func reported(b *board.Board) string {
	v := b.Verdict()
	return summary(&v)
}

// fresh reports whether what is known of a board is true now: its last page is not too
// old, or its exporter answers without it, and its exporter does not repeat old values.
func (b *boards) fresh(d *device) bool {
	x := b.exporters[d.exporter]
	switch {
	case b.devices[d.ID] != d, x != nil && x.wasFrozen():
		return false
	case b.now-d.seen <= b.staleness+grace:
		return true
	}
	return d.lost.Level > 0 && x != nil && x.down.Level == 0 && b.now-x.seen <= b.staleness+grace
}

// elapse finds boards that became unknown without a page of theirs.
func (b *boards) elapse() {
	if !b.on {
		return
	}
	for _, d := range b.devices {
		if d.health.published.Live() && !b.fresh(d) {
			b.judged[d] = struct{}{}
		}
	}
}

// publish writes the health of the boards that were judged, or became unknown, since the
// last call, and that of their nodes.
func (b *boards) publish(w *healthmetrics.Writer) {
	nodes := map[subject.Node]pcommon.Timestamp{}
	clear(b.written)
	b.written = slices.AppendSeq(b.written[:0], maps.Keys(b.judged))
	slices.SortFunc(b.written, func(x, y *device) int {
		return cmp.Or(strings.Compare(x.ID.Cluster, y.ID.Cluster), strings.Compare(x.ID.ID, y.ID.ID))
	})
	for _, d := range b.written {
		s := b.status(d)
		w.Write(&d.health.published, healthmetrics.Board(&d.Device), &s)
		n := subject.Node{Cluster: d.ID.Cluster, Name: d.Facts.Node}
		nodes[n] = max(nodes[n], s.At)
	}
	clear(b.judged)
	for _, n := range slices.SortedFunc(maps.Keys(nodes), func(x, y subject.Node) int {
		return cmp.Or(strings.Compare(x.Cluster, y.Cluster), strings.Compare(x.Name, y.Name))
	}) {
		if site := b.sites[n]; site != nil && n.Name != "" {
			s := b.statusOf(site)
			s.At = nodes[n]
			w.Write(&site.published, healthmetrics.Node(n), &s)
		}
	}
}

// again makes publish write once more what it wrote last, as it is now.
func (b *boards) again() {
	for _, d := range b.written {
		b.judged[d] = struct{}{}
	}
}

// status is the health of a board as of its last page, or of its exporter's without it;
// of one of which nothing is known, as of now.
func (b *boards) status(d *device) healthmetrics.Status {
	v := d.health.board.Verdict()
	s := healthmetrics.Status{At: d.at, Known: v.Known && b.fresh(d), State: v.State, Score: v.Score}
	if v.Applicable > 0 {
		s.Coverage = float64(v.WithData) / float64(v.Applicable)
	}
	for i := range v.Reasons {
		a := &v.Reasons[i]
		s.Reasons = append(s.Reasons, healthmetrics.Reason{Name: a.Reason.Name, State: a.State, Action: a.Action})
	}
	if !s.Known {
		s.At = max(d.at+1, pcommon.NewTimestampFromTime(b.wall))
	} else if x := b.exporters[d.exporter]; x != nil && d.lost.Level > 0 {
		s.At = max(d.at, x.at)
	}
	return s
}

// statusOf is the health of a node: that of its worst board, and none while that of one of
// them is not known.
func (b *boards) statusOf(site *site) healthmetrics.Status {
	s := healthmetrics.Status{State: health.OK, Score: 1}
	for d := range site.devices {
		if d.Facts.Parent != "" {
			continue
		}
		v := d.health.board.Verdict()
		if !v.Known || !b.fresh(d) {
			return healthmetrics.Status{}
		}
		s.Known, s.State, s.Score = true, max(s.State, v.State), min(s.Score, v.Score)
	}
	return s
}
