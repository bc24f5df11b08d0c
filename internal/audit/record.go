// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

import "time"

// Outcome is what became of an attempt or of a delivery without an attempt.
type Outcome string

const (
	Succeeded Outcome = "succeeded" // the receiver answered 2xx
	Failed    Outcome = "failed"    // an attempt was made and did not succeed
	Blocked   Outcome = "blocked"   // the guard refused the address
	Dropped   Outcome = "dropped"   // no attempt was made
)

// ErrorType is why a delivery did not succeed. The list is closed.
type ErrorType string

const (
	ErrorNone        ErrorType = ""
	ErrorDNS         ErrorType = "dns"
	ErrorConnect     ErrorType = "connect" // no connection, or none that speaks HTTP
	ErrorTLS         ErrorType = "tls"
	ErrorTimeout     ErrorType = "timeout"
	ErrorSSRFBlocked ErrorType = "ssrf_blocked"
	ErrorRedirect    ErrorType = "redirect"
	ErrorHTTP4xx     ErrorType = "http_4xx"
	ErrorHTTP5xx     ErrorType = "http_5xx"
	ErrorRateLimited ErrorType = "rate_limited" // 429
	ErrorGone        ErrorType = "gone"         // 410, then or earlier
	ErrorQueueFull   ErrorType = "queue_full"
	ErrorShutdown    ErrorType = "shutdown"
	ErrorInterrupted ErrorType = "interrupted" // the process was killed in mid-attempt; recorded at the next start
	ErrorConfig      ErrorType = "config"      // the request could not be built
)

// Trigger is what a delivery was made for; empty is an event that arrived.
type Trigger string

const (
	TriggerEvent  Trigger = ""
	TriggerTest   Trigger = "test"   // asked for by gpuctl webhook test
	TriggerReplay Trigger = "replay" // asked for by gpuctl webhook replay
	// TriggerEnable is no delivery: a receiver that had answered 410 gets
	// deliveries again. The record has no events, no attempt, and succeeded.
	TriggerEnable Trigger = "enable"
	// TriggerSetAside is no delivery either: the audit log that was found at the
	// start did not verify and was set aside; this log began in its place. The
	// record has no events, no receiver, no attempt, and failed.
	TriggerSetAside Trigger = "set_aside"
)

// Record is what is kept of one attempt, of a delivery without an attempt,
// or of a receiver that was enabled again. It holds nothing secret: of the URL only scheme, host and port, of
// the body only digest and size, of keys only their ids. Texts from outside in
// it are stripped of control, bidirectional and zero-width characters and
// bounded by the maker of the record.
type Record struct {
	ID   string    // UUIDv7
	Time time.Time // start of the attempt, or of giving it up; UTC
	// Events are what was delivered: one, or several that were grouped.
	Events []Event
	// WebhookID is the webhook-id of the request, the same in all attempts: by it
	// a receiver and a record agree on what they talk about.
	WebhookID string
	TraceID   string
	Trigger   Trigger

	Receiver       string
	URLScheme      string
	URLHost        string
	URLPort        uint16
	URLFingerprint string // keyed; empty without a key
	PeerAddress    string // the address dialled or, where blocked, refused; empty if none was found
	Format         string

	Attempt         int // from 1; 0 if none was made
	MaxAttempts     int
	BodySHA256      string
	BodySize        int
	SignatureKeyIDs []string

	Outcome    Outcome
	Status     int // 0 if there was no response
	ErrorType  ErrorType
	RetryAfter time.Duration // what the receiver asked for; 0 if it did not
	// NextAttempt is when it is tried again; zero: this was the last attempt,
	// and unless it succeeded, the delivery is given up.
	NextAttempt time.Time
	// NotStored: the storage could not take what is known of the attempt before
	// it was made. A kill in the middle of it would have left no record.
	NotStored bool
	Durations Durations
}

// Event names an event in a record.
type Event struct {
	Name string
	ID   string
	Key  string
	Time time.Time
}

// Durations of an attempt's parts; zero for a part that did not take place, as
// the name lookup of an address.
type Durations struct {
	Queued    time.Duration // from the pipeline to the start of the attempt
	DNS       time.Duration
	Connect   time.Duration
	TLS       time.Duration
	FirstByte time.Duration // from the start of the attempt to the response's first byte
	Total     time.Duration // from the start of the attempt to its end
}

// Sink keeps audit records. Write is called by several goroutines at once, for
// deliveries that did not fit into a queue also from the data path, so it must
// not wait for anything but its own medium. It must not change the record, and
// must not keep it. It has no error: a sink that cannot write reports it itself,
// and never stops a delivery.
type Sink interface {
	Write(*Record)
}

// Keeper is what an extension offers that also wants the records, such as a
// store that shows them beside the events. It is a copy: the file is the record.
type Keeper interface {
	// KeepAudit takes a record and its sequence number in the audit file, 0
	// where it has none (yet). It is called by several goroutines at once, must
	// not wait, and must neither change nor keep the record.
	KeepAudit(seq uint64, r *Record)
}
