// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// MaxRelease is for how long the driver is left alone because of a change of MIG.
const MaxRelease = 5 * time.Minute

// Release decides when no helper may run, so that no handle of it blocks what needs the
// driver for itself.
type Release struct {
	label   time.Time                // since when the node's MIG is being reconfigured
	pending time.Time                // since when a board waits for another mode
	modes   map[string]nvmlproto.MIG // that boards wait in, by thread
}

// Look returns why the driver is left alone now, empty if it is not. file is that the
// release file exists, reconfiguring that the node's MIG is being reconfigured.
func (r *Release) Look(now time.Time, file, reconfiguring bool) string {
	switch {
	case !reconfiguring:
		if !r.label.IsZero() { // the change is made: so is what was pending
			r.pending = time.Time{}
		}
		r.label = time.Time{}
	case r.label.IsZero():
		r.label = now
	}
	within := func(since time.Time) bool { return !since.IsZero() && now.Sub(since) < MaxRelease }
	switch {
	case file:
		return "release_file exists"
	case within(r.label):
		return "MIG is being reconfigured (nvidia.com/mig.config.state)"
	case within(r.pending):
		return "a change of the MIG mode is pending"
	}
	return ""
}

// Answered notes the MIG modes of boards. One that is pending is a reason once: it can be
// pending for days.
func (r *Release) Answered(now time.Time, boards []nvmlproto.Board) {
	if r.modes == nil {
		r.modes = map[string]nvmlproto.MIG{}
	}
	for i := range boards {
		b := &boards[i]
		switch {
		case b.Return != nvmlproto.Success || b.Lost:
		case b.MIG == nil || b.MIG.Current == b.MIG.Pending:
			delete(r.modes, b.Thread)
		case r.modes[b.Thread] != *b.MIG:
			r.modes[b.Thread], r.pending = *b.MIG, now
		}
	}
}
