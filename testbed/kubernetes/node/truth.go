// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

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

// Truth is who has what now.
func (n *Node) Truth() Truth {
	n.mu.Lock()
	defer n.mu.Unlock()
	return Truth{Holders: maps.Clone(n.holders), Unserved: maps.Clone(n.failures)}
}

// History lists every change since the start, oldest first.
func (n *Node) History() []Change {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.history)
}

// Err is why the exporter could not follow the kubelet's last decision.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.exportErr
}

// record notes what the kubelet has decided, and lets the exporter show it.
func (n *Node) record(pods []*corev1.Pod, failures map[kubelet.Pod]error) {
	decided := n.kubelet.Holders()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failures = failures
	n.exportErr = n.export(pods, decided)
	now := time.Now()
	holders := map[string][]kubelet.Holder{}
	for id, h := range decided {
		hwID := n.hwID(id)
		holders[hwID] = h
		if !slices.Equal(h, n.holders[hwID]) {
			n.history = append(n.history, Change{Time: now, HWID: hwID, Holders: h})
		}
	}
	for hwID := range n.holders {
		if len(holders[hwID]) == 0 {
			n.history = append(n.history, Change{Time: now, HWID: hwID})
		}
	}
	n.holders = holders
}

// hwID is what telemetry calls a device that the kubelet calls id.
func (n *Node) hwID(id string) string {
	device, ok := n.find(id)
	if !ok {
		return id
	}
	if _, replica, shared := strings.Cut(id, "::"); shared {
		return device.HWID + "::" + replica
	}
	return device.HWID
}

// find looks a device up by the kubelet's id; of a replica it is the device that
// is shared.
func (n *Node) find(id string) (Device, bool) {
	base, _, _ := strings.Cut(id, "::")
	for _, d := range n.devices {
		if base == d.kubeletID() || base == kubelet.DRAID(Driver, n.opts.Name, d.draName()) {
			return d, true
		}
	}
	return Device{}, false
}
