// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/breakable"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/history"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

// Pod is one pod that holds GPUs, the only one of its service on them.
type Pod struct {
	Name, UID, Service string
	Resource           string // GPU, or that of MIG instances
	Count              int
	Load               gpusim.Load
	Started            time.Time // zero: when it gets its devices

	ids   []string // what the kubelet gave it
	slots []string // the same, as gpusim names it
}

func (p *Pod) key() kubelet.Pod {
	return kubelet.Pod{Namespace: Namespace, Name: p.Name, UID: p.UID}
}

// Node is a node with its GPUs, its kubelet and its exporter, and the pods that
// hold the GPUs. Changes go to all three, to the API server and to the ledger,
// which is the truth about owners.
type Node struct {
	Name     string
	GPUs     *gpusim.Fleet // of this node alone
	Kubelet  *kubelet.Kubelet
	Socket   string // of the kubelet
	Exporter *breakable.Exporter
	fleet    *Fleet

	mu       sync.Mutex // guards what follows
	replicas int        // of each whole device; 1: not shared
	pods     []*Pod
}

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
func (n *Node) devices() (out []device, err error) {
	gpus, err := n.GPUs.Devices(n.Name)
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
			out = append(out, device{id: g.UUID, kubelet: g.UUID, slot: index, resource: GPU, share: 1})
			continue
		}
		for r := range n.replicas {
			id := kubelet.ReplicaID(g.UUID, r)
			out = append(out, device{
				id: id, kubelet: id, slot: index + "::" + strconv.Itoa(r), parent: g.UUID, resource: GPU, share: 1 / float64(n.replicas),
			})
		}
	}
	return out, nil
}

// Announce gives the kubelet the devices of its plugin, as a plugin does that registers
// again.
func (n *Node) Announce() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.announce()
}

// announce is Announce under the lock.
func (n *Node) announce() error {
	devices, err := n.devices()
	if err != nil {
		return err
	}
	by := map[string][]kubelet.Device{}
	for _, d := range devices {
		by[d.resource] = append(by[d.resource], kubelet.Device{ID: d.kubelet, Healthy: true, NUMA: []int64{0}})
	}
	for _, profile := range []string{"1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb"} {
		n.Kubelet.SetDevices("nvidia.com/mig-"+profile, by["nvidia.com/mig-"+profile])
	}
	n.Kubelet.SetDevices(GPU, by[GPU])
	return nil
}

// change does something to the node and adds to the ledger what was true before
// and after it.
func (n *Node) change(do func() error) error {
	n.fleet.looking.Lock()
	defer n.fleet.looking.Unlock()
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
func (n *Node) observe(began time.Time) error {
	devices, err := n.devices()
	if err != nil {
		return err
	}
	all := n.fleet.Ledger.Now()
	maps.DeleteFunc(all, func(_ string, s ownership.State) bool { return s.Node == n.Name })
	owners := n.Kubelet.Owners()
	for _, d := range devices {
		state := ownership.State{Node: n.Name, Share: d.share}
		for _, h := range owners[d.kubelet] {
			state.Owners = append(state.Owners, ownership.Owner{Namespace: h.Pod.Namespace, Pod: h.Pod.Name, Container: h.Container, UID: h.Pod.UID})
		}
		all[d.id] = state
		if d.parent != "" {
			all[d.parent] = ownership.State{Node: n.Name, Divided: true}
		}
		if strings.HasPrefix(d.kubelet, "MIG-") {
			n.fleet.Ledger.Alias(n.Name+"/"+d.kubelet, d.id)
		}
	}
	n.fleet.Ledger.Observe(began, time.Now(), all)
	return nil
}

// bind lets the API server have pods some time before the kubelet: it does not
// run a pod that is not bound to it.
func (n *Node) bind(pods ...*Pod) {
	for _, p := range pods {
		pending := n.object(p)
		pending["status"] = object{"phase": "Pending"}
		n.fleet.API.Put("pods", Namespace, p.Name, pending)
	}
	time.Sleep(pace.Interval / 5)
}

// Place gives a pod its devices and lets it run.
func (n *Node) Place(p *Pod) error {
	n.bind(p)
	return n.change(func() error { return n.give(p) })
}

func (n *Node) give(p *Pod) error {
	ids, err := n.Kubelet.Allocate(p.key(), Container, p.Resource, p.Count)
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
	if p.Started.IsZero() {
		p.Started = time.Now()
	}
	n.pods = append(n.pods, p)
	n.fleet.History.Born(history.Life{
		Node: n.Name, Service: p.Service, UID: p.UID, Devices: valued, Started: p.Started, From: time.Now(),
		Shared: slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(id, "::") }),
	})
	n.fleet.API.Put("pods", Namespace, p.Name, n.object(p))
	return n.load()
}

// Remove takes a pod away; it is no error if there is none.
func (n *Node) Remove(name string) error {
	return n.change(func() error { return n.take(name) })
}

func (n *Node) take(name string) error {
	n.pods = slices.DeleteFunc(n.pods, func(p *Pod) bool {
		if p.Name == name {
			n.Kubelet.Release(p.key())
			n.fleet.API.Delete("pods", Namespace, p.Name)
			n.fleet.History.Gone(p.UID, time.Now())
		}
		return p.Name == name
	})
	return n.load()
}

// Replace takes a pod away and gives its devices to another one at once; to one
// of its name when it is gone.
func (n *Node) Replace(name string, by *Pod) error {
	if by.Name == name {
		if err := n.Remove(name); err != nil {
			return err
		}
		return n.Place(by)
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
func (n *Node) load() error {
	var pods []gpusim.Pod
	for _, p := range n.pods {
		pods = append(pods, gpusim.Pod{
			Namespace: Namespace, Name: p.Name, UID: p.UID, Container: Container, Load: p.Load, Devices: p.slots,
			Labels: map[string]string{"app.kubernetes.io/name": p.Service}, Warmup: gpusim.Duration(2 * time.Second),
		})
	}
	return n.GPUs.SetPods(n.Name, pods)
}

// Pods are those that run now.
func (n *Node) Pods() []Pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]Pod, 0, len(n.pods))
	for _, p := range n.pods {
		out = append(out, *p)
	}
	return out
}

// Free is how many devices of a resource have no owner.
func (n *Node) Free(resource string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	devices, err := n.devices()
	if err != nil {
		return 0
	}
	owners, count := n.Kubelet.Owners(), 0
	for _, d := range devices {
		if d.resource == resource && len(owners[d.kubelet]) == 0 {
			count++
		}
	}
	return count
}

// Partition gives a board that is divided another MIG layout.
func (n *Node) Partition(board int, layout []string) error {
	return n.reshape(2*pace.Interval, func() error { return n.GPUs.SetMIG(n.Name, board, layout) })
}

// Share divides each whole device into so many replicas.
func (n *Node) Share(replicas int) error {
	return n.reshape(pace.Interval, func() error { n.replicas = replicas; return nil })
}

// reshape takes all pods away, lets do change the node's devices, and brings the
// pods back: what draining a node for another MIG layout or another sharing does.
func (n *Node) reshape(pending time.Duration, do func() error) error {
	var away []*Pod
	err := n.change(func() error {
		away = slices.Clone(n.pods)
		for _, p := range away {
			if err := n.take(p.Name); err != nil {
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
	var back []*Pod
	for _, p := range away {
		back = append(back, &Pod{Name: p.Name, UID: NewUID(), Service: p.Service, Resource: p.Resource, Count: p.Count, Load: p.Load})
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
