// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// delivery is one event on its way to one receiver.
type delivery struct {
	event    *event
	received time.Time // by the pipeline
}

// roundTripper is what a receiver needs of an http.Transport.
type roundTripper interface {
	http.RoundTripper
	CloseIdleConnections()
}

// receiver sends deliveries to one webhook. Each of its workers has a queue of
// its own, and all deliveries of one event key go to the same worker, so that
// what was cleared does not arrive before what was raised.
type receiver struct {
	*target
	conditions conditions
	transport  roundTripper
	lifetime   context.Context
	report     func(*audit.Record)
	logger     *zap.Logger
	userAgent  string

	seed     maphash.Seed
	queues   []chan delivery
	queued   atomic.Int64 // in all queues together
	disabled atomic.Bool  // answered 410 Gone
}

func newReceiver(t *target) *receiver {
	r := &receiver{target: t, seed: maphash.MakeSeed(), queues: make([]chan delivery, t.workers)}
	for i := range r.queues {
		r.queues[i] = make(chan delivery, t.queueSize)
	}
	return r
}

// offer queues the delivery without waiting. It returns why it could not be
// queued, else audit.ErrorNone.
func (r *receiver) offer(d delivery) audit.ErrorType {
	if r.disabled.Load() {
		return audit.ErrorGone
	}
	if r.queued.Add(1) > int64(r.queueSize) {
		r.queued.Add(-1)
		return audit.ErrorQueueFull
	}
	key := d.event.key
	if key == "" {
		key = d.event.id
	}
	// Every queue could hold all that may be queued: this never blocks.
	r.queues[maphash.String(r.seed, key)%uint64(len(r.queues))] <- d
	return audit.ErrorNone
}

// work delivers what is queued until the queue is closed and empty.
func (r *receiver) work(queue <-chan delivery) {
	for d := range queue {
		r.queued.Add(-1)
		switch {
		case r.lifetime.Err() != nil:
			r.drop(d, audit.ErrorShutdown)
		case r.disabled.Load():
			r.drop(d, audit.ErrorGone)
		default:
			r.attempt(d)
		}
	}
}

// drop gives the delivery up without an attempt.
func (r *receiver) drop(d delivery, why audit.ErrorType) {
	rec := r.record(d)
	rec.Outcome, rec.ErrorType = audit.Dropped, why
	r.report(rec)
}

func (r *receiver) attempt(d delivery) {
	rec := r.record(d)
	body, err := r.encode(r.target, []*event{d.event})
	if err != nil {
		rec.Outcome, rec.ErrorType = audit.Dropped, audit.ErrorConfig
		r.report(rec)
		return
	}
	sum := sha256.Sum256(body)
	rec.BodySHA256, rec.BodySize = hex.EncodeToString(sum[:]), len(body)
	rec.SignatureKeyIDs = r.signer.keyIDs

	header := http.Header{
		"Content-Type": {"application/json"},
		"User-Agent":   {r.userAgent},
	}
	r.signer.sign(header, webhookID(d.event.id), rec.Time, body)
	res := post(r.lifetime, r.transport, r.target, header, body)

	rec.Attempt = 1
	rec.Status, rec.ErrorType, rec.PeerAddress = res.status, res.errorType, res.peer
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
	disabled := res.errorType == audit.ErrorGone && !r.disabled.Swap(true)
	r.report(rec)
	if disabled {
		r.logger.Error("Receiver answered 410 Gone and gets nothing more until its configuration changes.", zap.String("receiver", r.name))
	}
}

// record starts the audit record of a delivery.
func (r *receiver) record(d delivery) *audit.Record {
	now := time.Now()
	return &audit.Record{
		ID:          newID(),
		Time:        now.UTC(),
		Events:      []audit.Event{{Name: d.event.name, ID: d.event.id, Key: d.event.key, Time: d.event.time}},
		TraceID:     d.event.traceID,
		Receiver:    r.name,
		URLScheme:   r.url.Scheme,
		URLHost:     r.host,
		URLPort:     r.port,
		Format:      r.format,
		MaxAttempts: 1,
		Durations:   audit.Durations{Queued: now.Sub(d.received)},
	}
}

// newID returns a UUIDv7.
func newID() string {
	return uuid.Must(uuid.NewV7()).String() // fails only without a source of randomness
}
