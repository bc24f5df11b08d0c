// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
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
	Minor           string // of /dev/nvidia<N>, which only the driver's library has
	Parent, Profile string // of a MIG instance
	MIGUUID         string
	Model           string      // hw.model
	Label           owner.Owner // that the exporter's labels name; of a job only the id is known
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

// sighting is a device of which telemetry arrived, as all its sources describe it.
type sighting struct {
	Device
	last atomic.Int64
	by   [sources]*description // nil: it does not describe the device
	// When telemetry of its MIG instances arrived, and of its replicas from a
	// component upstream that made them.
	lastChild, lastReplica atomic.Int64
}

func (s *sighting) newest() time.Time {
	return time.Unix(0, max(s.last.Load(), s.lastChild.Load(), s.lastReplica.Load()))
}

// sources are where telemetry of one device can come from at a time: an exporter, whose
// labels may name owners, and the driver's library. What they know of it differs.
const (
	byExporter = iota
	byDriver
	sources
)

// description is how one source describes a device.
type description struct {
	Device
	last atomic.Int64
}

func (d *Device) source() int {
	if d.Minor != "" {
		return byDriver
	}
	return byExporter
}

func (d *Device) clone() Device {
	return Device{
		ID:    strings.Clone(d.ID),
		Node:  d.Node.clone(),
		Index: strings.Clone(d.Index), Instance: strings.Clone(d.Instance), Minor: strings.Clone(d.Minor),
		Parent: strings.Clone(d.Parent), Profile: strings.Clone(d.Profile), MIGUUID: strings.Clone(d.MIGUUID),
		Model: strings.Clone(d.Model),
		Label: d.Label.Clone(),
	}
}

// with is d with what only o knows.
func (d Device) with(o *Device) Device {
	for _, text := range [...]struct{ has, other *string }{
		{&d.Node.Cluster, &o.Node.Cluster}, {&d.Node.Name, &o.Node.Name}, {&d.Index, &o.Index}, {&d.Instance, &o.Instance}, {&d.Minor, &o.Minor},
		{&d.Parent, &o.Parent}, {&d.Profile, &o.Profile}, {&d.MIGUUID, &o.MIGUUID}, {&d.Model, &o.Model},
	} {
		*text.has = cmp.Or(*text.has, *text.other)
	}
	if d.Label.IsZero() {
		d.Label = o.Label
	}
	return d
}

// known reports whether the device is as d describes it, and any other source that describes it
// still does.
func (s *sighting) known(d *Device, x *sightings, now time.Time) bool {
	from := d.source()
	if s.by[from] == nil || s.by[from].Device != *d {
		return false
	}
	s.by[from].last.Store(now.UnixNano())
	other := s.by[byDriver-from]
	return other == nil || x.fresh(&other.last, now)
}

// describe takes over what others have described lately, and adds d.
func (s *sighting) describe(d *Device, old *sighting, x *sightings, now time.Time) {
	own := &description{Device: d.clone()}
	own.last.Store(now.UnixNano())
	from := d.source()
	s.by[from] = own
	s.Device = own.Device
	if old == nil {
		return
	}
	if other := old.by[byDriver-from]; other != nil && x.fresh(&other.last, now) {
		s.by[byDriver-from] = other
		s.Device = s.by[byExporter].Device.with(&s.by[byDriver].Device)
	}
}

// fresh reports whether something arrived, and not too long ago.
func (x *sightings) fresh(last *atomic.Int64, now time.Time) bool {
	at := last.Load()
	return at != 0 && now.UnixNano()-at <= int64(x.maxAge)
}

// add remembers a device that is new, or not what it was; nil if there is no room.
func (x *sightings) add(d *Device, now time.Time) *sighting {
	s, old := &sighting{}, x.get(d.ID)
	s.describe(d, old, x, now)
	switch {
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
		return m.touch(device, now, func(s *sighting) { s.lastReplica.Store(at) })
	}
	if s := m.seen.get(d.ID); s != nil && s.known(d, &m.seen, now) {
		s.last.Store(at)
	} else if !m.seeNew(d, now) {
		return false
	}
	if parent := deviceid.Parent(d.ID); parent != "" {
		return m.touch(parent, now, func(s *sighting) { s.lastChild.Store(at) })
	}
	return true
}

// ReplicasSeen reports whether a component upstream makes replicas of the device.
func (m *Memory) ReplicasSeen(id string, now time.Time) bool {
	s := m.seen.get(id)
	return s != nil && m.seen.fresh(&s.lastReplica, now)
}

func (m *Memory) touch(id string, now time.Time, mark func(*sighting)) bool {
	s := m.seen.get(id)
	if s == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		if s = m.seen.get(id); s == nil {
			if s = m.seen.add(&Device{ID: id}, now); s == nil {
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
	s := m.seen.add(d, now)
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
		if of.Name == "" || of.may(n.key.Node) {
			m.publish(n, now)
		}
	}
}
