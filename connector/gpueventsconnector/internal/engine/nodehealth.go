// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/board"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/healthmetrics"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/devicerules"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
)

// countAfter is how long after the first page of a node boards are missed on it.
const countAfter = 5 * time.Minute

// nodeHealth is the health of a node beside that of its boards.
type nodeHealth struct {
	boot     string // the id of its boot; empty: not known
	hostType string // likewise
	// bootAt is the time of the newest point with that id, informed that of the newest point of
	// gpu.node.info, and informedSeen when that arrived.
	bootAt, informed pcommon.Timestamp
	informedSeen     time.Duration
	// first and paged are when its first and its newest page arrived; 0: there was none.
	first, paged time.Duration
	page         pcommon.Timestamp   // the time of the newest page
	returned     pcommon.Timestamp   // that of the first page after the newest gap
	few          condition.Condition // it has fewer boards than expected
	missed       bool                // that was published last
	published    healthmetrics.Published
}

// used reports whether there is something that has to end before the node is forgotten.
func (h *nodeHealth) used() bool { return h.few.Level > 0 || h.published.Live() }

// nodeInfo is what gpu.node.info has.
type nodeInfo struct{ boot, hostType, cleared string }

// info takes a point of gpu.node.info.
func (b *boards) info(n subject.Node, is nodeInfo, at pcommon.Timestamp) {
	if !b.on || n.Name == "" {
		return
	}
	site := b.sites[n]
	if site != nil && at < site.informed && b.now-site.informedSeen < clockSet {
		b.counts.Late++
		return
	}
	if site == nil {
		if b.expected[is.hostType] == 0 || len(b.sites) >= 2*b.maxSubjects {
			return
		}
		site = b.sites.get(n) // one without any board is missed too
	}
	site.hostType, site.informed, site.informedSeen = is.hostType, at, b.now
	booted, before := false, site.bootAt
	if is.boot != "" {
		booted = site.boot != "" && site.boot != is.boot // the first one that is read is no boot
		b.changed = b.changed || site.boot != is.boot
		site.boot, site.bootAt = is.boot, at
	}
	// What cannot be read is left out here: gpu_allocation, which has the annotation, warns.
	acknowledged, _ := health.ParseCleared(is.cleared, at.AsTime())
	for d := range site.devices {
		if booted {
			b.booted(d, before, at)
		}
		if !b.has(d) {
			continue
		}
		for _, c := range acknowledged {
			if c.ID == "" || c.ID == d.ID.ID {
				d.health.board.Seen(board.Person, pcommon.NewTimestampFromTime(c.Before))
			}
		}
		b.report(d, at) // its next page is published with it
	}
}

// bootLag is how much later than the first page after a boot the boot's id is read at most
// while the id of the boot before is still read.
const bootLag = time.Minute

// booted takes that the node of a device was booted: at the latest at the time at, at which
// another id of its boot was read, and not before the id of the boot before was read last. An
// agent reads the id before the device's first page after the boot, or some time later. What
// pages since the boot report is not over, and has happened since then.
func (b *boards) booted(d *device, before, at pcommon.Timestamp) {
	since, known := at, true
	back := max(d.returned, d.health.board.ResetAt())
	switch site := b.sites.of(d); {
	case b.gap(d, at): // no page of it since
		if site.returned > d.latest() {
			since = min(site.returned, at) // but some of the node
		}
	case back > before, at.AsTime().Sub(back.AsTime()) <= bootLag:
		since, known = min(back, at), back > before
	default: // no gap between pages shows when it was
		since, known = before, false
	}
	if b.has(d) {
		d.health.board.Seen(board.Boot|board.Reset, since)
	}
	if !known { // which pages are of before it
		return
	}
	d.xids.Booted(since)
	b.instance(d)
	if b.has(d) {
		for _, code := range d.xids.Happened {
			d.health.board.XID(int(code), board.XIDOf(int(code)), d.at)
		}
	}
	switch {
	case b.xid.quiet:
		d.xids.Forget()
	case d.xids.Pending():
		b.pending[d] = struct{}{}
	}
}

// page takes that an exporter of a node was scraped at a time.
func (b *boards) page(n subject.Node, site *site, at pcommon.Timestamp) {
	if !b.on {
		return
	}
	if site.first == 0 {
		site.first = b.now
	}
	if at.AsTime().Sub(site.page.AsTime()) > b.staleness {
		site.returned = at
	}
	site.paged, site.page = b.now, at
	b.judged.nodes[n] = struct{}{}
}

// paged reports whether the newest page of a node is fresh.
func (b *boards) paged(site *site) bool { return b.now-site.paged <= b.staleness+grace }

// count judges whether a node has as many boards as its type of machine should. While one
// of its exporters does not answer, or the state of a board is not known, neither is that.
func (b *boards) count(n subject.Node, site *site) {
	want := b.expected[site.hostType]
	if want == 0 && (site.few.Level == 0 || site.hostType == "" && len(b.expected) > 0) {
		return
	}
	have := 0
	for d := range site.devices {
		switch {
		case !b.has(d):
		case !b.fresh(d):
			return
		case d.lost.Level == 0, d.blank > 0: // it is there
			have++
		}
	}
	next := site.few.Level
	switch {
	case have >= want:
		next = 0
	case site.first != 0 && b.now-site.first >= countAfter && b.paged(site) && b.answers(n):
		next = 1
	}
	if next == site.few.Level {
		return
	}
	b.move(&site.few, &devicerules.NodeHealthSpec, devicerules.Health.Event, next, max(site.page, 1), func(ev *event.Event) {
		devicerules.DescribeNodeHealth(n, have, want, site.hostType, ev)
	})
}

// answers reports whether all exporters of a node that are watched answer.
func (b *boards) answers(n subject.Node) bool {
	for id, x := range b.exporters {
		if id.Cluster == n.Cluster && id.Node == n.Name && (x.WasFrozen() || x.IsDown() || b.now-x.seen > b.staleness+grace) {
			return false
		}
	}
	return true
}

// leave forgets what is known of a node without boards, and reports whether nothing is
// left that has to end before.
func (b *boards) leave(n subject.Node, site *site, ttl time.Duration) bool {
	b.move(&site.few, &devicerules.NodeHealthSpec, devicerules.Health.Event, 0, pcommon.NewTimestampFromTime(b.wall), func(ev *event.Event) {
		n.About(ev)
		ev.Body = n.String() + " was not seen for " + event.InWords(ttl) + ", and is no longer expected."
	})
	if site.published.Live() {
		b.judged.nodes[n] = struct{}{}
	}
	return !site.used()
}

// statusOf is the health of a node: that of its worst board, or failed where it has too
// few of them. While the state of one of them is not known it is failed if another one
// is, as nothing is worse, and else not known.
func (b *boards) statusOf(site *site) healthmetrics.Status {
	s := healthmetrics.Status{State: health.OK, Score: 1}
	last, unknown := site.page, false
	for d := range site.devices {
		if !b.has(d) {
			continue
		}
		v := d.health.board.Verdict()
		last = max(last, d.at)
		if !b.known(d, &v) {
			unknown = true
			continue
		}
		s.Known, s.State, s.Score = true, max(s.State, v.State), min(s.Score, v.Score)
	}
	if site.few.Level > 0 && b.paged(site) && !unknown {
		s.Known, s.State, s.Score = true, health.Failed, 0
		s.Reasons = fewBoards()
	}
	if !s.Known || unknown && s.State != health.Failed {
		return healthmetrics.Status{At: max(last+1, pcommon.NewTimestampFromTime(b.wall))}
	}
	s.At = last
	return s
}

// fewBoards is the reason against a node that it has too few boards.
func fewBoards() []healthmetrics.Reason {
	return []healthmetrics.Reason{{Name: devicerules.Count, State: health.Failed, Action: health.CheckMechanics}}
}

// listed are the reasons of a verdict, as they are published.
func listed(v *board.Verdict) (all []healthmetrics.Reason) {
	for i := range v.Reasons {
		a := &v.Reasons[i]
		all = append(all, healthmetrics.Reason{Name: a.Reason.Name, State: a.State, Action: a.Action})
	}
	return all
}
