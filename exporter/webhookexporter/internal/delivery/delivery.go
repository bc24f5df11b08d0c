// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
)

// Item is an event that is kept: for the deliveries that carry it, and for
// replay. The store counts its users.
type Item struct {
	*event.Event
	Number uint64 // in the order of arrival
	Slot   int    // in the store
	Refs   int    // by so many parts and memories; guarded by the store

	fate fate
}

// Fate is what became of an event, once all of its deliveries have ended.
type Fate int

const (
	Open      Fate = iota // a delivery has not ended
	Delivered             // to every endpoint that wanted it
	Failed                // an endpoint did not get it
	Refused               // there was no place in the queue of an endpoint
)

// fate counts the deliveries of an event.
type fate struct {
	mu    sync.Mutex
	open  int
	worst Fate
}

// Expect adds deliveries that have to end. It comes before the first one ends.
func (it *Item) Expect(deliveries int) {
	it.fate.mu.Lock()
	defer it.fate.mu.Unlock()
	it.fate.open += deliveries
}

// End ends one delivery of the event. It returns what became of the event with its
// last delivery, else Open.
func (it *Item) End(f Fate) Fate {
	it.fate.mu.Lock()
	defer it.fate.mu.Unlock()
	it.fate.open--
	it.fate.worst = max(it.fate.worst, f)
	if it.fate.open > 0 {
		return Open
	}
	return it.fate.worst
}

// Part is one event on its way to one receiver, and a row of the store.
type Part struct {
	*Item
	Number   uint64 // in the order of arrival
	Row      int    // in the store
	Received time.Time
	// Unstored: the storage could not take it when it was accepted, and it is not
	// known to have since.
	Unstored bool
}

// Delivery is what travels to a receiver in one request: one event, or several
// that were grouped. It belongs to the queue, or to the worker that took it.
type Delivery struct {
	Endpoint string // its name
	Parts    []*Part
	Group    string // webhook id of several; given with the first attempt
	State
	// Refused is true if the queue had no place for it.
	Refused bool
	// Waiter gets the record of the first attempt, or of giving up. It may be nil.
	Waiter chan<- *audit.Record

	blockers int // earlier deliveries that have a key in common; the queue's
}

// State is how far a delivery has come. It is stored with each of its parts.
type State struct {
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

func (d *Delivery) Events() []*event.Event {
	events := make([]*event.Event, len(d.Parts))
	for i, p := range d.Parts {
		events[i] = p.Event
	}
	return events
}

// WebhookID is the same in every attempt.
func (d *Delivery) WebhookID() string {
	if len(d.Parts) > 1 && d.Group == "" {
		d.Group = "grp_" + eventrecord.NewID()
	}
	if d.Group != "" {
		return d.Group
	}
	return webhookID(d.Parts[0].ID)
}

// Record starts the audit record of this id, without the fields of the endpoint.
func (d *Delivery) Record(id string, now time.Time) *audit.Record {
	first := d.Parts[0]
	rec := &audit.Record{
		ID:        id,
		Time:      now.UTC(),
		WebhookID: d.WebhookID(),
		TraceID:   first.TraceID,
		Trigger:   first.Trigger,
		Durations: audit.Durations{Queued: now.Sub(first.Received)},
	}
	for _, p := range d.Parts {
		rec.Events = append(rec.Events, audit.Event{Name: p.Name, ID: p.ID, Key: p.Key, Time: p.Time})
		if p.TraceID != rec.TraceID {
			rec.TraceID = "" // several have no trace in common
		}
	}
	return rec
}

// Begin notes that an attempt begins: it is stored with the delivery until the
// attempt has its record.
func (d *Delivery) Begin(record string, now time.Time, bodySHA256 string, bodySize int) {
	d.WebhookID() // a group gets its id with the first attempt
	d.Attempts++
	if d.First.IsZero() {
		d.First = now.UTC()
	}
	d.Intent = &intent{Record: record, Started: now.UTC(), BodySHA256: bodySHA256, BodySize: bodySize}
}

// Notify hands the record to the caller that waits for the delivery.
func (d *Delivery) Notify(rec *audit.Record) {
	if d.Waiter != nil {
		d.Waiter <- rec // holds one
		d.Waiter = nil
	}
}

// webhookID returns the id that is sent for an event: its own where a header
// and a signature can carry it (a dot would make the signed text ambiguous),
// else a digest, which is as stable.
func webhookID(eventID string) string {
	for i := range len(eventID) {
		switch c := eventID[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			sum := sha256.Sum256([]byte(eventID))
			return "evt_" + hex.EncodeToString(sum[:16])
		}
	}
	return eventID
}

// End ends the delivery of each of its events, as its last record states. It
// returns how many events it was the last delivery of, by what became of them.
func (d *Delivery) End(rec *audit.Record) (ended [Refused + 1]int64) {
	f := Failed
	switch {
	case rec.Outcome == audit.Succeeded:
		f = Delivered
	case d.Refused:
		f = Refused
	}
	for _, p := range d.Parts {
		ended[p.Item.End(f)]++
	}
	return ended
}
