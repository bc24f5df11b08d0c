// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package conditions // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/conditions"

import (
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// NoticeFor is for how long a notice counts at most.
const NoticeFor = 24 * time.Hour

// Log is what the log of events says now.
type Log struct {
	// Raised are the conditions that were raised and not cleared since.
	Raised []*store.Event
	// Notices are the newest of each key that are younger than NoticeFor, whether
	// they still count or not.
	Notices []*store.Event
	// Acknowledged are the notices that somebody has seen: of what the log decides,
	// counters say nothing more.
	Acknowledged []*store.Event

	now time.Time
}

// Read reads events, the newest first.
func Read(events []*store.Event, now time.Time) *Log {
	log := &Log{now: now}
	seen, acknowledged := make(map[string]bool), make(map[string]bool)
	for _, e := range events {
		recent := names.EventIsNotice(e.Name) && now.Sub(e.Time) < NoticeFor
		if e.Key == "" || seen[e.Key] {
			if acknowledged[e.Key] && recent {
				log.Acknowledged = append(log.Acknowledged, e)
			}
			continue
		}
		seen[e.Key] = true
		switch {
		case e.State == names.EventAcknowledged:
			acknowledged[e.Key] = true
		case names.EventIsNotice(e.Name):
			if recent {
				log.Notices = append(log.Notices, e)
			}
		case e.State == names.EventRaised:
			log.Raised = append(log.Raised, e)
		}
	}
	return log
}

// settle is how long a device's last XID may lag behind the event about it.
const settle = 2 * time.Minute

// Counts decides whether a notice needs attention: the one place that does. Nobody
// clears a notice, so it counts while it is younger than NoticeFor, unless it is
// resolved: last, the device's own gpu.xid.last, is 0 again because the GPU was
// reset or its driver loaded again. nil is not known. What was acknowledged is not
// among the notices of a Log.
func Counts(e *store.Event, now time.Time, last *int) bool {
	age := now.Sub(e.Time)
	resolved := e.Name == names.EventXID && last != nil && *last == 0 && age >= settle
	return age < NoticeFor && !resolved && !slices.Contains([]string{"", "trace", "debug", "info"}, e.Severity)
}
