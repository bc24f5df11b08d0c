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
	Owners map[string][]kubelet.Owner
	// Unserved are pods that did not get what they ask for, and why. They are
	// tried again at every change.
	Unserved map[kubelet.Pod]error
}

// Change is a device that changed hands.
type Change struct {
	Time   time.Time
	HWID   string
	Owners []kubelet.Owner // from then on; none: free
}

// decisions are what the kubelet of a node decided. Its methods may be called at the
// same time.
type decisions struct {
	mu        sync.Mutex // guards what follows
	failures  map[kubelet.Pod]error
	owners    map[string][]kubelet.Owner // by hw.id, as the history has it last
	history   []Change
	exportErr error
}

// Truth is who has what now.
func (d *decisions) Truth() Truth {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Truth{Owners: maps.Clone(d.owners), Unserved: maps.Clone(d.failures)}
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
func (d *decisions) record(now time.Time, owners map[string][]kubelet.Owner, failures map[kubelet.Pod]error, exportErr error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures, d.exportErr = failures, exportErr
	for hwID, h := range owners {
		if !slices.Equal(h, d.owners[hwID]) {
			d.history = append(d.history, Change{Time: now, HWID: hwID, Owners: h})
		}
	}
	for hwID := range d.owners {
		if len(owners[hwID]) == 0 {
			d.history = append(d.history, Change{Time: now, HWID: hwID})
		}
	}
	d.owners = owners
}
