// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package disk is a storage extension in memory that outlives the components that are
// killed on it.
package disk

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// ID is the id of the extension.
var ID = component.MustNewIDWithName("file_storage", "state")

// Disk outlives a process.
type Disk struct {
	mu     sync.Mutex
	values map[string][]byte
}

// New returns an empty disk.
func New() *Disk { return &Disk{values: map[string][]byte{}} }

// Host has the disk as its storage extension, for a process that writes while it is alive.
func (d *Disk) Host(alive *atomic.Bool) component.Host {
	return host{ID: &opened{Disk: d, alive: alive}}
}

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// opened is the disk as a process has it.
type opened struct {
	component.StartFunc
	component.ShutdownFunc
	*Disk
	alive *atomic.Bool
}

var _ storage.Extension = (*opened)(nil)

func (o *opened) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return o, nil
}

func (o *opened) Get(_ context.Context, key string) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.values[key], nil
}

func (o *opened) Set(_ context.Context, key string, value []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.alive.Load() {
		o.values[key] = value
	}
	return nil
}

func (o *opened) Delete(_ context.Context, key string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.alive.Load() {
		delete(o.values, key)
	}
	return nil
}

func (o *opened) Batch(ctx context.Context, ops ...*storage.Operation) (err error) {
	for _, op := range ops {
		switch op.Type {
		case storage.Get:
			op.Value, _ = o.Get(ctx, op.Key)
		case storage.Set:
			err = errors.Join(err, o.Set(ctx, op.Key, op.Value))
		case storage.Delete:
			err = errors.Join(err, o.Delete(ctx, op.Key))
		}
	}
	return err
}

func (*opened) Close(context.Context) error { return nil }
