// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dispatch // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/dispatch"

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/spool"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// DrainTime is how long an endpoint that ends goes on delivering what is queued. It
// is well within the 30 s that Kubernetes grants.
const DrainTime = 10 * time.Second

// Set holds the exporter's endpoints.
type Set struct {
	shared  *Shared
	leaving sync.WaitGroup // endpoints that were removed

	mu          sync.RWMutex
	dispatchers []*Dispatcher // sorted by name; replaced, never changed
	started     bool
	closed      bool
}

// NewSet returns an empty set.
func NewSet(s *Shared) *Set { return &Set{shared: s} }

// All returns the endpoints of now, sorted by name.
func (s *Set) All() []*Dispatcher {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.dispatchers
}

// Find returns the endpoint of that name; nil if there is none.
func (s *Set) Find(name string) *Dispatcher {
	for _, r := range s.All() {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// Apply makes these the endpoints. Those that are new start. Those with another
// configuration than before keep their queue. Those without a change are not
// touched: their queue, their 410 and their conditions stay. Those that are
// missing deliver what is queued for up to 10 s after apply has returned; what is
// left is given up (config), and waiting retries get their last attempt. It returns
// those that were disabled until now.
//
// The configurations are checked, and have different names.
func (s *Set) Apply(endpoints []*endpoint.Endpoint) (enabled []*Dispatcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	old := map[string]*Dispatcher{}
	for _, r := range s.dispatchers {
		old[r.Name] = r
	}
	receivers := make([]*Dispatcher, 0, len(endpoints))
	for _, ep := range endpoints {
		r := old[ep.Name]
		delete(old, ep.Name)
		if r == nil {
			r = newDispatcher(ep, s.shared)
			s.warnOfPlainText(ep)
		} else if r.Endpoint().Fingerprint != ep.Fingerprint {
			if r.reconfigure(ep) {
				enabled = append(enabled, r)
			}
			s.warnOfPlainText(ep)
		}
		if s.started {
			r.start()
		}
		receivers = append(receivers, r)
	}
	slices.SortFunc(receivers, func(a, b *Dispatcher) int { return cmp.Compare(a.Name, b.Name) })
	s.dispatchers = receivers
	for _, r := range old {
		s.remove(r)
	}
	return enabled
}

// warnOfPlainText warns of a secret that travels unencrypted, without showing it.
func (s *Set) warnOfPlainText(ep *endpoint.Endpoint) {
	if secret := ep.PlainSecret(ep.Encoder.Secrets); secret != "" {
		s.shared.Logger.Warn("the receiver's url is http://, and a secret goes there unencrypted with each event; use https://, or a url without one",
			zap.String("receiver", ep.Name), zap.String("secret", secret))
	}
}

// remove ends an endpoint in the background.
func (s *Set) remove(r *Dispatcher) {
	r.Store.SetGone(r.Name, "", false)
	r.Store.SetLimit(r.Name, spool.Limit{})
	r.close(nil, audit.ErrorConfig, time.Now().Add(DrainTime))
	s.leaving.Go(func() {
		hurry := time.AfterFunc(DrainTime, r.endLife)
		defer hurry.Stop()
		r.wait()
	})
}

// Start starts the workers.
func (s *Set) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = true
	for _, r := range s.dispatchers {
		r.start()
	}
}

// End closes the set: nothing more is taken, and no configuration applied. It
// reports false if the set is closed already.
func (s *Set) End() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.closed
	s.closed = true
	return first
}

// Drain delivers what is queued until the deadline, or until the lifetime of the
// endpoints ends. What was not delivered by then stays stored, or has its audit
// record.
func (s *Set) Drain(deadline time.Time) {
	receivers := s.All()
	for _, r := range receivers {
		r.close(s.shared.Store.Holds, audit.ErrorShutdown, deadline)
	}
	for _, r := range receivers {
		r.wait()
	}
	s.leaving.Wait()
}
