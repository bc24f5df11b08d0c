// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package embedded // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/embedded"

import (
	"context"
	"sync"

	"github.com/otelcol-gpu/otelcol-gpu/internal/reserved"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

const (
	// maxFamilies bounds the metadata.
	maxFamilies    = 10_000
	maxFamilyBytes = 4 << 10
)

// metadata is the descriptions of metric families.
type metadata struct {
	mu       sync.RWMutex
	families map[string]store.Metadata
}

// Describe keeps metadata. It is not written to disk: it comes with every batch.
func (f *metadata) Describe(families map[string]store.Metadata) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, m := range families {
		if len(name)+len(m.Type)+len(m.Unit)+len(m.Help) > maxFamilyBytes {
			continue
		}
		room := maxFamilies
		if !reserved.ForApplications(name) {
			room += maxFamilies // those of applications take no room from them
		}
		if _, known := f.families[name]; known || len(f.families) < room {
			f.families[name] = m
		}
	}
}

// Metadata returns the metadata of metric families.
func (f *metadata) Metadata(_ context.Context, metric string, limit int) (map[string][]store.Metadata, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	found := map[string][]store.Metadata{}
	if metric != "" {
		if m, ok := f.families[metric]; ok {
			found[metric] = []store.Metadata{m}
		}
		return found, nil
	}
	for name, m := range f.families {
		if limit > 0 && len(found) == limit {
			break
		}
		found[name] = []store.Metadata{m}
	}
	return found, nil
}
