// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
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

// A job of Slurm on one node is to its service what a pod is. It is kept as one: its cluster
// is that of Kubernetes' names together with that of Slurm, its namespace the account, and its
// name the job's id with the node. No name of Kubernetes has the character between them.
const between = "\x00"

// job is what a resource has of a job.
type job struct{ cluster, id, namespace string }

// unit is the key of the job on the node of src; false where the job's service was not
// decided yet: its devices have no owner until then.
func (src *source) unit(j job) (podKey, bool) {
	if j.id == "" || src.service == "" {
		return podKey{cluster: src.pod.cluster}, false
	}
	return podKey{src.pod.cluster + between + j.cluster, j.namespace, j.id + between + src.node}, true
}

// isJob reports whether the cluster of a key is one of Slurm.
func isJob(cluster string) bool { return strings.Contains(cluster, between) }

// inKubernetes is the cluster under which devices and nodes are known.
func inKubernetes(cluster string) string {
	cluster, _, _ = strings.Cut(cluster, between)
	return cluster
}

// nested reports whether a point of gpu.allocation is of a job within a pod: the pod has
// points of its own.
func nested(dp pmetric.NumberDataPoint) bool {
	v, ok := dp.Attributes().Get(names.GPUAllocationNested)
	return ok && v.Bool()
}

// putJobService writes the identity of a service on Slurm.
func putJobService(attrs pcommon.Map, key serviceKey) {
	cluster, slurm, _ := strings.Cut(key.cluster, between)
	if cluster != "" {
		attrs.PutStr(names.K8sClusterName, cluster)
	}
	attrs.PutStr(names.SlurmClusterName, slurm)
	if key.namespace != "" { // a cluster without accounting has no accounts
		attrs.PutStr(names.ServiceNamespace, key.namespace)
	}
	attrs.PutStr(names.ServiceName, key.name)
}

// putUnit writes what distinguishes a pod of a service, or a job on a node, from the others.
func putUnit(attrs pcommon.Map, name string) {
	id, node, isJob := strings.Cut(name, between)
	if !isJob {
		attrs.PutStr(names.K8sPodName, name)
		return
	}
	attrs.PutStr(names.SlurmJobID, id)
	if node != "" {
		attrs.PutStr(names.K8sNodeName, node)
	}
}

// readable is the name of a pod, or of a job on a node, in a message.
func readable(name string) string {
	id, node, isJob := strings.Cut(name, between)
	if !isJob {
		return name
	}
	return "job " + id + " on " + node
}
