// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/board"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/devicerules"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
)

// boards judges the health of devices. A MIG instance has none of its own.
type boards struct {
	on     bool
	places board.Places
}

// newBoards registers what the reasons read.
func newBoards(in *inputs) boards {
	add := func(reads []rule.Input) []int {
		return in.add(&rule.Rule{Set: rule.Device, Reads: reads})
	}
	b := boards{on: true, places: board.Places{Counters: add(board.Counters)}}
	for _, r := range board.Reasons {
		b.places.Reasons = append(b.places.Reasons, add(r.Reads))
	}
	return b
}

// healthOf is the health of one device.
type healthOf struct {
	board     board.Board
	condition condition.Condition // its level is the state
	reported  string              // the verdict of the last event
	driver    string
	published published
}

// judgeHealth judges the snapshot of a device, after everything else about it.
func (s *devices) judgeHealth(d *device) {
	if !s.boards.on || d.Facts.Parent != "" {
		return
	}
	b := &d.health.board
	for _, code := range d.xids.Happened {
		b.XID(int(code), board.XIDOf(int(code)), d.at)
	}
	hot := false
	for i := range s.conditions {
		if s.conditions[i].event == devicerules.Temperature.Event {
			hot = hot || d.conditions[i].Level == 2
		}
	}
	b.Set(board.Temperature, hot, d.at)
	if driver := d.Facts.Driver; driver != "" {
		if d.health.driver != "" && d.health.driver != driver {
			b.Seen(board.Driver|board.Reset, d.at)
		}
		d.health.driver = driver
	}
	b.Take(d.values, &s.boards.places, d.at)
	s.judged[d] = struct{}{}
	s.reportHealth(d, d.at)
}

// fresh reports whether what is known of a board is true now: its last page is not too
// old, or its exporter answers without it, and its exporter does not repeat old values.
func (e *Engine) fresh(d *device) bool {
	x := e.exporters.all[d.exporter]
	switch {
	case e.devices.all[d.ID] != d, x != nil && x.wasFrozen():
		return false
	case e.now-d.seen <= e.staleness+grace:
		return true
	}
	return d.lost.Level > 0 && x != nil && x.down.Level == 0 && e.now-x.seen <= e.staleness+grace
}

// outdate finds boards that became unknown, or are known again, without a page of
// theirs.
func (e *Engine) outdate() {
	if !e.devices.boards.on {
		return
	}
	for _, d := range e.devices.all {
		if d.health.published.live && !e.fresh(d) {
			e.devices.judged[d] = struct{}{}
		}
	}
}

// reportHealth reports the health of a device, where it is known and another one than
// was reported last.
func (s *devices) reportHealth(d *device, at pcommon.Timestamp) {
	v := d.health.board.Verdict()
	if !v.Known {
		return
	}
	key := summary(&v)
	if key == d.health.reported {
		return
	}
	c := &d.health.condition
	if s.change(c, &devicerules.HealthSpec, devicerules.Health.Event, uint8(v.State), at, func(ev *event.Event) {
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

// setHealth takes what an event about a device means for its health.
func (s *devices) setHealth(d *device, reason string, active bool, at pcommon.Timestamp) {
	if !s.boards.on || d.Facts.Parent != "" {
		return
	}
	d.health.board.Set(reason, active, at)
	if !active && reason == board.Lost {
		d.health.board.Seen(board.Reset, at)
	}
	s.judged[d] = struct{}{}
	s.reportHealth(d, at)
}

// runs takes the boot id of a node. Another one than before is a boot, which all of its
// boards have seen.
func (s *devices) runs(n subject.Node, boot string, at pcommon.Timestamp) {
	site := s.sites[n]
	if site == nil || boot == "" || site.boot == boot {
		return
	}
	booted := site.boot != ""
	site.boot = boot
	s.changed = true
	if !booted {
		return
	}
	for d := range site.devices {
		if s.boards.on && d.Facts.Parent == "" {
			d.health.board.Seen(board.Boot|board.Reset, at)
			s.reportHealth(d, at)
		}
	}
}
