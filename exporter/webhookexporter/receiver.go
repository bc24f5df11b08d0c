// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// roundTripper is what a receiver needs of an http.Transport.
type roundTripper interface {
	http.RoundTripper
	CloseIdleConnections()
}

// receiver sends deliveries to one webhook, with workers and a queue of its own.
type receiver struct {
	name       string
	conditions event.Conditions
	queue      *queue
	retry      RetryConfig
	store      *store // nil: nothing is kept over a restart
	report     func(*audit.Record)
	logger     *zap.Logger
	userAgent  string
	disabled   atomic.Bool // answered 410 Gone

	// lifetime ends when nobody waits for attempts any more.
	lifetime context.Context
	endLife  context.CancelFunc
	workers  sync.WaitGroup

	mu        sync.RWMutex
	target    *target // may be replaced
	transport roundTripper
	ending    audit.ErrorType // why what is left is given up
}

// current returns what the next attempt is made with.
func (r *receiver) current() (*target, roundTripper) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.target, r.transport
}

// reconfigure takes over another configuration. What is queued is delivered by
// it, and a receiver that was gone gets another chance: then it reports true.
func (r *receiver) reconfigure(t *target, transport roundTripper) (enabled bool) {
	r.mu.Lock()
	old := r.transport
	r.target, r.transport = t, transport
	r.mu.Unlock()
	enabled = r.enable()
	old.CloseIdleConnections()
	r.queue.configure(t)
	r.queue.hasten()
	return enabled
}

// enable gives a receiver that answered 410 deliveries again. It reports false
// if there was nothing to enable.
func (r *receiver) enable() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.store.setGone(r.name, "", false)
	return r.disabled.Swap(false)
}

// start starts the workers that are missing.
func (r *receiver) start() {
	for range r.queue.hire() {
		r.workers.Go(func() {
			for d := r.queue.take(); d != nil; d = r.queue.take() {
				r.serve(d)
			}
		})
	}
}

// close takes no further deliveries. Workers go on with what is queued. What is
// left in the end stays stored if keep says so, else it is given up for the
// reason given.
func (r *receiver) close(keep func(*delivery) bool, why audit.ErrorType, deadline time.Time) {
	r.mu.Lock()
	r.ending = why
	r.mu.Unlock()
	r.queue.close(keep, deadline)
}

// wait waits for the workers, then sees to what is left. It takes as long as
// they go on: endLife hurries them.
func (r *receiver) wait() {
	r.workers.Wait()
	for _, d := range r.queue.empty() {
		r.leave(d)
	}
	_, transport := r.current()
	transport.CloseIdleConnections()
	r.endLife()
}

// leave sees to a delivery that a closed queue will not deliver.
func (r *receiver) leave(d *delivery) {
	if r.queue.keeps(d) {
		return // the next start finds it in the store
	}
	r.mu.RLock()
	why := r.ending
	r.mu.RUnlock()
	r.drop(d, why)
}

// reserve promises a place in the queue. It returns why there is none, else
// audit.ErrorNone.
func (r *receiver) reserve() audit.ErrorType {
	switch {
	case r.disabled.Load():
		return audit.ErrorGone
	case !r.queue.reserve():
		return audit.ErrorQueueFull
	default:
		return audit.ErrorNone
	}
}

// refuse gives up a delivery that was never accepted.
func (r *receiver) refuse(d *delivery, why audit.ErrorType) {
	t, _ := r.current()
	rec := d.record(r.name, t, time.Now())
	rec.MaxAttempts = r.retry.attempts()
	rec.Outcome, rec.ErrorType = audit.Dropped, why
	r.report(rec)
	d.tell(rec)
}

// drop gives up a delivery that was accepted, without another attempt.
func (r *receiver) drop(d *delivery, why audit.ErrorType) {
	r.refuse(d, why)
	r.store.remove(d)
}

// serve deals with a delivery that was taken from the queue.
func (r *receiver) serve(d *delivery) {
	switch {
	case r.lifetime.Err() != nil:
		r.queue.abandon()
		r.queue.again(d, 0) // back to what is left
	case r.disabled.Load():
		r.drop(d, audit.ErrorGone)
		r.queue.done(d)
	default:
		r.attempt(d)
	}
}

// attempt makes one. The intent is stored before it, and replaced by what is
// next only when the audit record is written: whenever the process ends, the
// attempt has its record, now or at the next start.
func (r *receiver) attempt(d *delivery) {
	t, transport := r.current()
	if len(d.parts) > t.encoder.Group {
		// It was grouped for another format, which the receiver had until now:
		// this one would leave events out. What is stored stays until each is
		// attempted; a start in between finds the group, and splits it again.
		r.queue.split(d)
		return
	}
	now := time.Now()
	rec := d.record(r.name, t, now)
	rec.MaxAttempts = r.retry.attempts()
	body, err := t.encoder.Encode(d.events())
	if err != nil {
		rec.Outcome, rec.ErrorType = audit.Dropped, audit.ErrorConfig
		r.report(rec)
		d.tell(rec)
		r.store.remove(d)
		r.queue.done(d)
		return
	}
	sum := sha256.Sum256(body)
	rec.BodySHA256, rec.BodySize = hex.EncodeToString(sum[:]), len(body)
	rec.SignatureKeyIDs = t.signer.keyIDs
	id := d.webhookID()

	d.Attempts++
	if d.First.IsZero() {
		d.First = rec.Time
	}
	d.Intent = &intent{Record: rec.ID, Started: rec.Time, BodySHA256: rec.BodySHA256, BodySize: rec.BodySize}
	rec.NotStored = !r.store.saveNow(r.name, d)

	now = time.Now()
	rec.Time, rec.Attempt = now.UTC(), d.Attempts
	header := http.Header{
		"Content-Type": {"application/json"},
		"User-Agent":   {r.userAgent},
	}
	t.signer.sign(header, id, rec.Time, body)
	res := post(r.lifetime, transport, t, header, body)
	r.end(d, t, rec, res)
}

// end draws the consequences of an attempt.
func (r *receiver) end(d *delivery, t *target, rec *audit.Record, res result) {
	now := time.Now()
	d.Intent = nil
	d.Next = r.retry.after(&d.state, res.errorType, res.status, res.retryAfter, now)
	if r.queue.closing(d) {
		d.Next = time.Time{}
	}
	rec.Status, rec.ErrorType, rec.PeerAddress = res.status, res.errorType, res.peer
	rec.RetryAfter, rec.NextAttempt = res.retryAfter, d.Next.UTC()
	queued := rec.Time.Sub(d.parts[0].received)
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
	gone := r.gone(t, res.errorType)
	if until := r.quiet(res, d.Next, now); !until.IsZero() {
		r.queue.pause(until)
	}

	r.report(rec)
	if gone {
		r.queue.hasten() // what waits is given up now
		r.logger.Error("receiver answered 410 Gone and gets nothing more until its configuration changes, or gpuctl webhook enable is used", zap.String("receiver", r.name))
	}
	d.tell(rec)
	if d.Next.IsZero() {
		r.store.remove(d)
		r.queue.done(d)
		return
	}
	r.store.save(r.name, d)
	r.queue.again(d, d.Next.Sub(now))
	if r.disabled.Load() {
		// Another attempt heard 410 before this one was waiting.
		r.queue.hasten()
	}
}

// gone disables the receiver if it says so, and reports whether that is new. An
// answer to an attempt of an earlier configuration says nothing of this one.
func (r *receiver) gone(t *target, kind audit.ErrorType) bool {
	if kind != audit.ErrorGone {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	now := r.target == t && !r.disabled.Swap(true)
	if now {
		r.store.setGone(r.name, t.fingerprint, true)
	}
	return now
}

// quiet is until when the receiver gets nothing at all, zero if it may: while
// it limits the rate, its other deliveries wait too. One that does not name a
// time is asked again soon, however long the delivery itself waits: its back-off
// grows with each attempt, and what happened since must not wait as long.
func (r *receiver) quiet(res result, next, now time.Time) time.Time {
	switch {
	case limitsRate(res.status) && res.retryAfter > 0:
		return now.Add(res.retryAfter)
	case res.status == http.StatusTooManyRequests && !next.IsZero():
		if soon := now.Add(upTo(maxUnnamedPause)); soon.Before(next) {
			return soon
		}
		return next
	default:
		return time.Time{}
	}
}
