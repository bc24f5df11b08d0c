// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"slices"
	"time"
)

// Pods are the pods of one cluster that ask for an accelerator. It is immutable.
type Pods struct {
	Cluster string // k8s.cluster.name of their telemetry, "" for none
	List    []Pod  // each namespace and name once
	// Unobserved is how many pods are left out because no agent can run on their node.
	Unobserved int
}

// Pod is a pod that asks for an accelerator, as the Kubernetes API has it.
type Pod struct {
	Namespace, Name, UID string
	Node                 string // "": no node has accepted it
	// Service is the service.name of the pod until telemetry or allocation has
	// named one.
	Service string
	Running bool // status.phase is Running
	Deleted bool // it has a deletion timestamp
	// Up reports that all accelerator containers are running, Started the newest
	// start among them.
	Up      bool
	Started time.Time
	// LastRun is for how long the container that started last ran before, -1
	// where it never did.
	LastRun time.Duration
	Devices int // asked for by requests and claims, each once; at least 1
}

// setPods takes what the Kubernetes API has now.
func (m *memory) setPods(pods *Pods, now int64) (t Tally) {
	m.round++
	for i := range pods.List {
		e := &pods.List[i]
		key := podKey{pods.Cluster, e.Namespace, e.Name}
		if why := m.setPod(key, e, now); why != accepted {
			t.refuse(why, 1, key, "")
		}
	}
	for _, p := range m.pods {
		if p.entry != nil && p.round != m.round {
			p.entry, p.removed = nil, now
			p.firstAnnounced = p.oldestStanding(now)
		}
	}
	return t
}

func (m *memory) setPod(key podKey, e *Pod, now int64) Reason {
	p := m.pods[key]
	if p == nil {
		var why Reason
		if p, why = m.newPod(key, e.Service); why != accepted {
			return why
		}
	}
	// Only what is new in the API reports anything about the uid: telemetry may know
	// the next pod of this name already.
	if e.UID != "" && e.UID != p.uid && (p.entry == nil || p.entry.UID != e.UID) {
		if p.uid != "" {
			m.renew(p, e.UID)
		}
		p.uid, p.uidTime = e.UID, now
	}
	p.entry, p.round = e, m.round
	if p.svcTime == 0 && p.service.key.name != e.Service {
		svc := m.serviceFor(serviceKey{key.cluster, key.namespace, e.Service})
		if svc == nil {
			return limitServices
		}
		svc.add(p)
	}
	return accepted
}

// oldestStanding returns the oldest of the newest announcements that are later than
// after; 0 if there is none.
func (p *pod) oldestStanding(after int64) (first int64) {
	for _, h := range p.devices {
		for _, a := range h.announced {
			if a.held && a.time > after {
				first = oldest(first, a.time)
			}
		}
	}
	return first
}

// nodeSet is the set of nodes that something came from.
type nodeSet map[nodeKey]struct{}

// add takes note that something came from a node, of most nodes.
func (n nodeSet) add(cluster, node string, most int) {
	key := nodeKey{cluster, node}
	if _, known := n[key]; !known && len(n) < most {
		n[key] = struct{}{}
	}
}

// maxSilentNodes bounds the nodes that are named.
const maxSilentNodes = 100

// note takes down the node of a pod that is missing, if nothing came from it since the start.
func (e *Evaluation) note(p *pod, nodes nodeSet) {
	entry := p.inCluster()
	if entry == nil || entry.Node == "" || len(e.SilentNodes) == maxSilentNodes {
		return
	}
	if _, known := nodes[nodeKey{p.key.cluster, entry.Node}]; !known && !slices.Contains(e.SilentNodes, entry.Node) {
		e.SilentNodes = append(e.SilentNodes, entry.Node)
	}
}

// inCluster returns what the Kubernetes API reports of p; nil if nothing, or of
// another pod of its name.
func (p *pod) inCluster() *Pod {
	if p.entry == nil || p.entry.UID != "" && p.uid != "" && p.entry.UID != p.uid {
		return nil
	}
	return p.entry
}
