// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package send // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/send"

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/signing"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/spool"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
)

// Attempt is one attempt of a delivery, on its way through the chain.
type Attempt struct {
	*delivery.Delivery
	id        string // of its audit record
	body      []byte
	header    http.Header
	time      time.Time // of the request, as it is signed and audited
	started   time.Time // before the deadline: no attempt is shorter than its timeout
	notStored bool      // the storage could not take the intent
}

// NewAttempt returns an attempt with this body.
func NewAttempt(d *delivery.Delivery, body []byte) *Attempt {
	return &Attempt{Delivery: d, id: eventrecord.NewID(), body: body, header: http.Header{}}
}

// Result is what came of an attempt.
type Result struct {
	status    int
	errorType audit.ErrorType
	peer      string
	durations audit.Durations
	// retryAfter is what the endpoint asked for, bounded; 0 if it did not.
	retryAfter time.Duration
	// Next is the time of the next attempt; zero after the last one.
	Next time.Time
	// Gone is true if this attempt disabled the endpoint.
	Gone bool
}

// Sender makes an attempt, or the part of it that its type names, with the next
// sender.
type Sender interface {
	Send(ctx context.Context, a *Attempt) Result
}

// NewChain returns the sender of one endpoint. An attempt passes the senders from
// the last one here to the transport, and its result passes them back. So the
// intent is stored before the request is made, each attempt has exactly one audit
// record, and what is stored changes after the record is written: whenever the
// process ends, the attempt has its record, now or after the next start.
func NewChain(ep *endpoint.Endpoint, transport http.RoundTripper, o Options) Sender {
	var s Sender = transportSender{ep, ep.URL.String(), transport, o.UserAgent}
	s = timeoutSender{ep.Timeout, s}
	s = signingSender{ep.Signer, s}
	s = retrySender{&o.Retry, o.Last, s}
	s = answerSender{o.Disable, o.Pause, s}
	s = auditSender{ep, o.Retry.Attempts(), o.Report, s}
	return storageSender{o.Store, s}
}

// Options is what a chain needs beside the endpoint.
type Options struct {
	Store     *spool.Store // nil stores nothing
	Report    func(*delivery.Delivery, *audit.Record)
	Retry     delivery.RetryConfig
	UserAgent string
	// Last reports whether a delivery that fails now has no further attempt.
	Last func(*delivery.Delivery) bool
	// Disable disables the endpoint, and reports whether it was enabled.
	Disable func() bool
	// Pause lets the endpoint get nothing before that time.
	Pause func(until time.Time)
}

// storageSender stores the intent before the attempt, and what comes next after it.
type storageSender struct {
	store *spool.Store
	next  Sender
}

func (s storageSender) Send(ctx context.Context, a *Attempt) Result {
	sum := sha256.Sum256(a.body)
	a.Begin(a.id, time.Now(), hex.EncodeToString(sum[:]), len(a.body))
	a.notStored = !s.store.SaveNow(a.Delivery)
	res := s.next.Send(ctx, a)
	a.Intent, a.Next = nil, res.Next
	if res.Next.IsZero() {
		s.store.Remove(a.Delivery)
	} else {
		s.store.Save(a.Delivery)
	}
	return res
}

// auditSender reports one record of the attempt.
type auditSender struct {
	endpoint    *endpoint.Endpoint
	maxAttempts int
	report      func(*delivery.Delivery, *audit.Record)
	next        Sender
}

func (s auditSender) Send(ctx context.Context, a *Attempt) Result {
	a.time = time.Now().UTC()
	rec := a.Record(a.id, a.time)
	s.endpoint.Describe(rec)
	rec.Attempt, rec.MaxAttempts, rec.NotStored = a.Attempts, s.maxAttempts, a.notStored
	rec.BodySHA256, rec.BodySize = a.Intent.BodySHA256, a.Intent.BodySize
	rec.SignatureKeyIDs = s.endpoint.Signer.KeyIDs

	res := s.next.Send(ctx, a)

	rec.Status, rec.ErrorType, rec.PeerAddress = res.status, res.errorType, res.peer
	rec.RetryAfter, rec.NextAttempt = res.retryAfter, res.Next.UTC()
	queued := rec.Durations.Queued
	rec.Durations = res.durations
	rec.Durations.Queued = queued
	switch res.errorType {
	case audit.ErrorNone:
		rec.Outcome = audit.Succeeded
	case audit.ErrorSSRFBlocked:
		rec.Outcome = audit.Blocked
	default:
		rec.Outcome = audit.Failed
	}
	s.report(a.Delivery, rec)
	a.Notify(rec)
	return res
}

// answerSender applies what an answer means for the endpoint's other deliveries:
// it is gone, or limits the rate.
type answerSender struct {
	disable func() bool
	pause   func(until time.Time)
	next    Sender
}

func (s answerSender) Send(ctx context.Context, a *Attempt) Result {
	res := s.next.Send(ctx, a)
	res.Gone = res.errorType == audit.ErrorGone && s.disable()
	if limitsRate(res.status) {
		if until := pauseUntil(res, time.Now()); !until.IsZero() {
			s.pause(until)
		}
	}
	return res
}

// retrySender decides when the delivery is tried again.
type retrySender struct {
	policy *delivery.RetryConfig
	last   func(*delivery.Delivery) bool // whether there is no further attempt in any case
	next   Sender
}

func (s retrySender) Send(ctx context.Context, a *Attempt) Result {
	res := s.next.Send(ctx, a)
	if res.errorType != audit.ErrorNone && !s.last(a.Delivery) {
		res.Next = s.policy.After(&a.State, res.errorType, res.status, res.retryAfter, time.Now())
	}
	return res
}

// signingSender signs the request.
type signingSender struct {
	signer *signing.Signer
	next   Sender
}

func (s signingSender) Send(ctx context.Context, a *Attempt) Result {
	s.signer.Sign(a.header, a.WebhookID(), a.time, a.body)
	return s.next.Send(ctx, a)
}

// timeoutSender ends the attempt after the endpoint's timeout.
type timeoutSender struct {
	timeout time.Duration
	next    Sender
}

func (s timeoutSender) Send(ctx context.Context, a *Attempt) Result {
	a.started = time.Now()
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.next.Send(ctx, a)
}
