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
	report     func(*auditRecord)
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
// queued, else errorNone.
func (r *receiver) offer(d delivery) errorType {
	if r.disabled.Load() {
		return errorGone
	}
	if r.queued.Add(1) > int64(r.queueSize) {
		r.queued.Add(-1)
		return errorQueueFull
	}
	key := d.event.key
	if key == "" {
		key = d.event.id
	}
	// Every queue could hold all that may be queued: this never blocks.
	r.queues[maphash.String(r.seed, key)%uint64(len(r.queues))] <- d
	return errorNone
}

// work delivers what is queued until the queue is closed and empty.
func (r *receiver) work(queue <-chan delivery) {
	for d := range queue {
		r.queued.Add(-1)
		switch {
		case r.lifetime.Err() != nil:
			r.drop(d, errorShutdown)
		case r.disabled.Load():
			r.drop(d, errorGone)
		default:
			r.attempt(d)
		}
	}
}

// drop gives the delivery up without an attempt.
func (r *receiver) drop(d delivery, why errorType) {
	rec := r.record(d)
	rec.outcome, rec.errorType = outcomeDropped, why
	r.report(rec)
}

func (r *receiver) attempt(d delivery) {
	rec := r.record(d)
	body, err := r.encode(d.event)
	if err != nil {
		rec.outcome, rec.errorType = outcomeDropped, errorConfig
		r.report(rec)
		return
	}
	sum := sha256.Sum256(body)
	rec.bodySHA256, rec.bodySize = hex.EncodeToString(sum[:]), len(body)
	rec.signatureKeyIDs = r.signer.keyIDs

	header := http.Header{
		"Content-Type": {"application/json"},
		"User-Agent":   {r.userAgent},
	}
	r.signer.sign(header, webhookID(d.event.id), rec.time, body)
	res := post(r.lifetime, r.transport, r.target, header, body)

	rec.attempt = 1
	rec.status, rec.errorType, rec.peerAddress = res.status, res.errorType, res.peer
	queued := rec.durations.queued
	rec.durations = res.durations
	rec.durations.queued = queued
	switch res.errorType {
	case errorNone:
		rec.outcome = outcomeSucceeded
	case errorSSRFBlocked:
		rec.outcome = outcomeBlocked
	default:
		rec.outcome = outcomeFailed
	}
	disabled := res.errorType == errorGone && !r.disabled.Swap(true)
	r.report(rec)
	if disabled {
		r.logger.Error("Receiver answered 410 Gone and gets nothing more until its configuration changes.", zap.String("receiver", r.name))
	}
}

// record starts the audit record of a delivery.
func (r *receiver) record(d delivery) *auditRecord {
	now := time.Now()
	return &auditRecord{
		id:          newID(),
		time:        now.UTC(),
		eventName:   d.event.name,
		eventID:     d.event.id,
		eventKey:    d.event.key,
		eventTime:   d.event.time,
		traceID:     d.event.traceID,
		receiver:    r.name,
		urlScheme:   r.url.Scheme,
		urlHost:     r.host,
		urlPort:     r.port,
		format:      r.format,
		maxAttempts: 1,
		durations:   durations{queued: now.Sub(d.received)},
	}
}

// newID returns a UUIDv7.
func newID() string {
	return uuid.Must(uuid.NewV7()).String() // fails only without a source of randomness
}
