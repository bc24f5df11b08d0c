// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

var diskID = component.MustNewIDWithName("file_storage", "webhook")

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// disk is a storage extension that outlives a restart, and its client.
type disk struct {
	component.StartFunc
	component.ShutdownFunc
	mu     sync.Mutex
	values map[string][]byte
	err    error                                      // of every operation
	open   []error                                    // of opening, one after the other
	hang   chan struct{}                              // operations wait for it
	before func(ops []*storage.Operation) (lost bool) // the process is killed before the transaction, or
	after  func(ops []*storage.Operation)             // after it
	dead   *atomic.Bool                               // the process is killed: nothing more is written
	names  []string                                   // of the clients that were asked for
}

var _ storage.Extension = (*disk)(nil)

func newDisk() *disk { return &disk{values: map[string][]byte{}} }

// snapshot is what the disk holds. The caller holds its lock, or there is no other user.
func (d *disk) snapshot() map[string][]byte { return maps.Clone(d.values) }

func (d *disk) locked(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// copied is what a process that starts now finds.
func (d *disk) copied() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &disk{values: d.snapshot()}
}

func (d *disk) GetClient(_ context.Context, _ component.Kind, _ component.ID, name string) (storage.Client, error) {
	d.names = append(d.names, name)
	if len(d.open) == 0 {
		return d, nil
	}
	err := d.open[0]
	d.open = d.open[1:]
	return d, err
}

func (d *disk) Batch(_ context.Context, ops ...*storage.Operation) error {
	d.mu.Lock()
	hang := d.hang
	d.mu.Unlock()
	if hang != nil {
		<-hang
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return d.err
	}
	if d.dead != nil && d.dead.Load() {
		return nil
	}
	if d.before != nil && d.before(ops) {
		return nil
	}
	for _, op := range ops {
		switch op.Type {
		case storage.Get:
			op.Value = d.values[op.Key]
		case storage.Set:
			d.values[op.Key] = op.Value
		case storage.Delete:
			delete(d.values, op.Key)
		}
	}
	if d.after != nil {
		d.after(ops)
	}
	return nil
}

func (d *disk) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

// keys are those with the prefix.
func (d *disk) keys(prefix string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var keys []string
	for key := range d.values {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (*disk) Get(context.Context, string) ([]byte, error) { return nil, errors.New("not used") }
func (*disk) Set(context.Context, string, []byte) error   { return errors.New("not used") }
func (*disk) Delete(context.Context, string) error        { return errors.New("not used") }
func (*disk) Close(context.Context) error                 { return nil }

func onDisk(cfg *Config, _ *environment) { cfg.Storage = &diskID }

func retrying(cfg *Config, _ *environment) { cfg.Retry.Enabled = true }

// boot starts an exporter on the disk.
func (d *disk) boot(t *testing.T, receivers map[string]endpoint.Config, change ...func(*Config, *environment)) *harness {
	t.Helper()
	h := newHarness(t, receivers, append(change, onDisk)...)
	d.start(t, h)
	return h
}

func (d *disk) start(t *testing.T, h *harness) {
	t.Helper()
	require.NoError(t, h.Start(context.Background(), host{diskID: d}))
}

// file is an audit file that outlives a restart.
type file struct {
	mu      sync.Mutex
	records []audit.Record
	dead    *atomic.Bool // the process is killed: nothing more is written
	before  func(*audit.Record)
	after   func(*audit.Record)
}

func (f *file) Append(r *audit.Record) (uint64, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before != nil {
		f.before(r)
	}
	if f.dead != nil && f.dead.Load() {
		return 0, false
	}
	f.records = append(f.records, *r)
	if f.after != nil {
		f.after(r)
	}
	return uint64(len(f.records)), true
}

func (f *file) copied() []audit.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.records)
}

func (f *file) Find(ids []string) map[string]time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := map[string]time.Time{}
	for _, r := range f.records {
		if slices.Contains(ids, r.ID) {
			known[r.ID] = r.NextAttempt
		}
	}
	return known
}

func (*file) Close() error { return nil }

func (*file) Stats() audit.Stats { return audit.Stats{} }

func (*file) SetAside() error { return nil }

// audits lets the exporter write into the file.
func (f *file) audits(_ *Config, env *environment) { env.auditLog = f }
