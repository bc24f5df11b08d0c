// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package answers has what an exporter answers over time: whether it is up, whether its
// values stand still, and whether its fields are known.
package answers

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Answers are what is known of one exporter, by its addresses: one, but while a pod is
// replaced by the next. The zero Answers have seen nothing.
type Answers struct {
	all      []answer
	restored bool              // it was frozen before a restart
	unknown  pcommon.Timestamp // since when it answers, was frozen, and has no point about that; 0: it has
}

// answer is what is known of an exporter at one address.
type answer struct {
	address    string
	port       int64
	up, frozen int8              // 1, 0; -1: there was no point
	unknown    bool              // its fields were not known, and no point has denied it since
	stuck      bool              // it was frozen, and no point has denied it since
	at, before pcommon.Timestamp // of its newest points, and of those before
}

func (a *answer) down() bool { return a.up == 0 || a.frozen == 1 || a.unknown }

// About is what a point of an exporter is about.
type About uint8

const (
	Up About = iota
	Frozen
	Unrecognized
)

// unknownFor is after how long an exporter that was frozen is over it without a point
// about that: its pages have none, as those of an exporter without energy fields.
const unknownFor = 15 * time.Minute

// maxAnswers bounds the addresses of one exporter.
const maxAnswers = 8

// Read takes a point of an exporter.
func (x *Answers) Read(at pcommon.Timestamp, address string, port int64, about About, on int8) {
	i := slices.IndexFunc(x.all, func(a answer) bool { return a.address == address && a.port == port })
	if i < 0 {
		if len(x.all) >= maxAnswers { // the one that was silent for longest
			oldest := slices.MinFunc(x.all, func(a, b answer) int { return cmp.Compare(a.at, b.at) })
			x.all = slices.DeleteFunc(x.all, func(a answer) bool { return a == oldest })
		}
		i = len(x.all)
		x.all = append(x.all, answer{address: strings.Clone(address), port: port, up: -1, frozen: -1})
	}
	a := &x.all[i]
	if a.at != at {
		a.before, a.at, a.up, a.frozen = a.at, at, -1, -1
	}
	switch {
	case about == Frozen:
		a.frozen = max(a.frozen, on)
		a.stuck, x.restored = a.frozen == 1, false
	case about == Unrecognized:
		a.unknown = on == 1
	case a.up < 0 || on < a.up:
		a.up = on
	}
}

// Scrape is what the answers of one time state together.
type Scrape struct {
	Known     bool // there is a point of gpu.exporter.up
	Down      bool // it failed, or its values stand still, or its fields are not known
	Failed    bool
	Succeeded bool // at this time
}

// Settle returns what the answers state, of which at is the newest time. An exporter's pod that was
// replaced sends nothing any more: it counts no longer when the one that answers
// instead did so twice since, or its last points are stale.
func (x *Answers) Settle(at pcommon.Timestamp, staleness time.Duration) (s Scrape) {
	twice := pcommon.Timestamp(0)
	for _, a := range x.all {
		if a.up == 1 {
			twice = max(twice, a.before)
		}
	}
	x.all = slices.DeleteFunc(x.all, func(a answer) bool {
		return a.at < at && (a.at < twice || at.AsTime().Sub(a.at.AsTime()) > staleness)
	})
	for _, a := range x.all {
		s.Down = s.Down || a.down()
		s.Failed = s.Failed || a.up == 0
		s.Known = s.Known || a.up >= 0
		s.Succeeded = s.Succeeded || a.at == at && a.up == 1
	}
	if s.Down {
		x.unknown = 0
	}
	return s
}

// IsDown reports whether it does not answer, or with values that stand still, or with fields
// that are not known.
func (x *Answers) IsDown() bool {
	return slices.ContainsFunc(x.all, func(a answer) bool { return a.down() })
}

// IsUnrecognized reports whether the fields of its page are not known: what is missing there
// may be there under another name.
func (x *Answers) IsUnrecognized() bool {
	return slices.ContainsFunc(x.all, func(a answer) bool { return a.unknown })
}

// WasFrozen reports whether it was frozen at the last point about that.
func (x *Answers) WasFrozen() bool {
	return x.restored || slices.ContainsFunc(x.all, func(a answer) bool { return a.stuck })
}

// MaybeFrozen reports whether it was frozen, answers, and has no point about that: it may
// be frozen still, as where the receiver that decides it was restarted.
func (x *Answers) MaybeFrozen(at pcommon.Timestamp) bool {
	if !x.WasFrozen() {
		x.unknown = 0
		return false
	}
	if x.unknown == 0 || at < x.unknown {
		x.unknown = at
	}
	if at.AsTime().Sub(x.unknown.AsTime()) < unknownFor {
		return true
	}
	x.restored, x.unknown = false, 0
	for i := range x.all {
		x.all[i].stuck = false
	}
	return false
}

// Restore takes whether the exporter was frozen before a restart.
func (x *Answers) Restore(frozen bool) { x.restored = frozen }

// Worst is the address that is down, else the newest; reason is why it is down.
func (x *Answers) Worst() (address string, port int64, reason string) {
	worst := answer{up: -1, frozen: -1}
	for _, a := range x.all {
		if a.down() || a.at >= worst.at && !worst.down() {
			worst = a
		}
	}
	switch {
	case worst.up == 0:
		reason = names.ExporterReasonDown
	case worst.frozen != 1 && worst.unknown:
		reason = names.ExporterReasonUnrecognized
	default:
		reason = names.ExporterReasonFrozen
	}
	return worst.address, worst.port, reason
}
