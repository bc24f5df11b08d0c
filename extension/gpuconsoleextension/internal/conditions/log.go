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

// Log is the state of the log of events.
type Log struct {
	// Raised are the conditions that were raised and not cleared since.
	Raised []*store.Event
	// Notices are the newest of each key that are younger than NoticeFor, or hardly
	// older, whether they still count or not.
	Notices []*store.Event
	// Acknowledged are the notices that were seen by a user: of what the log decides,
	// counters add nothing.
	Acknowledged []*store.Event

	now time.Time
}

// Read reads events, the newest first.
func Read(events []*store.Event, now time.Time) *Log {
	log := &Log{now: now}
	seen, acknowledged := make(map[string]bool), Acknowledgements{}
	for _, e := range events {
		at := acknowledged.When(e)
		if e.Key == "" || seen[e.Key] || e.State == names.EventAcknowledged {
			continue
		}
		// The counters behind it may show it for a moment longer.
		recent := names.EventIsNotice(e.Name) && now.Sub(e.Time) < NoticeFor+settle
		seen[e.Key] = true
		switch {
		case names.EventIsNotice(e.Name) && at != nil:
			if recent {
				log.Acknowledged = append(log.Acknowledged, e)
			}
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

// Acknowledgement is the record that a notice was seen.
func Acknowledgement(id string, notice *store.Event, at time.Time) *store.Event {
	return &store.Event{
		ID: id, Name: notice.Name, Key: notice.Key, State: names.EventAcknowledged, Severity: "info",
		Message: "Acknowledged in the console.", Time: at, Attributes: map[string]any{names.GPUEventID: notice.ID},
	}
}

// Acknowledgements knows what was acknowledged, of events that it is shown the
// newest first: a notice and those before it with its key. Between the notice and
// the record of it there may be another, which was not seen yet.
type Acknowledgements map[[2]string]time.Time

// When is when an event was acknowledged; nil if it was not.
func (a Acknowledgements) When(e *store.Event) *time.Time {
	if e.Key == "" {
		return nil
	}
	if e.State == names.EventAcknowledged {
		a[[2]string{e.Key, text(e, names.GPUEventID)}] = e.Time.UTC()
		return nil
	}
	all := [2]string{e.Key, ""} // from here on
	if at, known := a[[2]string{e.Key, e.ID}]; known {
		a[all] = at
	}
	if at, known := a[all]; known {
		return &at
	}
	return nil
}

// settle is how long a device's last XID may lag behind the event about it.
const settle = 2 * time.Minute

// Counts decides whether a notice needs attention: the one place that does. No user
// clears a notice, so it counts while it is younger than NoticeFor, unless it is
// resolved: last, the device's own gpu.xid.last, is 0 again because the GPU was
// reset or its driver loaded again. nil is not known. What was acknowledged is not
// among the notices of a Log.
func Counts(e *store.Event, now time.Time, last *int) bool {
	age := now.Sub(e.Time)
	resolved := e.Name == names.EventXID && last != nil && *last == 0 && age >= settle
	return age < NoticeFor && !resolved && !slices.Contains([]string{"", "trace", "debug", "info"}, e.Severity)
}
