// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package simkubelet serves the kubelets of a simulated fleet: the pod-resources
// API of each node names the owners that gpusim's truth has.
package simkubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/vendors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
)

// step is how often the kubelets follow the fleet, which changes once a second.
const step = 250 * time.Millisecond

// Kubelets are those of a fleet. Start makes them.
type Kubelets struct {
	fleet source
	dir   string
	nodes map[string]*node
	stop  context.CancelFunc
	done  sync.WaitGroup

	following sync.Mutex // guards what the nodes were last given
}

// node is one kubelet and what it was last given.
type node struct {
	kubelet   *kubelet.Kubelet
	announced map[string][]string           // ids by resource
	held      map[owner]map[string][]string // ids by resource
}

type owner struct{ namespace, pod, container string }

// holding is what the device plugins of a node announce, and who owns it: ids by resource.
type holding struct {
	announced map[string][]string
	held      map[owner]map[string][]string
}

// source is a fleet.
type source interface {
	Nodes() []string
	holdings(at time.Time) (byNode map[string]holding, err error)
}

// Start serves a socket NODE.sock in dir for each node of a fleet, which follows
// the fleet until Stop. The path of a socket has 107 bytes at most.
func Start(fleet *gpusim.Fleet, dir string, now func() time.Time) (*Kubelets, error) {
	return start(nvidia{fleet}, dir, now)
}

// StartVendors does the same for a fleet of other vendors' boards.
func StartVendors(fleet *vendors.Fleet, dir string, now func() time.Time) (*Kubelets, error) {
	return start(others{fleet}, dir, now)
}

func start(fleet source, dir string, now func() time.Time) (*Kubelets, error) {
	ctx, cancel := context.WithCancel(context.Background())
	k := &Kubelets{fleet: fleet, dir: dir, nodes: map[string]*node{}, stop: cancel}
	for _, name := range fleet.Nodes() {
		k.nodes[name] = &node{kubelet: kubelet.New(kubelet.Options{}), announced: map[string][]string{}, held: map[owner]map[string][]string{}}
	}
	err := k.follow(now())
	for name, n := range k.nodes {
		err = errors.Join(err, n.kubelet.Serve(k.Socket(name)))
	}
	if err != nil {
		k.Stop()
		return nil, err
	}
	k.done.Go(func() {
		tick := time.NewTicker(step)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				// What the fleet has is valid: it was given its configuration.
				_ = k.follow(now())
			}
		}
	})
	return k, nil
}

// Socket is the path of a node's pod-resources socket.
func (k *Kubelets) Socket(node string) string { return filepath.Join(k.dir, node+".sock") }

// Restart ends what clients have with a node's kubelet and serves again, with
// faults from then on: kubelet.Faults{NoPods: true} is one that does not know its
// pods yet. SetFaults ends that.
func (k *Kubelets) Restart(node string, faults kubelet.Faults) error {
	n := k.nodes[node]
	if n == nil {
		return fmt.Errorf("no node %q", node)
	}
	n.kubelet.SetFaults(faults)
	return n.kubelet.Serve(k.Socket(node))
}

// SetFaults replaces the faults of a node's kubelet.
func (k *Kubelets) SetFaults(node string, faults kubelet.Faults) {
	if n := k.nodes[node]; n != nil {
		n.kubelet.SetFaults(faults)
	}
}

// Stop ends all kubelets and removes their sockets.
func (k *Kubelets) Stop() {
	k.stop()
	k.done.Wait()
	for name, n := range k.nodes {
		n.kubelet.Stop()
		_ = os.Remove(k.Socket(name))
	}
}

// follow makes every kubelet name the owners of a time.
func (k *Kubelets) follow(at time.Time) error {
	k.following.Lock()
	defer k.following.Unlock()
	byNode, err := k.fleet.holdings(at)
	errs := []error{err}
	for name, h := range byNode {
		errs = append(errs, k.nodes[name].set(h.announced, h.held))
	}
	return errors.Join(errs...)
}

type nvidia struct{ *gpusim.Fleet }

func (f nvidia) holdings(at time.Time) (map[string]holding, error) {
	byNode := map[string]holding{}
	var errs []error
	for _, truth := range f.TruthAt(at).Nodes {
		devices, err := f.Devices(truth.Name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		announced, held := read(truth.Devices, devices)
		byNode[truth.Name] = holding{announced, held}
	}
	return byNode, errors.Join(errs...)
}

type others struct{ *vendors.Fleet }

func (f others) holdings(at time.Time) (map[string]holding, error) {
	byNode := map[string]holding{}
	for _, name := range f.Nodes() {
		announced, grants := f.Kubelet(name, at)
		held := map[owner]map[string][]string{}
		for _, g := range grants {
			held[owner{g.Namespace, g.Pod, g.Container}] = g.IDs
		}
		byNode[name] = holding{announced, held}
	}
	return byNode, nil
}

// read is what a device plugin announces of devices, and who owns them.
func read(truth []gpusim.DeviceTruth, devices []gpusim.DeviceInfo) (announced map[string][]string, held map[owner]map[string][]string) {
	instances := map[string]string{} // UUID by the truth's id
	for _, d := range devices {
		for _, in := range d.Instances {
			instances[fmt.Sprintf("%s/%d", d.UUID, in.ID)] = in.UUID
		}
	}
	announced, held = map[string][]string{}, map[owner]map[string][]string{}
	give := func(o owner, resource, id string) {
		if held[o] == nil {
			held[o] = map[string][]string{}
		}
		held[o][resource] = append(held[o][resource], id)
	}
	for _, d := range truth {
		resource, id := "nvidia.com/gpu", kubelet.GPUID(d.UUID)
		if d.MIG != "" {
			resource, id = "nvidia.com/mig-"+d.MIG, instances[d.ID]
		}
		if len(d.Sharers) == 0 {
			announced[resource] = append(announced[resource], id)
			if d.Pod != "" {
				give(owner{d.Namespace, d.Pod, d.Container}, resource, id)
			}
			continue
		}
		last := 0
		for _, s := range d.Sharers {
			last = max(last, s.Replica)
			give(owner{s.Namespace, s.Pod, s.Container}, resource, kubelet.ReplicaID(id, s.Replica))
		}
		for i := range last + 1 {
			announced[resource] = append(announced[resource], kubelet.ReplicaID(id, i))
		}
	}
	return announced, held
}

// set gives the kubelet what is not as it was.
func (n *node) set(announced map[string][]string, held map[owner]map[string][]string) error {
	for resource := range n.announced {
		if len(announced[resource]) == 0 {
			n.kubelet.SetDevices(resource, nil)
		}
	}
	for resource, ids := range announced {
		if !slices.Equal(ids, n.announced[resource]) {
			n.kubelet.SetDevices(resource, kubelet.Devices(ids...))
		}
	}
	n.announced = announced
	for o, was := range n.held {
		if !same(was, held[o]) {
			n.kubelet.Release(kubelet.Pod{Namespace: o.namespace, Name: o.pod})
			for other := range n.held { // its other containers are given theirs again
				if other.namespace == o.namespace && other.pod == o.pod {
					delete(n.held, other)
				}
			}
		}
	}
	var errs []error
	for o, resources := range held {
		if n.held[o] != nil {
			continue
		}
		for resource, ids := range resources {
			errs = append(errs, n.kubelet.Force(kubelet.Pod{Namespace: o.namespace, Name: o.pod}, o.container, resource, kubelet.Devices(ids...)...))
		}
	}
	n.held = held
	return errors.Join(errs...)
}

func same(a, b map[string][]string) bool {
	if len(a) != len(b) {
		return false
	}
	for resource, ids := range a {
		if !slices.Equal(ids, b[resource]) {
			return false
		}
	}
	return true
}
