// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package sharedcomponent is for connectors that have several kinds of input or output. The
// Collector makes one component for each of them, of one configuration, and they share what
// does the work.
package sharedcomponent // import "github.com/otelcol-gpu/otelcol-gpu/internal/sharedcomponent"

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
)

// Map has what is shared, by configuration. The zero value is empty.
type Map[C component.Component] struct {
	mu  sync.Mutex
	all map[component.Config]*Shared[C]
}

// Shared is a component that others share. It is started once and shut down once.
type Shared[C component.Component] struct {
	Component C

	started, stopped sync.Once
	startErr         error
	forget           func()
}

// Get returns the component of a configuration, and creates it where it does not exist.
func (m *Map[C]) Get(cfg component.Config, create func() (C, error)) (*Shared[C], error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.all[cfg]; s != nil {
		return s, nil
	}
	c, err := create()
	if err != nil {
		return nil, err
	}
	s := &Shared[C]{Component: c, forget: func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.all, cfg)
	}}
	if m.all == nil {
		m.all = map[component.Config]*Shared[C]{}
	}
	m.all[cfg] = s
	return s, nil
}

// Start starts the component with the first call. All calls return its error.
func (s *Shared[C]) Start(ctx context.Context, host component.Host) error {
	s.started.Do(func() { s.startErr = s.Component.Start(ctx, host) })
	return s.startErr
}

// Shutdown shuts the component down with the first call, which returns its error. Get creates
// another one from then on.
func (s *Shared[C]) Shutdown(ctx context.Context) (err error) {
	s.stopped.Do(func() {
		s.forget()
		err = s.Component.Shutdown(ctx)
	})
	return err
}
