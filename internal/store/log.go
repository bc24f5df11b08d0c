// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package store // import "github.com/otelcol-gpu/otelcol-gpu/internal/store"

import (
	"context"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Log is the bounded, persisted log of events and of what became of their
// webhooks. The oldest entries go when it is full, conditions that are raised last.
type Log interface {
	// AppendEvents returns when the events are on disk. Events with an id that is in
	// the log already are skipped, so a sender in doubt may send them again.
	// If the disk refuses them they can be read all the same until the process
	// ends, as the error states.
	AppendEvents(ctx context.Context, events []*Event) error
	// Events returns the newest events first. They must not be changed.
	Events(q EventQuery) []*Event
	// Deliveries returns the newest deliveries first. They must not be changed.
	Deliveries(q DeliveryQuery) []*Delivery

	// KeepAudit takes the audit record of a delivery, and its sequence number in
	// the audit file, 0 where it has none: this is what the webhook exporter
	// looks for in an extension. It neither waits for the disk nor keeps the
	// record.
	KeepAudit(sequence uint64, r *audit.Record)
}

// Event is an event: a log record with an event name. Texts in it are stripped
// of control, bidirectional and zero-width characters, and bounded.
type Event struct {
	// Sequence is the event's place in the log, from 1, given by the log.
	Sequence uint64    `json:"sequence"`
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Key      string    `json:"key,omitempty"`
	State    string    `json:"state,omitempty"`
	Severity string    `json:"severity,omitempty"` // trace, debug, info, warn, error or fatal
	Message  string    `json:"message,omitempty"`
	Time     time.Time `json:"time"`
	TraceID  string    `json:"trace_id,omitempty"`
	// Attributes and Resource hold texts, numbers, booleans, and lists of them.
	Attributes map[string]any `json:"attributes,omitempty"`
	Resource   map[string]any `json:"resource,omitempty"`
	// Truncated is true if something was left out because of a limit.
	Truncated bool `json:"truncated,omitempty"`
}

// Condition is the key of the condition that an event raises or clears, and whether
// it raises it. Notices, and acknowledgements of them, have none.
func (e *Event) Condition() (key string, raised bool) {
	if names.EventIsNotice(e.Name) || e.State == names.EventAcknowledged {
		return "", false
	}
	return e.Key, e.State == names.EventRaised
}

// Delivery is an attempt to deliver events to a webhook, or a delivery without an
// attempt.
type Delivery struct {
	// Sequence is the delivery's place in the log, from 1, given by the log.
	Sequence  uint64          `json:"sequence"`
	ID        string          `json:"id"`
	Time      time.Time       `json:"time"`
	EventIDs  []string        `json:"event_ids"`
	EventName string          `json:"event_name,omitempty"` // of the first one
	Receiver  string          `json:"receiver"`
	Host      string          `json:"host,omitempty"`
	Format    string          `json:"format,omitempty"`
	Trigger   audit.Trigger   `json:"trigger,omitempty"`
	Attempt   int             `json:"attempt"`
	Attempts  int             `json:"max_attempts"`
	Outcome   audit.Outcome   `json:"outcome"`
	Status    int             `json:"status,omitempty"`
	ErrorType audit.ErrorType `json:"error_type,omitempty"`
	// NextAttempt is zero if this was the last one.
	NextAttempt time.Time     `json:"next_attempt,omitzero"`
	Duration    time.Duration `json:"duration_ns,omitempty"`
	// NotStored: the exporter's storage could not take the attempt before it was
	// made; a kill in the middle of it would have lost it.
	NotStored bool `json:"not_stored,omitempty"`
	// AuditSequence is the record's number in the audit file; 0 if it is in none.
	AuditSequence uint64 `json:"audit_sequence,omitempty"`
}

// EventQuery selects events; zero fields select all.
type EventQuery struct {
	// Before selects events before that sequence: the last one of a page asks
	// for the next page.
	Before uint64
	// Limit is how many are returned; 0 is 100.
	Limit int
	// Match selects further; it must not wait.
	Match func(*Event) bool
}

// DeliveryQuery selects deliveries; zero fields select all.
type DeliveryQuery struct {
	Before uint64
	Limit  int // 0 is 100
	// EventID selects the deliveries of an event.
	EventID string
	// Match selects further; it must not wait.
	Match func(*Delivery) bool
}

// NewDelivery takes over what the log keeps of an audit record; sequence is its
// number in the audit file, 0 if it is in none.
func NewDelivery(sequence uint64, r *audit.Record) *Delivery {
	d := &Delivery{
		AuditSequence: sequence,
		ID:            r.ID, Time: r.Time, Receiver: r.Receiver, Host: r.URLHost, Format: r.Format, Trigger: r.Trigger,
		Attempt: r.Attempt, Attempts: r.MaxAttempts, Outcome: r.Outcome, Status: r.Status, ErrorType: r.ErrorType,
		NextAttempt: r.NextAttempt, Duration: r.Durations.Total, NotStored: r.NotStored,
		EventIDs: make([]string, 0, len(r.Events)),
	}
	for _, e := range r.Events {
		d.EventIDs = append(d.EventIDs, e.ID)
	}
	if len(r.Events) > 0 {
		d.EventName = r.Events[0].Name
	}
	return d
}
