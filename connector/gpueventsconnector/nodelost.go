// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	// maxMembers bounds the devices, and the services, of one node.
	maxMembers = 4096
	// memberFor is for how long before a node's silence something was heard of
	// that is named as the node's.
	memberFor = 10 * time.Minute
	// silent is after how long a node may be lost: what is missing on it is not
	// told on its own until that is clear.
	silent = 30 * time.Second
	// reconnect is for how long after a restart an agent may still wait before its
	// next attempt to connect: gRPC's longest wait, and what it adds by chance. It
	// is above the 160 s of docs/decisions/0015.
	reconnect = 3 * time.Minute
)

var nodeLostRule = rule{event: names.EventNodeLost, levels: []level{{0, plog.SeverityNumberError}}}

// node is a node that telemetry of GPUs comes from.
type node struct {
	place    place
	heard    time.Duration
	restored bool // not heard of since the restart
	cordoned bool
	cordon   pcommon.Timestamp // the time of that
	devices  map[string]time.Duration
	services map[service]time.Duration
	lost     condition
}

// hearNode notes that there is telemetry of the node that the resource names.
// Telemetry of anything but GPUs makes no node known.
func (e *engine) hearNode(r *reading, metric string, at pcommon.Timestamp) {
	if r.facts.node == "" || !e.cfg.Events.NodeLost.Enabled {
		return
	}
	n := e.nodes[place{r.id.cluster, r.facts.node}]
	if n == nil {
		if metric == names.GPUAllocation.Name {
			return // a kubelet that falls silent is no node that does
		}
		if !strings.HasPrefix(metric, "gpu.") && !strings.HasPrefix(metric, "hw.") && !strings.HasPrefix(metric, "dcgm.") {
			return
		}
		if n = e.node(place{r.id.cluster, r.facts.node}); n == nil {
			return
		}
	}
	n.heard, n.restored = e.now, false
	if _, replica := deviceid.CutReplica(r.id.id); r.id.id != "" && replica == "" && !r.notGPU {
		before := len(n.devices)
		n.devices[r.id.id] = e.now
		e.member(n, before, len(n.devices))
	}
	if h := r.facts.holder; h.service != "" {
		before := len(n.services)
		n.services[service{r.id.cluster, h.namespace, h.service}] = e.now
		e.member(n, before, len(n.services))
	}
	if n.lost.level > 0 {
		e.move(&n.lost, &nodeLostRule, 0, at, func(ev *event) {
			n.subject(ev)
			ev.body = n.String() + " is heard of again."
		})
	}
}

// node finds or makes a node; nil when there is no room.
func (e *engine) node(p place) *node {
	n := e.nodes[p]
	if n != nil {
		return n
	}
	if len(e.nodes) >= e.cfg.MaxSubjects {
		e.unwatched("node")
		return nil
	}
	n = &node{
		place: place{strings.Clone(p.cluster), strings.Clone(p.node)}, heard: e.now,
		devices: map[string]time.Duration{}, services: map[service]time.Duration{},
	}
	e.nodes[n.place] = n
	e.changed = true
	return n
}

// member forgets what is no longer on the node where its list gets too long.
func (e *engine) member(n *node, before, size int) {
	e.changed = e.changed || size > before
	if size > maxMembers {
		n.forget()
		for id := range n.devices {
			if len(n.devices) <= maxMembers {
				break
			}
			delete(n.devices, id)
			e.unwatched("member")
		}
		for s := range n.services {
			if len(n.services) <= maxMembers {
				break
			}
			delete(n.services, s)
			e.unwatched("member")
		}
	}
}

// forget drops what was not heard of for long while the node was.
func (n *node) forget() {
	for id, heard := range n.devices {
		if n.heard-heard > memberFor {
			delete(n.devices, id)
		}
	}
	for s, heard := range n.services {
		if n.heard-heard > memberFor {
			delete(n.services, s)
		}
	}
}

// schedulable notes what a point of gpu.node.schedulable says.
func (e *engine) schedulable(p place, at pcommon.Timestamp, on bool) {
	if p.node == "" {
		e.invalid(names.GPUNodeSchedulable.Name)
		return
	}
	n := e.node(p)
	if n == nil {
		return
	}
	if at < n.cordon && n.cordon.AsTime().Sub(at.AsTime()) < maxGap {
		e.counts.late++
		return
	}
	e.changed = e.changed || n.cordoned == on
	n.cordoned, n.cordon = !on, at
}

// judgeNodes raises gpu.node.lost for nodes that are silent. A node that was
// cordoned when it was last heard of is expected to go.
func (e *engine) judgeNodes() {
	c := &e.cfg.Events.NodeLost
	if !c.Enabled {
		return
	}
	var heard map[string]bool // clusters of which a node was heard of
	for _, n := range e.nodes {
		if n.lost.level > 0 || n.cordoned || e.now-n.heard < e.lostAfter(n) {
			continue
		}
		if n.restored {
			if heard == nil {
				heard = e.heardClusters()
			}
			if !heard[n.place.cluster] {
				continue // nobody reaches this process yet, or the cluster has another name now
			}
		}
		e.move(&n.lost, &nodeLostRule, 1, pcommon.NewTimestampFromTime(e.wall), func(ev *event) { e.describeLost(n, ev) })
	}
}

// lostAfter is for how long a node is silent until it is lost. After a restart
// its agent is given the time to come back.
func (e *engine) lostAfter(n *node) time.Duration {
	if n.restored {
		return max(e.cfg.Events.NodeLost.LostAfter, reconnect)
	}
	return e.cfg.Events.NodeLost.LostAfter
}

// heardClusters are the clusters of which a node was heard of since the start.
func (e *engine) heardClusters() map[string]bool {
	heard := map[string]bool{}
	for _, n := range e.nodes {
		if !n.restored {
			heard[n.place.cluster] = true
		}
	}
	return heard
}

func (e *engine) describeLost(n *node, ev *event) {
	n.subject(ev)
	var devices, services []string
	n.forget()
	for id := range n.devices {
		devices = append(devices, id)
	}
	for s := range n.services {
		services = append(services, s.namespace+"/"+s.name)
	}
	deviceCount, serviceCount := len(devices), len(services)
	devices, services = names50(devices), names50(services)
	ev.body = fmt.Sprintf("%s is lost: nothing was heard of it for %s. It has %s and %s%s.", n, inWords(e.lostAfter(n)),
		plural(deviceCount, "GPU"), plural(serviceCount, "service"), inBrackets(services, serviceCount))
	ev.details = append(ev.details, func(attrs pcommon.Map) {
		putList(attrs, names.GPUNodeDevices, devices)
		attrs.PutInt(names.GPUNodeDeviceCount, int64(deviceCount))
		putList(attrs, names.GPUNodeServices, services)
		attrs.PutInt(names.GPUNodeServiceCount, int64(serviceCount))
	})
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (n *node) subject(ev *event) {
	p := n.place
	ev.key = eventKey(ev.name, p.cluster, p.node)
	ev.resource = func(attrs pcommon.Map) {
		putTexts(attrs, names.K8sClusterName, p.cluster, names.K8sNodeName, p.node)
	}
}

// String names the node in a sentence.
func (n *node) String() string {
	out := "Node " + clean(n.place.node)
	if n.place.cluster != "" {
		out += " of cluster " + clean(n.place.cluster)
	}
	return out
}

// withNode reports whether all nodes that the service was seen on are lost, or
// silent and not yet lost: then it is named in their event.
func (e *engine) withNode(s service) bool {
	hosts := 0
	for _, n := range e.nodes {
		heard, there := n.services[s]
		if !there || n.heard-heard > memberFor {
			continue
		}
		if quiet := e.now - n.heard; n.lost.level == 0 && (quiet < silent || n.cordoned || quiet > e.lostAfter(n)+settle) {
			return false
		}
		hosts++
	}
	return hosts > 0
}

// dropNode forgets a node and clears what is raised about it.
func (e *engine) dropNode(n *node) {
	e.move(&n.lost, &nodeLostRule, 0, pcommon.NewTimestampFromTime(e.wall), func(ev *event) {
		n.subject(ev)
		ev.body = n.String() + " was not heard of for " + inWords(e.cfg.SubjectTTL) + ", and is no longer waited for."
	})
	if n.lost.level == 0 {
		delete(e.nodes, n.place)
		e.changed = true
	}
}
