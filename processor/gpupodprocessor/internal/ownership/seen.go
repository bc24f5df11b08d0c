// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
)

// Device is a device as its telemetry describes it; what is not known is empty.
type Device struct {
	ID              string // hw.id
	Node            Node
	Index, Instance string // on the node; of the MIG instance on its GPU
	Parent, Profile string // of a MIG instance
	MIGUUID         string
	Model           string      // hw.model
	Label           owner.Owner // that the exporter's labels name
}

// sightings are the devices of telemetry. Reading takes no lock; what changes them is
// called with the lock of the Memory held.
type sightings struct {
	index[*sighting]
	maxAge time.Duration
	limit  int
	count  int
	byNode map[string]map[string]*sighting // by the node's name and hw.id
}

// sighting is a device of which telemetry arrived.
type sighting struct {
	Device
	last atomic.Int64
	// When telemetry of its MIG instances arrived, and of its replicas from a
	// component upstream that made them.
	lastChild, lastReplica atomic.Int64
}

func (s *sighting) newest() time.Time {
	return time.Unix(0, max(s.last.Load(), s.lastChild.Load(), s.lastReplica.Load()))
}

// fresh reports whether something arrived, and not too long ago.
func (x *sightings) fresh(last *atomic.Int64, now time.Time) bool {
	at := last.Load()
	return at != 0 && now.UnixNano()-at <= int64(x.maxAge)
}

// add remembers a device that is new, or not what it was; nil if there is no room.
func (x *sightings) add(d *Device) *sighting {
	s := &sighting{Device: Device{
		ID:    strings.Clone(d.ID),
		Node:  d.Node.clone(),
		Index: strings.Clone(d.Index), Instance: strings.Clone(d.Instance),
		Parent: strings.Clone(d.Parent), Profile: strings.Clone(d.Profile), MIGUUID: strings.Clone(d.MIGUUID),
		Model: strings.Clone(d.Model),
		Label: d.Label.Clone(),
	}}
	switch old := x.get(s.ID); {
	case old != nil:
		s.lastChild.Store(old.lastChild.Load())
		s.lastReplica.Store(old.lastReplica.Load())
		x.leaveNode(old)
	case x.count >= x.limit:
		return nil
	default:
		x.count++
	}
	x.update([]string{s.ID}, func(string, *sighting) (*sighting, bool) { return s, true })
	of := x.byNode[s.Node.Name]
	if of == nil {
		of = map[string]*sighting{}
		x.byNode[s.Node.Name] = of
	}
	of[s.ID] = s
	return s
}

func (x *sightings) leaveNode(s *sighting) {
	of := x.byNode[s.Node.Name]
	delete(of, s.ID)
	if len(of) == 0 {
		delete(x.byNode, s.Node.Name)
	}
}

func (x *sightings) sweep(now time.Time) {
	var silent []string
	x.each(func(id string, s *sighting) {
		if now.Sub(s.newest()) > MaxSilence {
			silent = append(silent, id)
			x.leaveNode(s)
		}
	})
	x.count -= len(silent)
	x.update(silent, func(string, *sighting) (*sighting, bool) { return nil, false })
}

// See takes note of a device in telemetry. It is cheap for one that is known; for a
// new one, or one that changed, the allocations of its node are joined again. It
// reports whether there was room for it.
func (m *Memory) See(d *Device, now time.Time) bool {
	at := now.UnixNano()
	device, replica := deviceid.CutReplica(d.ID)
	if replica != "" {
		return m.touch(device, func(s *sighting) { s.lastReplica.Store(at) })
	}
	if s := m.seen.get(d.ID); s != nil && s.Device == *d {
		s.last.Store(at)
	} else if !m.seeNew(d, now) {
		return false
	}
	if parent := deviceid.Parent(d.ID); parent != "" {
		return m.touch(parent, func(s *sighting) { s.lastChild.Store(at) })
	}
	return true
}

// ReplicasSeen reports whether a component upstream makes replicas of the device.
func (m *Memory) ReplicasSeen(id string, now time.Time) bool {
	s := m.seen.get(id)
	return s != nil && m.seen.fresh(&s.lastReplica, now)
}

func (m *Memory) touch(id string, mark func(*sighting)) bool {
	s := m.seen.get(id)
	if s == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		if s = m.seen.get(id); s == nil {
			if s = m.seen.add(&Device{ID: id}); s == nil {
				return false
			}
		}
	}
	mark(s)
	return true
}

// seeNew remembers a device that is new, or not what it was.
func (m *Memory) seeNew(d *Device, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.seen.get(d.ID)
	s := m.seen.add(d)
	if s == nil {
		return false
	}
	s.last.Store(now.UnixNano())
	m.rejoin(s.Node, now)
	if old != nil && old.Node != s.Node {
		m.rejoin(old.Node, now)
	}
	return true
}

// rejoin joins the allocations of a node again, or those of all nodes if it is
// not known which one a device is on.
func (m *Memory) rejoin(of Node, now time.Time) {
	for n := range m.unresolved {
		if of.Name == "" || of.may(n.key) {
			m.publish(n, now)
		}
	}
}
