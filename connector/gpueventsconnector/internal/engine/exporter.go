// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// exporter is an exporter that is watched.
type exporter struct {
	id       subject.ExporterID
	seen     time.Duration
	opened   bool              // it is in exporters.open
	snapshot pcommon.Timestamp // the time of the points that are read; 0: all were judged
	at       pcommon.Timestamp // the newest time that was judged
	answered time.Duration     // when the newest scrape that succeeded arrived; 0: none did
	answers  []answer          // by address; one, but while a pod is replaced by the next
	down     condition.Condition

	frozen   bool              // it was frozen at the last point about that
	restored bool              // that comes from before a restart
	unknown  pcommon.Timestamp // since when it answers, was frozen, and has no point about that; 0: it has
}

// answer is what is known of an exporter at one address.
type answer struct {
	address    string
	port       int64
	up, frozen int8              // 1, 0; -1: there was no point
	stuck      bool              // it was frozen, and no point has denied it since
	at, before pcommon.Timestamp // of its newest points, and of those before
}

func (a *answer) down() bool { return a.up == 0 || a.frozen == 1 }

// unknownFor is after how long an exporter that was frozen is over it without a point
// about that: its pages have none, as those of an exporter without energy fields.
const unknownFor = 15 * time.Minute

// maxAnswers bounds the addresses of one exporter.
const maxAnswers = 8

// read takes a point of an exporter: whether it is up, or whether it is frozen.
func (x *exporter) read(address string, port int64, frozen bool, on int8) {
	i := slices.IndexFunc(x.answers, func(a answer) bool { return a.address == address && a.port == port })
	if i < 0 {
		if len(x.answers) >= maxAnswers { // the one that was silent for longest
			oldest := slices.MinFunc(x.answers, func(a, b answer) int { return cmp.Compare(a.at, b.at) })
			x.answers = slices.DeleteFunc(x.answers, func(a answer) bool { return a == oldest })
		}
		i = len(x.answers)
		x.answers = append(x.answers, answer{address: strings.Clone(address), port: port, up: -1, frozen: -1})
	}
	a := &x.answers[i]
	if a.at != x.snapshot {
		a.before, a.at, a.up, a.frozen = a.at, x.snapshot, -1, -1
	}
	if frozen {
		a.frozen = max(a.frozen, on)
		a.stuck, x.restored = a.frozen == 1, false
	} else if a.up < 0 || on < a.up {
		a.up = on
	}
}

// scrape is what the answers of one time state together.
type scrape struct {
	known     bool // there is a point of gpu.exporter.up
	down      bool // it failed, or its values stand still
	failed    bool
	succeeded bool // at this time
}

// settle ends the snapshot and returns what it states. An exporter's pod that was
// replaced sends nothing any more: it counts no longer when the one that answers
// instead did so twice since, or its last points are stale.
func (x *exporter) settle(staleness time.Duration) (s scrape) {
	at := x.snapshot
	x.snapshot, x.at = 0, at
	twice := pcommon.Timestamp(0)
	for _, a := range x.answers {
		if a.up == 1 {
			twice = max(twice, a.before)
		}
	}
	x.answers = slices.DeleteFunc(x.answers, func(a answer) bool {
		return a.at < at && (a.at < twice || at.AsTime().Sub(a.at.AsTime()) > staleness)
	})
	for _, a := range x.answers {
		s.down = s.down || a.down()
		s.failed = s.failed || a.up == 0
		s.known = s.known || a.up >= 0
		s.succeeded = s.succeeded || a.at == at && a.up == 1
	}
	if s.down {
		x.unknown = 0
	}
	return s
}

// isDown reports whether it does not answer, or with values that stand still.
func (x *exporter) isDown() bool {
	return slices.ContainsFunc(x.answers, func(a answer) bool { return a.down() })
}

// wasFrozen reports whether it was frozen at the last point about that.
func (x *exporter) wasFrozen() bool {
	return x.restored || slices.ContainsFunc(x.answers, func(a answer) bool { return a.stuck })
}

// maybeFrozen reports whether it was frozen, answers, and has no point about that: it may
// be frozen still, as where the receiver that decides it was restarted.
func (x *exporter) maybeFrozen(at pcommon.Timestamp) bool {
	if !x.wasFrozen() {
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
	for i := range x.answers {
		x.answers[i].stuck = false
	}
	return false
}

// subject is the exporter at the address that is down, else at the newest; reason is why
// it is down.
func (x *exporter) subject() (s subject.Exporter, reason string) {
	worst := answer{up: -1, frozen: -1}
	for _, a := range x.answers {
		if a.down() || a.at >= worst.at && !worst.down() {
			worst = a
		}
	}
	reason = names.ExporterReasonFrozen
	if worst.up == 0 {
		reason = names.ExporterReasonDown
	}
	return subject.Exporter{ID: x.id, Address: worst.address, Port: worst.port}, reason
}
