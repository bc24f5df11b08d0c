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

// SetPods reports which pods the Kubernetes API has now, with the source Kubernetes;
// the first call reports that it is in sync. The Tally counts pods that a limit
// refuses, as of each call; calling again with the same pods refuses and changes
// nothing else. Its cost is linear in pods.
func (s *Summary) SetPods(pods *Pods, now time.Time) Tally {
	var t Tally
	n := now.UnixNano()
	if s.synced == 0 {
		s.synced = n
	}
	s.round++
	for i := range pods.List {
		e := &pods.List[i]
		key := podKey{pods.Cluster, e.Namespace, e.Name}
		if why := s.setPod(key, e, n); why != accepted {
			t.refuse(why, 1, key, "")
		}
	}
	for _, p := range s.pods {
		if p.entry != nil && p.round != s.round {
			p.entry, p.removed = nil, n
			p.firstAnnounced = p.oldestStanding(n)
		}
	}
	return t
}

func (s *Summary) setPod(key podKey, e *Pod, now int64) Reason {
	p := s.pods[key]
	if p == nil {
		var why Reason
		if p, why = s.newPod(key, e.Service); why != accepted {
			return why
		}
	}
	// Only what is new in the API reports anything about the uid: telemetry may know
	// the next pod of this name already.
	if e.UID != "" && e.UID != p.uid && (p.entry == nil || p.entry.UID != e.UID) {
		if p.uid != "" {
			s.renew(p, e.UID)
		}
		p.uid, p.uidTime = e.UID, now
	}
	p.entry, p.round = e, s.round
	if p.svcTime == 0 && p.service.key.name != e.Service {
		svc := s.serviceFor(serviceKey{key.cluster, key.namespace, e.Service})
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

// maxSilentNodes bounds the nodes that are named.
const maxSilentNodes = 100

// seenOf takes note that something came from a node.
func (s *Summary) seenOf(cluster, node string) {
	key := nodeKey{cluster, node}
	if _, known := s.nodes[key]; !known && len(s.nodes) < s.cfg.MaxPods {
		s.nodes[key] = struct{}{}
	}
}

// note takes down the node of a pod that is missing, if nothing came from it since the start.
func (e *Evaluation) note(s *Summary, p *pod) {
	entry := p.inCluster()
	if entry == nil || entry.Node == "" || len(e.SilentNodes) == maxSilentNodes {
		return
	}
	if _, known := s.nodes[nodeKey{p.key.cluster, entry.Node}]; !known && !slices.Contains(e.SilentNodes, entry.Node) {
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
