// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ask // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// moment is what several answers share: their time, and what the store returned
// then. A question that one of them has asked is not asked again, so ten viewers
// of a large fleet cost little more than one. Every response has the moment as the
// time of its evaluation, so none claims to be newer than it is.
type moment struct {
	now time.Time

	mu      sync.Mutex
	answers map[question]*answer
}

type question struct {
	query string
	at    time.Time
}

// answer is one of the store's; value and err are there when done is closed.
type answer struct {
	done   chan struct{}
	value  model.Vector
	err    error
	cancel context.CancelFunc
	asking int // how many wait
}

// ask returns the store's response, or the shared one, to a query. The response is shared
// and must not be changed. What fails is queried again by later callers. A query
// ends when no caller waits for it any more.
func (m *moment) ask(ctx context.Context, q question, ask func(context.Context) (model.Vector, error)) (model.Vector, error) {
	switch {
	case m.answers == nil:
		return ask(ctx) // not shared
	case ctx.Err() != nil:
		return nil, canceled()
	}
	m.mu.Lock()
	a := m.answers[q]
	if a == nil {
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		a = &answer{done: make(chan struct{}), cancel: cancel}
		m.answers[q] = a
		go func() {
			defer cancel()
			a.value, a.err = ask(own)
			if a.err != nil {
				m.forget(q, a)
			}
			close(a.done)
		}()
	}
	a.asking++
	m.mu.Unlock()
	defer m.leave(q, a)
	select {
	case <-a.done:
		return a.value, a.err
	case <-ctx.Done():
		return nil, canceled()
	}
}

func canceled() error { return store.Errorf(store.Canceled, "the query was canceled") }

// leave ends a query without callers.
func (m *moment) leave(q question, a *answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a.asking--
	if a.asking > 0 {
		return
	}
	select {
	case <-a.done:
	default:
		m.remove(q, a)
		a.cancel()
	}
}

func (m *moment) forget(q question, a *answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(q, a)
}

func (m *moment) remove(q question, a *answer) {
	if m.answers[q] == a {
		delete(m.answers, q)
	}
}
