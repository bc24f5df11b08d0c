// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dispatch // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/dispatch"

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/send"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/spool"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
)

// Shared is what all endpoints have in common. It does not change after the first
// endpoint started.
type Shared struct {
	Store *spool.Store // nil: nothing survives a restart
	// Report gets the record of each attempt, and of giving up.
	Report    func(*delivery.Delivery, *audit.Record)
	Retry     delivery.RetryConfig
	GroupWait time.Duration
	// NewTransport makes the transport of an endpoint.
	NewTransport func(*endpoint.Endpoint) send.RoundTripper
	UserAgent    string
	Logger       *zap.Logger
	// Lifetime ends when the exporter gives up waiting for attempts.
	Lifetime context.Context
}

// Dispatcher sends deliveries to one endpoint, with a queue and workers of its own.
type Dispatcher struct {
	*Shared
	Name       string
	conditions event.Conditions
	queue      *delivery.Queue
	disabled   atomic.Bool // answered 410 Gone

	// ctx ends when nothing waits for attempts any more.
	ctx     context.Context
	endLife context.CancelFunc
	workers sync.WaitGroup

	mu     sync.RWMutex
	now    *link
	ending audit.ErrorType // why what is left is given up
}

// link is what attempts are made with. It is replaced, never changed.
type link struct {
	*endpoint.Endpoint
	transport send.RoundTripper
	chain     send.Sender
}

// newDispatcher returns an endpoint. Its workers start later.
func newDispatcher(ep *endpoint.Endpoint, s *Shared) *Dispatcher {
	r := &Dispatcher{Shared: s, Name: ep.Name, queue: delivery.NewQueue(limitsOf(ep), s.GroupWait)}
	r.now = r.link(ep)
	r.ctx, r.endLife = context.WithCancel(s.Lifetime)
	context.AfterFunc(r.ctx, r.queue.Stop)
	return r
}

func (r *Dispatcher) link(ep *endpoint.Endpoint) *link {
	transport := r.NewTransport(ep)
	return &link{ep, transport, send.NewChain(ep, transport, send.Options{
		Store:     r.Store,
		Report:    r.Report,
		Retry:     r.Retry,
		UserAgent: r.UserAgent,
		Last:      r.queue.LastAttempt,
		Disable:   func() bool { return r.disable(ep) },
		Pause:     func(until time.Time) { r.pause(ep, until) },
	})}
}

// limitsOf are the limits of the endpoint's queue.
func limitsOf(ep *endpoint.Endpoint) delivery.Limits {
	return delivery.Limits{Size: ep.QueueSize, Workers: ep.Workers, Group: ep.Encoder.Group}
}

func (r *Dispatcher) current() *link {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.now
}

// Endpoint returns the configuration of the next attempt.
func (r *Dispatcher) Endpoint() *endpoint.Endpoint { return r.current().Endpoint }

// reconfigure changes the configuration. What is queued is delivered with the new
// one, and an endpoint that was gone is tried again: then it reports true.
func (r *Dispatcher) reconfigure(ep *endpoint.Endpoint) (enabled bool) {
	next := r.link(ep)
	r.mu.Lock()
	old := r.now
	r.now = next
	r.mu.Unlock()
	enabled = r.Enable()
	old.transport.CloseIdleConnections()
	r.queue.Configure(limitsOf(ep))
	r.queue.EndWaits()
	r.Store.SetLimit(r.Name, spool.Limit{})
	return enabled
}

// disable withholds everything from an endpoint that answered 410, until it is
// enabled or its configuration changes. It reports whether that is new. An answer
// to an attempt with an earlier configuration does not count.
func (r *Dispatcher) disable(ep *endpoint.Endpoint) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	first := r.now.Endpoint == ep && !r.disabled.Swap(true)
	if first {
		r.Store.SetGone(r.Name, ep.Fingerprint, true)
	}
	return first
}

// pause lets the endpoint get nothing before that time, also after a restart. An answer to an attempt
// with an earlier configuration does not count.
func (r *Dispatcher) pause(ep *endpoint.Endpoint, until time.Time) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.now.Endpoint == ep && r.queue.Pause(until) {
		r.Store.SetLimit(r.Name, spool.Limit{Fingerprint: ep.Fingerprint, Until: until})
	}
}

// RestoreLimit continues with the rate limit that an earlier process knew, if the endpoint has the
// configuration of then. A clock that was set back must not prolong it.
func (r *Dispatcher) RestoreLimit(l spool.Limit, now time.Time) {
	if r.Endpoint().Fingerprint != l.Fingerprint || !l.Until.After(now) {
		r.Store.SetLimit(r.Name, spool.Limit{})
		return
	}
	r.queue.Pause(earlier(l.Until, now.Add(send.MaxRetryAfter)))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Enable lets an endpoint that answered 410 get deliveries again. It reports false
// if there was nothing to enable.
func (r *Dispatcher) Enable() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Store.SetGone(r.Name, "", false)
	return r.disabled.Swap(false)
}

// RestoreGone continues with what an earlier process knew: that the endpoint was
// gone with the configuration of this fingerprint. It reports whether it still is.
func (r *Dispatcher) RestoreGone(fingerprint string) bool {
	if r.Endpoint().Fingerprint != fingerprint {
		r.Store.SetGone(r.Name, "", false)
		return false
	}
	r.disabled.Store(true)
	return true
}

// IsDisabled reports whether the endpoint answered 410 and gets nothing.
func (r *Dispatcher) IsDisabled() bool { return r.disabled.Load() }

// Lengths are how many events wait, and how many deliveries of them for their next
// attempt.
func (r *Dispatcher) Lengths() (waiting, retries int64) { return r.queue.Lengths() }

// Matches reports whether the endpoint wants events of this name.
func (r *Dispatcher) Matches(name string) bool { return r.Endpoint().Filter.Matches(name) }

// Withholds reports whether min_severity withholds the event from the endpoint.
func (r *Dispatcher) Withholds(severity plog.SeverityNumber, state, key string) bool {
	return r.conditions.Withholds(r.Endpoint().Filter.MinSeverity, severity, state, key)
}

// Restore queues a delivery of an earlier process.
func (r *Dispatcher) Restore(d *delivery.Delivery, now time.Time) { r.queue.Restore(d, now) }

// start starts the workers that are missing.
func (r *Dispatcher) start() {
	for range r.queue.MissingWorkers() {
		r.workers.Go(func() {
			for d := r.queue.Next(); d != nil; d = r.queue.Next() {
				r.serve(d)
			}
		})
	}
}

// close takes no further deliveries. Workers go on with what is queued. What is
// left in the end stays stored if keep reports so, else it is given up for the
// reason given.
func (r *Dispatcher) close(keep func(*delivery.Delivery) bool, why audit.ErrorType, deadline time.Time) {
	r.mu.Lock()
	r.ending = why
	r.mu.Unlock()
	r.queue.Close(keep, deadline)
}

// wait waits for the workers, then deals with what is left. The workers end once
// the queue is empty, or once endLife is called.
func (r *Dispatcher) wait() {
	r.workers.Wait()
	for _, d := range r.queue.Drain() {
		r.settle(d)
	}
	r.current().transport.CloseIdleConnections()
	r.endLife()
}

// settle deals with a delivery that a closed queue will not deliver.
func (r *Dispatcher) settle(d *delivery.Delivery) {
	if r.queue.Keeps(d) {
		return // the next start finds it in the store
	}
	r.mu.RLock()
	why := r.ending
	r.mu.RUnlock()
	r.drop(d, why)
}

// Reserve promises a place in the queue. It returns why there is none, else
// audit.ErrorNone.
func (r *Dispatcher) Reserve() audit.ErrorType {
	switch {
	case r.disabled.Load():
		return audit.ErrorGone
	case !r.queue.Reserve():
		return audit.ErrorQueueFull
	default:
		return audit.ErrorNone
	}
}

// Put queues a delivery that has a place.
func (r *Dispatcher) Put(d *delivery.Delivery) {
	if !r.queue.Put(d) {
		r.settle(d)
	}
}

// Refuse gives up a delivery that was never accepted.
func (r *Dispatcher) Refuse(d *delivery.Delivery, why audit.ErrorType) {
	rec := d.Record(eventrecord.NewID(), time.Now())
	r.Endpoint().Describe(rec)
	rec.MaxAttempts = r.Retry.Attempts()
	rec.Outcome, rec.ErrorType = audit.Dropped, why
	r.Report(d, rec)
	d.Notify(rec)
}

// drop gives up a delivery that was accepted, without another attempt.
func (r *Dispatcher) drop(d *delivery.Delivery, why audit.ErrorType) {
	r.Refuse(d, why)
	r.Store.Remove(d)
}

// serve deals with a delivery that was taken from the queue.
func (r *Dispatcher) serve(d *delivery.Delivery) {
	switch {
	case r.ctx.Err() != nil:
		r.queue.Stop()
		r.queue.Retry(d, 0) // back to what is left
	case r.disabled.Load():
		r.drop(d, audit.ErrorGone)
		r.queue.Done(d)
	default:
		r.attempt(d)
	}
}

// attempt makes one, and returns the delivery to the queue.
func (r *Dispatcher) attempt(d *delivery.Delivery) {
	now := r.current()
	if len(d.Parts) > now.Encoder.Group {
		// It was grouped for the format that the endpoint had until now; with this
		// one events would be left out. What is stored stays until each is
		// attempted; a start in between finds the group, and splits it again.
		r.queue.Split(d)
		return
	}
	body, err := now.Encoder.Encode(d.Events())
	if err != nil {
		r.drop(d, audit.ErrorConfig)
		r.queue.Done(d)
		return
	}
	res := now.chain.Send(r.ctx, send.NewAttempt(d, body))
	if res.Gone {
		r.queue.EndWaits() // what waits is given up now
		r.Logger.Error("receiver answered 410 Gone: nothing is sent to it until its configuration changes or gpuctl webhook enable is used", zap.String("receiver", r.Name))
	}
	if res.Next.IsZero() {
		r.queue.Done(d)
		return
	}
	r.queue.Retry(d, time.Until(res.Next))
	if r.disabled.Load() {
		// Another attempt was answered 410 before this delivery waited.
		r.queue.EndWaits()
	}
}
