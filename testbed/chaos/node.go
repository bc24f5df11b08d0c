// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/breakable"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

const (
	namespace   = "inference"
	container   = "main"
	clusterName = "chaos"
)

// pod is one pod that holds GPUs, the only one of its service on them.
type pod struct {
	name, uid, service string
	resource           string // nvidia.com/gpu, or that of MIG instances
	count              int
	load               gpusim.Load
	started            time.Time

	ids   []string // what the kubelet gave it
	slots []string // the same, as gpusim names it
}

func (p *pod) key() kubelet.Pod {
	return kubelet.Pod{Namespace: namespace, Name: p.name, UID: p.uid}
}

// node is a node with its GPUs, its kubelet and its exporter, and the pods that
// hold the GPUs. Changes go to all three, to the API server and to the ledger,
// which is the truth about owners.
type node struct {
	name     string
	fleet    *gpusim.Fleet // this node alone
	kubelet  *kubelet.Kubelet
	socket   string
	exporter *breakable.Exporter
	api      *kubeapi.Server
	ledger   *ownership.Ledger
	looking  *sync.Mutex // of the ledger, shared by all nodes
	history  *history

	mu       sync.Mutex // guards what follows
	replicas int        // of each whole device; 1: not shared
	pods     []*pod
}

const gpuResource = "nvidia.com/gpu"

// device is one thing that can be held.
type device struct {
	id       string // on the wire: hw.id
	kubelet  string // the device plugin's
	slot     string // gpusim's
	parent   string // the board, where it is not the board
	resource string
	share    float64
}

// devices are those of the node as they are now.
func (n *node) devices() (out []device, err error) {
	gpus, err := n.fleet.Devices(n.name)
	if err != nil {
		return nil, err
	}
	for _, g := range gpus {
		index := strconv.Itoa(g.Index)
		for _, i := range g.Instances {
			out = append(out, device{
				id: g.UUID + "/" + strconv.Itoa(i.ID), kubelet: i.UUID, slot: index + ":" + strconv.Itoa(i.Position),
				parent: g.UUID, resource: "nvidia.com/mig-" + i.Profile, share: 1,
			})
		}
		if len(g.Instances) > 0 {
			continue
		}
		if n.replicas == 1 {
			out = append(out, device{id: g.UUID, kubelet: g.UUID, slot: index, resource: gpuResource, share: 1})
			continue
		}
		for r := range n.replicas {
			id := kubelet.ReplicaID(g.UUID, r)
			out = append(out, device{
				id: id, kubelet: id, slot: index + "::" + strconv.Itoa(r), parent: g.UUID, resource: gpuResource, share: 1 / float64(n.replicas),
			})
		}
	}
	return out, nil
}

// announce gives the kubelet the devices of its plugin.
func (n *node) announce() error {
	devices, err := n.devices()
	if err != nil {
		return err
	}
	by := map[string][]kubelet.Device{}
	for _, d := range devices {
		by[d.resource] = append(by[d.resource], kubelet.Device{ID: d.kubelet, Healthy: true, NUMA: []int64{0}})
	}
	for _, profile := range []string{"1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb"} {
		n.kubelet.SetDevices("nvidia.com/mig-"+profile, by["nvidia.com/mig-"+profile])
	}
	n.kubelet.SetDevices(gpuResource, by[gpuResource])
	return nil
}

// change does something to the node and adds to the ledger what was true before
// and after it.
func (n *node) change(do func() error) error {
	n.looking.Lock()
	defer n.looking.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.observe(time.Now()); err != nil {
		return err
	}
	began := time.Now()
	if err := do(); err != nil {
		return err
	}
	return n.observe(began)
}

// observe adds to the ledger what is true, since some time after began. Of the
// other nodes it has what was observed last.
func (n *node) observe(began time.Time) error {
	devices, err := n.devices()
	if err != nil {
		return err
	}
	all := n.ledger.Now()
	maps.DeleteFunc(all, func(_ string, s ownership.State) bool { return s.Node == n.name })
	owners := n.kubelet.Owners()
	for _, d := range devices {
		state := ownership.State{Node: n.name, Share: d.share}
		for _, h := range owners[d.kubelet] {
			state.Owners = append(state.Owners, ownership.Owner{Namespace: h.Pod.Namespace, Pod: h.Pod.Name, Container: h.Container, UID: h.Pod.UID})
		}
		all[d.id] = state
		if d.parent != "" {
			all[d.parent] = ownership.State{Node: n.name, Divided: true}
		}
		if strings.HasPrefix(d.kubelet, "MIG-") {
			n.ledger.Alias(n.name+"/"+d.kubelet, d.id)
		}
	}
	n.ledger.Observe(began, time.Now(), all)
	return nil
}

// bind lets the API server have pods some time before the kubelet: it does not
// run a pod that is not bound to it.
func (n *node) bind(pods ...*pod) {
	for _, p := range pods {
		object := n.object(p)
		object["status"] = m{"phase": "Pending"}
		n.api.Put("pods", namespace, p.name, object)
	}
	time.Sleep(interval / 5)
}

// place gives a pod its devices and lets it run.
func (n *node) place(p *pod) error {
	n.bind(p)
	return n.change(func() error { return n.give(p) })
}

func (n *node) give(p *pod) error {
	ids, err := n.kubelet.Allocate(p.key(), container, p.resource, p.count)
	if err != nil {
		return err
	}
	devices, err := n.devices()
	if err != nil {
		return err
	}
	p.ids, p.slots = ids, nil
	var valued []string
	for _, d := range devices {
		if slices.Contains(ids, d.kubelet) {
			p.slots = append(p.slots, d.slot)
			id, _, _ := strings.Cut(d.id, "::")
			valued = append(valued, id)
		}
	}
	if p.started.IsZero() {
		p.started = time.Now()
	}
	n.pods = append(n.pods, p)
	n.history.born(n.name, *p, valued, time.Now())
	n.api.Put("pods", namespace, p.name, n.object(p))
	return n.load()
}

// remove takes a pod away; it is no error if there is none.
func (n *node) remove(name string) error {
	return n.change(func() error { return n.take(name) })
}

func (n *node) take(name string) error {
	n.pods = slices.DeleteFunc(n.pods, func(p *pod) bool {
		if p.name == name {
			n.kubelet.Release(p.key())
			n.api.Delete("pods", namespace, p.name)
			n.history.gone(p.uid, time.Now())
		}
		return p.name == name
	})
	return n.load()
}

// replace takes a pod away and gives its devices to another one at once; to one
// of its name when it is gone.
func (n *node) replace(name string, by *pod) error {
	if by.name == name {
		if err := n.remove(name); err != nil {
			return err
		}
		return n.place(by)
	}
	n.bind(by)
	return n.change(func() error {
		if err := n.take(name); err != nil {
			return err
		}
		return n.give(by)
	})
}

// load lets the GPUs do the work of the pods.
func (n *node) load() error {
	var pods []gpusim.Pod
	for _, p := range n.pods {
		pods = append(pods, gpusim.Pod{
			Namespace: namespace, Name: p.name, UID: p.uid, Container: container, Load: p.load, Devices: p.slots,
			Labels: map[string]string{"app.kubernetes.io/name": p.service}, Warmup: gpusim.Duration(2 * time.Second),
		})
	}
	return n.fleet.SetPods(n.name, pods)
}

// Pods are those that run now.
func (n *node) Pods() []pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]pod, 0, len(n.pods))
	for _, p := range n.pods {
		out = append(out, *p)
	}
	return out
}

// free is how many devices of a resource have no owner.
func (n *node) free(resource string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	devices, err := n.devices()
	if err != nil {
		return 0
	}
	owners, count := n.kubelet.Owners(), 0
	for _, d := range devices {
		if d.resource == resource && len(owners[d.kubelet]) == 0 {
			count++
		}
	}
	return count
}

// reshape takes all pods away, lets do change the node's devices, and brings the
// pods back: what draining a node for another MIG layout or another sharing does.
func (n *node) reshape(pending time.Duration, do func() error) error {
	var away []*pod
	err := n.change(func() error {
		away = slices.Clone(n.pods)
		for _, p := range away {
			if err := n.take(p.name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	n.labels("pending")
	time.Sleep(pending)
	if err := n.change(func() error {
		if err := do(); err != nil {
			return err
		}
		return n.announce()
	}); err != nil {
		return err
	}
	n.labels("success")
	var back []*pod
	for _, p := range away {
		back = append(back, &pod{name: p.name, uid: newUID(), service: p.service, resource: p.resource, count: p.count, load: p.load})
	}
	n.bind(back...)
	return n.change(func() error {
		for _, p := range back {
			if err := n.give(p); err != nil {
				return err
			}
		}
		return nil
	})
}

// labels puts the node into the API server, with the state of its MIG manager.
func (n *node) labels(mig string) {
	n.api.Put("nodes", "", n.name, m{
		"apiVersion": "v1", "kind": "Node", "metadata": m{"name": n.name, "uid": n.name, "labels": m{"nvidia.com/mig.config.state": mig}},
		"spec": m{}, "status": m{},
	})
}

// object is the pod as the API server has it.
func (n *node) object(p *pod) m {
	since := p.started
	if since.IsZero() {
		since = time.Now()
	}
	started := since.UTC().Format(time.RFC3339)
	return m{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": m{
			"namespace": namespace, "name": p.name, "uid": p.uid, "creationTimestamp": started,
			"labels": m{"app.kubernetes.io/name": p.service},
		},
		"spec": m{"nodeName": n.name, "containers": []m{{
			"name": container, "image": "example.com/" + p.service,
			"resources": m{"limits": m{p.resource: strconv.Itoa(p.count)}, "requests": m{p.resource: strconv.Itoa(p.count)}},
		}}},
		"status": m{
			"phase": "Running", "podIP": "10.0.0.1", "startTime": started, "conditions": []m{{"type": "Ready", "status": "True"}},
			"containerStatuses": []m{{"name": container, "ready": true, "started": true, "state": m{"running": m{"startedAt": started}}}},
		},
	}
}

var uids struct {
	sync.Mutex
	n int
}

// newUID makes the uid of a pod.
func newUID() string {
	uids.Lock()
	defer uids.Unlock()
	uids.n++
	return fmt.Sprintf("00000000-0000-4000-8000-%012x", uids.n)
}
