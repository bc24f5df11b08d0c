// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
)

// Truth is who has what on a node, as its kubelet decided.
type Truth struct {
	// Owners by hw.id, as telemetry names devices: GPU-<uuid>, for a MIG
	// instance GPU-<uuid>/<GPU instance id>, for a replica <device>::<n>. A device
	// that is not there is free.
	Holders map[string][]kubelet.Holder
	// Unserved are pods that did not get what they ask for, and why. They are
	// tried again at every change.
	Unserved map[kubelet.Pod]error
}

// Change is a device that changed hands.
type Change struct {
	Time    time.Time
	HWID    string
	Holders []kubelet.Holder // from then on; none: free
}

// decisions are what the kubelet of a node decided. Its methods may be called at the
// same time.
type decisions struct {
	mu        sync.Mutex // guards what follows
	failures  map[kubelet.Pod]error
	holders   map[string][]kubelet.Holder // by hw.id, as the history has it last
	history   []Change
	exportErr error
}

// Truth is who has what now.
func (d *decisions) Truth() Truth {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Truth{Holders: maps.Clone(d.holders), Unserved: maps.Clone(d.failures)}
}

// History lists every change since the start, oldest first.
func (d *decisions) History() []Change {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.history)
}

// Err is why the exporter could not follow the kubelet's last decision.
func (d *decisions) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.exportErr
}

// record keeps who has what at a time, by hw.id, which pods did not get what they ask
// for, and why the exporter does not show it.
func (d *decisions) record(now time.Time, holders map[string][]kubelet.Holder, failures map[kubelet.Pod]error, exportErr error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures, d.exportErr = failures, exportErr
	for hwID, h := range holders {
		if !slices.Equal(h, d.holders[hwID]) {
			d.history = append(d.history, Change{Time: now, HWID: hwID, Holders: h})
		}
	}
	for hwID := range d.holders {
		if len(holders[hwID]) == 0 {
			d.history = append(d.history, Change{Time: now, HWID: hwID})
		}
	}
	d.holders = holders
}
