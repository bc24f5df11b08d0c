// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package miglayout has what two receivers of one process know about MIG and the other needs.
// nvml reads which MIG instance a MIG-<uuid> is, which gpu_allocation has from the kubelet;
// gpu_allocation knows from the node's labels that the layout is about to be changed, for
// which nvml has to let go of the driver. Neither waits for the other, and each works where
// the other is not configured.
package miglayout

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/migprofile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// usable is for how many intervals a layout is used: what nvml no longer reads may have
// changed.
const usable = 3

// Instance is a compute instance of a MIG instance. Device plugins allocate these.
type Instance struct {
	UUID    string // MIG-<uuid>
	GPU     string // GPU-<uuid>
	GI, CI  int
	Profile string // 1g.10gb; "" where it is not known
}

// Layout is the MIG instances of the boards of this host. It is immutable. A nil Layout has
// none.
type Layout struct {
	at       time.Time
	interval time.Duration
	byUUID   map[string]Instance
}

// New is the layout as of a time, which is read once in interval. An instance without valid
// UUIDs, and those that have one UUID, are left out: which of them an allocated one is cannot
// be known.
func New(at time.Time, interval time.Duration, instances []Instance) *Layout {
	l := &Layout{at: at, interval: interval, byUUID: make(map[string]Instance, len(instances))}
	twice := map[string]bool{}
	for _, i := range instances {
		if !deviceid.IsMIG(i.UUID) || !deviceid.IsGPU(i.GPU) || i.GI < 0 || i.CI < 0 {
			continue
		}
		key := strings.ToLower(i.UUID)
		if _, ok := l.byUUID[key]; ok {
			twice[key] = true
		}
		l.byUUID[key] = i
	}
	for key := range twice {
		delete(l.byUUID, key)
	}
	return l
}

// Of is the layout that a scrape of nvml has read.
func Of(at time.Time, interval time.Duration, boards []nvmlproto.Board) *Layout {
	var all []Instance
	for i := range boards {
		b := &boards[i]
		if b.Return != 0 || b.Lost {
			continue
		}
		for _, gi := range b.Instances {
			_, profile := migprofile.Cut(gi.Name)
			for _, ci := range gi.Compute {
				all = append(all, Instance{UUID: ci.UUID, GPU: b.UUID, GI: gi.GI, CI: ci.CI, Profile: profile})
			}
		}
	}
	return New(at, interval, all)
}

// Resolve is the instance with a UUID, false where the layout does not have it.
func (l *Layout) Resolve(uuid string) (Instance, bool) {
	if l == nil {
		return Instance{}, false
	}
	i, ok := l.byUUID[strings.ToLower(uuid)]
	return i, ok
}

// HwID is the hw.id of the MIG instance that the compute instance is part of: compute
// instances of one have the same.
func (i *Instance) HwID() string { return deviceid.MIG(i.GPU, strconv.Itoa(i.GI)) }

var current atomic.Pointer[Layout]

// Publish makes l the layout of this process; nil once it is no longer known, as when the
// driver has reported a change.
func Publish(l *Layout) { current.Store(l) }

// Current is the layout, nil where none is known or the last one is older than three of its
// intervals.
func Current(now time.Time) *Layout {
	l := current.Load()
	if l == nil || now.Sub(l.at) > usable*l.interval {
		return nil
	}
	return l
}
