// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
)

// apply makes these the exporter's receivers. Those that are new start. Those
// whose configuration has changed go on with what they have queued, by the new
// one. The others are not touched: their queue, their 410 and what they were told
// stay. Those that are gone get what is queued for up to 10 s, while apply has
// returned; what is left is given up (config). Waiting retries get their last
// attempt then.
//
// The targets are checked ones, of different names.
func (e *webhookExporter) apply(_ context.Context, targets []*target) {
	for _, r := range e.replace(targets) {
		e.recordEnabling(r)
	}
}

// replace returns those of the new receivers that were disabled until now.
func (e *webhookExporter) replace(targets []*target) (enabled []*receiver) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return nil
	}
	old := map[string]*receiver{}
	for _, r := range e.receivers {
		old[r.name] = r
	}
	receivers := make([]*receiver, 0, len(targets))
	for _, t := range targets {
		if f := e.trail.fingerprint(t); f != t.urlFingerprint {
			t.urlFingerprint = f // it is new: nobody reads it yet
		}
		r := old[t.name]
		delete(old, t.name)
		if r == nil {
			r = e.newReceiver(t)
			e.warnOfPlainText(t)
		} else if now, _ := r.current(); now.fingerprint != t.fingerprint {
			if r.reconfigure(t, e.newTransport(t)) {
				enabled = append(enabled, r)
			}
			e.warnOfPlainText(t)
		}
		if e.started {
			r.start()
		}
		receivers = append(receivers, r)
	}
	slices.SortFunc(receivers, func(a, b *receiver) int { return cmp.Compare(a.name, b.name) })
	e.receivers = receivers
	for _, r := range old {
		e.remove(r)
	}
	return enabled
}

// warnOfPlainText warns of a secret that travels unencrypted, without showing it.
func (e *webhookExporter) warnOfPlainText(t *target) {
	if secret := t.plainSecret(); secret != "" {
		e.logger.Warn("the receiver's url is http://, and a secret goes there unencrypted with each event; use https://, or a url without one",
			zap.String("receiver", t.name), zap.String("secret", secret))
	}
}

// recordEnabling hands the sinks a record of a receiver that answered 410 once
// and gets deliveries again.
func (e *webhookExporter) recordEnabling(r *receiver) *audit.Record {
	t, _ := r.current()
	rec := &audit.Record{
		ID: eventrecord.NewID(), Time: time.Now().UTC(), Trigger: audit.TriggerEnable, Outcome: audit.Succeeded,
		Receiver: r.name, URLScheme: t.url.Scheme, URLHost: t.host, URLPort: t.port, URLFingerprint: t.urlFingerprint, Format: t.encoder.Name,
	}
	for _, sink := range e.sinks {
		sink.Write(rec)
	}
	return rec
}

func (e *webhookExporter) newTransport(t *target) roundTripper {
	return newTransport(t, e.guard, e.env)
}

func (e *webhookExporter) newReceiver(t *target) *receiver {
	r := &receiver{
		name:      t.name,
		queue:     newQueue(t, e.config.GroupWait),
		retry:     e.config.Retry,
		store:     e.store,
		report:    e.report,
		logger:    e.logger,
		userAgent: e.userAgent,
		target:    t,
		transport: e.newTransport(t),
	}
	r.lifetime, r.endLife = context.WithCancel(e.lifetime)
	context.AfterFunc(r.lifetime, r.queue.abandon)
	return r
}

// remove ends a receiver in the background.
func (e *webhookExporter) remove(r *receiver) {
	r.store.setGone(r.name, "", false)
	r.close(nil, audit.ErrorConfig, time.Now().Add(drainTime))
	e.leaving.Go(func() {
		hurry := time.AfterFunc(drainTime, r.endLife)
		defer hurry.Stop()
		r.wait()
	})
}
