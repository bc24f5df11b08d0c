// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/servicerules"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/state"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	// memberFor is for how long before a node's silence there was telemetry of a device
	// or service that is named as the node's.
	memberFor = 10 * time.Minute
	// silent is after how long without telemetry a node may be lost: until that is
	// decided, what is missing on it raises no event of its own.
	silent = 30 * time.Second
)

// node is a node with telemetry of GPUs.
type node struct {
	id       subject.Node
	seen     time.Duration // when the newest point arrived
	restored bool          // there was no point since the restart
	cordoned bool
	cordon   pcommon.Timestamp // the time of the point about that
	devices  map[string]time.Duration
	services map[subject.Service]time.Duration
	lost     condition.Condition
}

// forget drops devices and services without telemetry, where there is some of the node.
func (n *node) forget() {
	for id, seen := range n.devices {
		if n.seen-seen > memberFor {
			delete(n.devices, id)
		}
	}
	for s, seen := range n.services {
		if n.seen-seen > memberFor {
			delete(n.services, s)
		}
	}
}

// nodes are the nodes that are watched.
type nodes struct {
	*ledger
	on    bool
	after [2]time.Duration // of silence until a node is lost; the second: after a restart
	all   map[subject.Node]*node
}

func newNodes(l *ledger, o *Options, in *inputs) *nodes {
	n := &nodes{ledger: l, all: map[subject.Node]*node{}}
	if s := o.settings(&servicerules.NodeLost); s.Enabled() {
		n.on = true
		n.after = [2]time.Duration{servicerules.LostAfter(s, false), servicerules.LostAfter(s, true)}
		in.add(&servicerules.NodeLost)
	}
	return n
}

// get finds or adds a node; nil when there is no room.
func (s *nodes) get(id subject.Node) *node {
	n := s.all[id]
	if n != nil {
		return n
	}
	if len(s.all) >= s.maxSubjects {
		s.unwatched("node")
		return nil
	}
	n = &node{
		id: subject.Node{Cluster: strings.Clone(id.Cluster), Name: strings.Clone(id.Name)}, seen: s.now,
		devices: map[string]time.Duration{}, services: map[subject.Service]time.Duration{},
	}
	s.all[n.id] = n
	s.changed = true
	return n
}

// see takes the sign of life of a node: a point of the metric, about a device where
// device is not empty, and a service where its name is not empty. Telemetry of anything
// but GPUs makes no node known.
func (s *nodes) see(id subject.Node, metric, device string, service subject.Service, at pcommon.Timestamp) {
	if id.Name == "" || !s.on {
		return
	}
	n := s.all[id]
	if n == nil {
		if metric == names.GPUAllocation.Name {
			return // a kubelet that falls silent is no node that does
		}
		if !names.OfDevices(metric) {
			return
		}
		if n = s.get(id); n == nil {
			return
		}
	}
	n.seen, n.restored = s.now, false
	if device != "" {
		before := len(n.devices)
		n.devices[device] = s.now
		s.bound(n, before, len(n.devices))
	}
	if service.Name != "" {
		before := len(n.services)
		n.services[service] = s.now
		s.bound(n, before, len(n.services))
	}
	if n.lost.Level > 0 {
		s.moveTo(n, 0, at, func(ev *event.Event) { servicerules.DescribeNodeBack(n.id, ev) })
	}
}

func (s *nodes) moveTo(n *node, level uint8, at pcommon.Timestamp, describe func(*event.Event)) {
	s.move(&n.lost, &servicerules.NodeLostSpec, servicerules.NodeLost.Event, level, at, describe)
}

// bound drops devices or services of a node where it has too many of them.
func (s *nodes) bound(n *node, before, size int) {
	s.changed = s.changed || size > before
	if size <= state.MaxMembers {
		return
	}
	n.forget()
	for id := range n.devices {
		if len(n.devices) <= state.MaxMembers {
			break
		}
		delete(n.devices, id)
		s.unwatched("member")
	}
	for service := range n.services {
		if len(n.services) <= state.MaxMembers {
			break
		}
		delete(n.services, service)
		s.unwatched("member")
	}
}

// schedulable takes a point of gpu.node.schedulable.
func (s *nodes) schedulable(id subject.Node, at pcommon.Timestamp, on bool) {
	if id.Name == "" {
		s.invalid(names.GPUNodeSchedulable.Name)
		return
	}
	n := s.get(id)
	if n == nil {
		return
	}
	if at < n.cordon && n.cordon.AsTime().Sub(at.AsTime()) < condition.MaxGap {
		s.counts.Late++
		return
	}
	s.changed = s.changed || n.cordoned == on
	n.cordoned, n.cordon = !on, at
}

// resume makes nodes what Restore makes them: their agents have the time to connect again.
func (s *nodes) resume() {
	for _, n := range s.all {
		n.seen, n.restored = s.now, true
	}
}

// elapse raises gpu.node.lost for nodes that are silent. A cordoned node is expected to go.
func (s *nodes) elapse() {
	if !s.on {
		return
	}
	var clusters map[string]bool // with telemetry since the restart
	for _, n := range s.all {
		if n.lost.Level > 0 || n.cordoned || s.now-n.seen < s.lostAfter(n) {
			continue
		}
		if n.restored {
			if clusters == nil {
				clusters = s.clusters()
			}
			if !clusters[n.id.Cluster] {
				continue // no agent is connected yet, or the cluster has another name now
			}
		}
		s.moveTo(n, 1, pcommon.NewTimestampFromTime(s.wall), func(ev *event.Event) {
			var devices, services []string
			n.forget()
			for id := range n.devices {
				devices = append(devices, id)
			}
			for service := range n.services {
				services = append(services, service.Namespace+"/"+service.Name)
			}
			servicerules.DescribeNodeLost(n.id, s.lostAfter(n), devices, services, ev)
		})
	}
}

func (s *nodes) lostAfter(n *node) time.Duration {
	if n.restored {
		return s.after[1]
	}
	return s.after[0]
}

func (s *nodes) clusters() map[string]bool {
	clusters := map[string]bool{}
	for _, n := range s.all {
		if !n.restored {
			clusters[n.id.Cluster] = true
		}
	}
	return clusters
}

// silent reports whether all nodes with telemetry of the service are lost, or silent and
// about to be: then it is named in their event.
func (s *nodes) silent(service subject.Service) bool {
	hosts := 0
	for _, n := range s.all {
		seen, found := n.services[service]
		if !found || n.seen-seen > memberFor {
			continue
		}
		if quiet := s.now - n.seen; n.lost.Level == 0 && (quiet < silent || n.cordoned || quiet > s.lostAfter(n)+settle) {
			return false
		}
		hosts++
	}
	return hosts > 0
}

// newest is when the newest point of a node arrived.
func (s *nodes) newest() (newest time.Duration) {
	for _, n := range s.all {
		newest = max(newest, n.seen)
	}
	return newest
}

// forget drops nodes that are old, and clears what is raised about them.
func (s *nodes) forget(old func(seen time.Duration) bool, ttl time.Duration) {
	for _, n := range s.all {
		if old(n.seen) {
			s.moveTo(n, 0, pcommon.NewTimestampFromTime(s.wall), func(ev *event.Event) {
				n.id.About(ev)
				ev.Body = n.id.String() + " was not seen for " + event.InWords(ttl) + ", and is no longer expected."
			})
			if n.lost.Level == 0 {
				delete(s.all, n.id)
				s.changed = true
			}
		}
		n.forget()
	}
}
