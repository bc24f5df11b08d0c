// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package holders

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
	Label           owner.Owner // whom the exporter's labels name
}

// seen is a device that telemetry was heard of.
type seen struct {
	Device
	heard atomic.Int64
	// When telemetry of its MIG instances was heard, and of its replicas from
	// somebody who made them upstream.
	childHeard, replicaHeard atomic.Int64
}

func (s *seen) lastHeard() time.Time {
	return time.Unix(0, max(s.heard.Load(), s.childHeard.Load(), s.replicaHeard.Load()))
}

// See takes note of a device in telemetry. It is cheap for one that is known;
// for a new one, or one that changed, the allocations of its node are joined
// anew. It reports whether there was room for it.
func (k *Knowledge) See(d *Device, now time.Time) bool {
	at := now.UnixNano()
	device, replica := deviceid.CutReplica(d.ID)
	if replica != "" {
		return k.touch(device, func(s *seen) { s.replicaHeard.Store(at) })
	}
	if s := k.seen.get(d.ID); s != nil && s.Device == *d {
		s.heard.Store(at)
	} else if !k.look(d, now) {
		return false
	}
	if parent := deviceid.Parent(d.ID); parent != "" {
		return k.touch(parent, func(s *seen) { s.childHeard.Store(at) })
	}
	return true
}

// ReplicasSeen reports whether somebody upstream makes replicas of the device.
func (k *Knowledge) ReplicasSeen(id string, now time.Time) bool {
	s := k.seen.get(id)
	return s != nil && k.fresh(&s.replicaHeard, now)
}

// fresh reports whether something was heard, and not too long ago.
func (k *Knowledge) fresh(heard *atomic.Int64, now time.Time) bool {
	at := heard.Load()
	return at != 0 && now.UnixNano()-at <= int64(k.maxAge)
}

func (k *Knowledge) touch(id string, mark func(*seen)) bool {
	s := k.seen.get(id)
	if s == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		if s = k.seen.get(id); s == nil {
			if s = k.addSeen(&Device{ID: id}); s == nil {
				return false
			}
		}
	}
	mark(s)
	return true
}

// look remembers a device that is new, or not what it was.
func (k *Knowledge) look(d *Device, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	old := k.seen.get(d.ID)
	if old == nil && k.seenCount >= k.maxDevices {
		return false
	}
	s := k.addSeen(d)
	s.heard.Store(now.UnixNano())
	k.rejoin(s.Node, now)
	if old != nil && old.Node != s.Node {
		k.rejoin(old.Node, now)
	}
	return true
}

func (k *Knowledge) addSeen(d *Device) *seen {
	s := &seen{Device: Device{
		ID:    strings.Clone(d.ID),
		Node:  Node{strings.Clone(d.Node.Cluster), strings.Clone(d.Node.Name)},
		Index: strings.Clone(d.Index), Instance: strings.Clone(d.Instance),
		Parent: strings.Clone(d.Parent), Profile: strings.Clone(d.Profile), MIGUUID: strings.Clone(d.MIGUUID),
		Label: d.Label.Clone(),
	}}
	old := k.seen.get(s.ID)
	if old != nil {
		s.childHeard.Store(old.childHeard.Load())
		s.replicaHeard.Store(old.replicaHeard.Load())
		k.leave(old)
	} else if k.seenCount >= k.maxDevices {
		return nil
	} else {
		k.seenCount++
	}
	k.seen.update([]string{s.ID}, func(string, *seen) (*seen, bool) { return s, true })
	of := k.byNode[s.Node.Name]
	if of == nil {
		of = map[string]*seen{}
		k.byNode[s.Node.Name] = of
	}
	of[s.ID] = s
	return s
}

// leave takes s off its node.
func (k *Knowledge) leave(s *seen) {
	of := k.byNode[s.Node.Name]
	delete(of, s.ID)
	if len(of) == 0 {
		delete(k.byNode, s.Node.Name)
	}
}

// rejoin joins the allocations of a node anew, or those of all nodes if it is
// not known which one a device is on.
func (k *Knowledge) rejoin(of Node, now time.Time) {
	for n := range k.unresolved {
		if of.Name == "" || of.may(n.key) {
			k.publish(n, now)
		}
	}
}
