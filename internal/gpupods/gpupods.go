// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package gpupods follows the pods of a Kubernetes cluster that ask for accelerators.
//
// Components that follow the same pods of the same API share one watch: a list and a
// watch of all pods of a cluster are the most that this product asks of an API server.
package gpupods // import "github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8swatch"
	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
)

// Config is what to follow. Components with equal ones share a watch.
type Config struct {
	Client k8sclient.Config
	Keys   Keys
}

// key is the same for equal configurations.
func (c *Config) key() string {
	sorted := func(names []string) []string { return slices.Sorted(slices.Values(names)) }
	k := &c.Keys
	return fmt.Sprintf("%q %q %q %q %t %q %q", c.Client.AuthType, c.Client.Context,
		sorted(k.Namespaces), sorted(k.ResourceNames), k.DRA.Enabled, sorted(k.DRA.Drivers), sorted(k.DRA.DeviceClasses))
}

// Need is what a member needs beside the pods themselves. What none needs is not kept.
type Need struct {
	// MaxPods bounds the pods kept of each namespace followed, those of Others
	// included. The largest of all members holds.
	MaxPods int
	// Scheduling is whether pods have their Scheduling. Pods that have devices while
	// they start alone, and those that reserve boards for others, are there too then.
	Scheduling bool
	// Others is whether a snapshot has what the other pods of nodes ask for. Pods have
	// their Scheduling then too.
	Others bool
	// QueueLabels are labels of pods that name their queue, after those that are known.
	QueueLabels []string
}

// Settings are what a member brings.
type Settings struct {
	Need      Need
	Telemetry Telemetry
	Logger    *zap.Logger // that of the first member is used
	UserAgent string      // likewise
}

// Telemetry counts what the watch does, for each member. It is safe for concurrent use.
type Telemetry interface {
	// Asked counts a request about a kind of object by how it ended.
	Asked(ctx context.Context, object, result string)
	// Refused counts pods, and claims of pods, that MaxPods left out.
	Refused(ctx context.Context, pods int)
}

// Member is a component that follows pods. Anyone who reads gets what is known and never
// waits. The methods of a nil Member do nothing.
type Member struct {
	of      *watches
	watch   *follower
	set     Settings
	started bool
	changed chan struct{} // has room for one: there is another snapshot
}

// watches are those that members can still join.
type watches struct {
	mu  sync.Mutex
	all map[string]*follower
}

var process = watches{all: map[string]*follower{}}

// Join makes a component a member of the watch of cfg. It is called when the component
// is created, and asks the API nothing: the first Start then knows what all members need.
func Join(cfg Config, set Settings) (*Member, error) { return process.join(cfg, set) }

func (w *watches) join(cfg Config, set Settings) (*Member, error) {
	resources, err := resourcenames.New(cfg.Keys.ResourceNames)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.all[cfg.key()]
	if f == nil {
		f = &follower{cfg: cfg, resources: resources, logger: set.Logger}
		w.all[cfg.key()] = f
	}
	m := &Member{of: w, watch: f, set: set, changed: make(chan struct{}, 1)}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members = append(f.members, m)
	return m, nil
}

// Start begins to follow the API where no member did, and does not wait for it.
func (m *Member) Start() error {
	client, err := m.watch.cfg.Client.REST(m.set.UserAgent)
	if err != nil {
		return err
	}
	return m.start(client)
}

func (m *Member) start(client *rest.Config) error {
	f := m.watch
	m.of.mu.Lock()
	if m.of.all[f.cfg.key()] == f {
		delete(m.of.all, f.cfg.key()) // it is too late to join
	}
	m.of.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.started == 0 {
		if err := f.open(client); err != nil {
			return fmt.Errorf("the Kubernetes API cannot be followed: %w", err)
		}
	}
	f.started++
	m.started = true
	if f.built.Load() != nil {
		ring(m.changed)
	}
	return nil
}

// Shutdown leaves the watch, which ends with its last member, and waits for that.
func (m *Member) Shutdown() {
	if m == nil {
		return
	}
	f := m.watch
	f.mu.Lock()
	f.members = slices.DeleteFunc(f.members, func(is *Member) bool { return is == m })
	last := false
	if m.started {
		m.started = false
		f.started--
		last = f.started == 0
	}
	f.mu.Unlock()
	if last {
		f.close()
	}
}

// Snapshot is what the API has, nil until all of it is known. It is as it was when the API
// no longer answers.
func (m *Member) Snapshot() *Snapshot { return m.watch.built.Load() }

// Changed is where there is something to read when Snapshot is another.
func (m *Member) Changed() <-chan struct{} {
	if m == nil {
		return nil
	}
	return m.changed
}

// AsOf is the time at which the pods were last as the API has them, which is now while it
// is watched; false where they were never listed.
func (m *Member) AsOf(now time.Time) (time.Time, bool) {
	m.watch.mu.Lock()
	defer m.watch.mu.Unlock()
	return asOf(m.watch.pods, now)
}

// ClaimsAsOf is the time at which the ResourceClaims were last as the API has them, which is now
// while they are watched; false where they were never listed: they are not read, are not served, or
// may not be listed.
func (m *Member) ClaimsAsOf(now time.Time) (time.Time, bool) {
	m.watch.mu.Lock()
	defer m.watch.mu.Unlock()
	return asOf(m.watch.claims, now)
}

// ClaimsServed reports whether ResourceClaims are read, and the API serves them as far as it is
// known.
func (m *Member) ClaimsServed() bool {
	m.watch.mu.Lock()
	defer m.watch.mu.Unlock()
	return slices.ContainsFunc(m.watch.claims, (*k8swatch.Store[keptClaim]).Served)
}
