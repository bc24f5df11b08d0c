// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
)

// site is a node as the rules about devices see it.
type site struct {
	devices map[*device]struct{}
	seen    time.Duration     // when the last point about its MIG layout arrived
	at      pcommon.Timestamp // of that point; 0: there was none
	mig     bool              // its MIG layout is being changed
	nodeHealth
}

// sites are the nodes of the devices.
type sites map[subject.Node]*site

func (s sites) of(d *device) *site { return s[subject.Node{Cluster: d.ID.Cluster, Name: d.Facts.Node}] }

func (s sites) get(n subject.Node) *site {
	if s[n] == nil {
		s[n] = &site{devices: map[*device]struct{}{}}
	}
	return s[n]
}

// add puts the device on its node.
func (s sites) add(d *device) {
	s.get(subject.Node{Cluster: d.ID.Cluster, Name: d.Facts.Node}).devices[d] = struct{}{}
}

// remove takes the device from its node, which goes with its last device where nothing
// else is known of it.
func (s sites) remove(d *device) {
	at := s.of(d)
	if at == nil {
		return
	}
	delete(at.devices, d)
	if len(at.devices) == 0 && at.at == 0 && !at.used() {
		delete(s, subject.Node{Cluster: d.ID.Cluster, Name: d.Facts.Node})
	}
}

// relayout reports whether the MIG layout of the device's node is being changed.
func (s sites) relayout(d *device, now time.Duration) bool {
	at := s.of(d)
	return at != nil && at.relayout(now)
}

func (s *site) relayout(now time.Duration) bool { return s.mig && now-s.seen < condition.MaxGap }

// instances are the ids of the MIG instances of a GPU.
func (s sites) instances(d *device) (ids []string) {
	at := s.of(d)
	if at == nil {
		return nil
	}
	for o := range at.devices {
		if o.Facts.Parent == d.ID.ID {
			ids = append(ids, o.ID.ID)
		}
	}
	return ids
}

// partOf reports whether a part of the device is on the page of the time at.
func (s *site) partOf(d *device, at pcommon.Timestamp) bool {
	for o := range s.devices {
		if o.Facts.Parent == d.ID.ID && o.latest() == at {
			return true
		}
	}
	return false
}

// heldPage is what a page shows of an exporter that prints devices with an owner alone.
type heldPage struct {
	all    bool                      // every board on it has an owner
	left   map[pcommon.Timestamp]int // boards without an owner that left, by their newest page
	before bool                      // the exporter printed devices with an owner alone before
}

// held returns what the page of an exporter of the time at shows.
func (s *site) held(x subject.ExporterID, at pcommon.Timestamp) *heldPage {
	page := heldPage{left: map[pcommon.Timestamp]int{}}
	some, free := false, false
	for d := range s.devices {
		switch {
		case d.Facts.Parent != "":
		case d.latest() == at:
			some, free = true, free || d.owned != at
		case d.exporter != x:
		default:
			page.before = page.before || d.absence.withheld
			if !d.hadOwner() {
				page.left[d.latest()]++
			}
		}
	}
	page.all = some && !free
	return &page
}

// divided reports whether the GPU has MIG instances now.
func (s sites) divided(d *device) bool {
	at := s.of(d)
	if at == nil || d.Facts.Parent != "" {
		return false
	}
	for o := range at.devices {
		if o.Facts.Parent == d.ID.ID && o.latest() >= d.at {
			return true
		}
	}
	return false
}

// successor returns the board that replaced one which is absent from their exporter's page
// of the time at; nil if no board did. It was first seen after the other was last seen: an
// index or address may change at a boot, and then the next board has it.
func (s *site) successor(d *device, at pcommon.Timestamp) *device {
	for o := range s.devices {
		if o.first > d.seen && o.latest() == at && samePlace(d, o) {
			return o
		}
	}
	return nil
}

// samePlace reports whether two boards of a node have the same PCI address, or the same
// index where not both have an address. An instance has none of its own.
func samePlace(d, o *device) bool {
	a, b := &d.Facts, &o.Facts
	switch {
	case a.Parent != "" || b.Parent != "" || placeOf(d) != placeOf(o):
		return false
	case a.PCI != "" && b.PCI != "":
		return deviceid.PCIAddress(a.PCI) == deviceid.PCIAddress(b.PCI)
	}
	return a.Index >= 0 && a.Index == b.Index
}

// addresses find boards by their PCI addresses, as lines of the kernel log have them.
type addresses struct {
	boards map[string][]*device
	nodes  map[place]struct{}
	made   time.Duration // when they were collected; 0: never
}

// place is a node, or a host where that is not known.
type place struct{ cluster, name string }

func placeOf(d *device) place { return place{d.ID.Cluster, cmp.Or(d.Facts.Node, d.Facts.Host)} }

// find returns the board with that address on a node or host; nil where it is not known, or
// several nodes of that name have one. Without a node it is that of the only one. Of boards
// that followed each other in one place it is the one that was seen last.
func (a *addresses) find(all map[subject.DeviceID]*device, pci, node string, now time.Duration) (found *device) {
	if a.made == 0 || now-a.made > time.Second {
		a.made, a.boards, a.nodes = now, map[string][]*device{}, map[place]struct{}{}
		for _, d := range all {
			if d.Facts.Parent == "" && d.Facts.PCI != "" {
				address, _, _ := strings.Cut(deviceid.PCIAddress(d.Facts.PCI), ".")
				a.boards[address] = append(a.boards[address], d)
				a.nodes[placeOf(d)] = struct{}{}
			}
		}
	}
	if node == "" && len(a.nodes) > 1 {
		return nil
	}
	for _, d := range a.boards[pci] {
		if node != "" && node != d.Facts.Node && node != d.Facts.Host {
			continue
		}
		if found != nil && placeOf(d) != placeOf(found) {
			return nil
		}
		if found == nil || d.seen > found.seen {
			found = d
		}
	}
	return found
}
