// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
)

// item is an event that is kept: for the deliveries that carry it, and for
// replay. The store counts who needs it.
type item struct {
	*event.Event
	number uint64 // in the order of arrival
	slot   int    // in the store
	needed int    // by so many parts and memories; guarded by the store
}

// part is one event on its way to one receiver, and a row of the store.
type part struct {
	*item
	number   uint64 // in the order of arrival
	row      int    // in the store
	received time.Time
	// unstored: the storage could not take it when it was accepted, and it is not
	// known to have since.
	unstored bool
}

// delivery is what travels to a receiver in one request: one event, or several
// that were grouped. It belongs to the queue, or to the worker that took it.
type delivery struct {
	parts []*part
	group string // webhook id of several; given with the first attempt
	state
	// told gets the record of the first attempt, or of giving up. It may be nil.
	told chan<- *audit.Record

	blockers int // earlier deliveries that have a key in common; the queue's
}

// state is how far a delivery has come. It is stored with each of its parts.
type state struct {
	Attempts int       `json:"attempts,omitempty"` // begun
	First    time.Time `json:"first,omitzero"`     // start of the first attempt
	Next     time.Time `json:"next,omitzero"`      // when it is tried again
	Intent   *intent   `json:"attempting,omitempty"`
}

// intent is an attempt that has begun. What is found of it at a start was
// interrupted.
type intent struct {
	Record     string    `json:"record"`
	Started    time.Time `json:"started"`
	BodySHA256 string    `json:"body_sha256"`
	BodySize   int       `json:"body_size"`
}

func (d *delivery) events() []*event.Event {
	events := make([]*event.Event, len(d.parts))
	for i, p := range d.parts {
		events[i] = p.Event
	}
	return events
}

// webhookID is the same in every attempt.
func (d *delivery) webhookID() string {
	if len(d.parts) > 1 && d.group == "" {
		d.group = "grp_" + eventrecord.NewID()
	}
	if d.group != "" {
		return d.group
	}
	return webhookID(d.parts[0].ID)
}

// record starts an audit record of the delivery. Of a receiver that is no
// longer configured, the target is nil.
func (d *delivery) record(receiver string, t *target, now time.Time) *audit.Record {
	first := d.parts[0]
	rec := &audit.Record{
		ID:          eventrecord.NewID(),
		Time:        now.UTC(),
		WebhookID:   d.webhookID(),
		TraceID:     first.TraceID,
		Trigger:     first.Trigger,
		Receiver:    receiver,
		MaxAttempts: 1,
		Durations:   audit.Durations{Queued: now.Sub(first.received)},
	}
	for _, p := range d.parts {
		rec.Events = append(rec.Events, audit.Event{Name: p.Name, ID: p.ID, Key: p.Key, Time: p.Time})
		if p.TraceID != rec.TraceID {
			rec.TraceID = "" // several have no trace in common
		}
	}
	if t != nil {
		rec.URLScheme, rec.URLHost, rec.URLPort, rec.Format = t.url.Scheme, t.host, t.port, t.encoder.Name
		rec.URLFingerprint = t.urlFingerprint
	}
	return rec
}

// tell hands the record to whoever waits for the delivery.
func (d *delivery) tell(rec *audit.Record) {
	if d.told != nil {
		d.told <- rec // holds one
		d.told = nil
	}
}
