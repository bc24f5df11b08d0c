// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleet is what collectors watch: an API server, and nodes with simulated GPUs,
// a kubelet and an exporter, each of which can break. All changes of pods go through
// it, so that the truth is known: a ledger has the owners of each device, a history the
// lives of the pods.
package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/breakable"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/history"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

const (
	Namespace = "inference" // of all pods that hold GPUs
	Container = "main"
	Cluster   = "chaos"
	GPU       = "nvidia.com/gpu" // the resource
)

// FullPages is the node with an exporter that has all fields on its page; the others
// have what an exporter has by default. So some pods of a service have a field
// and some have not, and those must not pull its average down.
const FullPages = "whole"

// base are the pods that are always there: name of the service, node, resource,
// devices, load. chat has one of three pods on each node, so that a silent node
// makes it partial; wide has one of four on two of them, which does not.
var base = []struct {
	service string
	node    int
	profile string
	count   int
	load    gpusim.Load
}{
	{"chat", 0, "", 1, gpusim.Inference}, {"chat", 1, "", 1, gpusim.Inference}, {"chat", 2, "", 1, gpusim.Inference},
	{"wide", 0, "", 1, gpusim.Inference}, {"wide", 1, "", 1, gpusim.Training}, {"wide", 2, "", 1, gpusim.Inference}, {"wide", 2, "", 1, gpusim.Training},
	{"train", 0, "", 2, gpusim.Training}, {"train", 1, "", 2, gpusim.Training},
	{"solo", 2, "mig-3g.40gb", 1, gpusim.Training}, {"notebook", 2, "mig-1g.10gb", 1, gpusim.Idle},
}

// Layouts are the MIG layouts of the board that has them; base fits into each.
var Layouts = [][]string{{"3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"}, {"3g.40gb", "1g.10gb", "1g.10gb"}, {"1g.10gb", "2g.20gb", "3g.40gb"}}

// nodes are what the fleet has: whole GPUs, shared ones, and MIG. The exporter of the
// second asks no kubelet: on a shared GPU the pod that it names last would stand
// for all until the kubelet has answered the agent. The exporter of the first has
// more on its page than the others'.
func nodes() []gpusim.Node {
	no := false
	return []gpusim.Node{
		{Name: FullPages, Version: "4.6", Model: "H100", Devices: 6, PodLabels: true, Fields: "all"},
		{Name: "shared", Version: "4.6", Model: "H100", Devices: 6, Kubernetes: &no},
		{Name: "mig", Version: "4.5", Model: "A100-SXM4-80GB", Devices: 5, MIG: map[string][]string{"4": Layouts[0]}},
	}
}

// Fleet is the nodes, their API server, and what is true about them.
type Fleet struct {
	API     *kubeapi.Server
	Nodes   []*Node
	Ledger  *ownership.Ledger
	History *history.History

	looking sync.Mutex // of the ledger: what a node adds is based on what it had
	sockets string     // folder
	pods    int        // names given
}

// Size and Ports are how many nodes a fleet has, and how many ports Open takes.
func Size() int  { return len(nodes()) }
func Ports() int { return 1 + Size() }

// Open starts a fleet with its base of pods. Kubeconfig is the file that it writes for
// clients of the API server; port returns a free one each time. Close ends the fleet,
// also after an error.
func Open(seed uint64, kubeconfig string, port func() int) (f *Fleet, err error) {
	f = &Fleet{Ledger: ownership.NewLedger(), History: &history.History{}}
	if f.API, err = kubeapi.Serve(kubeapi.New(""), collector.Address(port())); err != nil {
		return f, err
	}
	if err := kubeapi.Kubeconfig(kubeconfig, f.API.URL()); err != nil {
		return f, err
	}
	// Short: the path of a unix socket has 107 bytes at most.
	if f.sockets, err = os.MkdirTemp("", "c"); err != nil {
		return f, err
	}
	for i, config := range nodes() {
		n := &Node{Name: config.Name, fleet: f, replicas: 1}
		if config.Name == "shared" {
			n.replicas = 2
		}
		f.Nodes = append(f.Nodes, n)
		if err := n.open(config, seed, uint64(i), port()); err != nil {
			return f, err
		}
	}
	for _, b := range base {
		p := f.NewPod(b.service)
		p.Count, p.Load, p.Started = b.count, b.load, time.Now().Add(-time.Hour)
		if b.profile != "" {
			p.Resource = "nvidia.com/" + b.profile
		}
		if err := f.Nodes[b.node].Place(p); err != nil {
			return f, err
		}
	}
	return f, nil
}

// open starts all that a node has but its pods.
func (n *Node) open(config gpusim.Node, seed, index uint64, port int) (err error) {
	if n.GPUs, err = gpusim.New(gpusim.Config{Seed: seed + index, Nodes: []gpusim.Node{config}}, time.Now); err != nil {
		return err
	}
	if n.Exporter, err = breakable.NewExporter(n.GPUs, n.Name, port, pace.Interval, seed); err != nil {
		return err
	}
	n.Kubelet = kubelet.New(kubelet.Options{Seed: seed})
	n.Socket = filepath.Join(n.fleet.sockets, n.Name, "kubelet.sock")
	if err := os.Mkdir(filepath.Dir(n.Socket), 0o700); err != nil {
		return err
	}
	if err := n.Kubelet.Serve(n.Socket); err != nil {
		return err
	}
	if err := n.change(n.announce); err != nil {
		return err
	}
	n.labels("success")
	n.exporterPod()
	return nil
}

// Close ends all servers.
func (f *Fleet) Close() {
	for _, n := range f.Nodes {
		if n.Exporter != nil {
			n.Exporter.Close()
		}
		if n.Kubelet != nil {
			n.Kubelet.Stop()
		}
	}
	if f.API != nil {
		f.API.Close()
	}
	if f.sockets != "" {
		_ = os.RemoveAll(f.sockets)
	}
}

// Names are those of the nodes.
func (f *Fleet) Names() (names []string) {
	for _, n := range f.Nodes {
		names = append(names, n.Name)
	}
	return names
}

// NewPod is a pod of a service that holds one whole GPU or share of one.
func (f *Fleet) NewPod(service string) *Pod {
	f.pods++
	return &Pod{Name: fmt.Sprintf("%s-%d", service, f.pods), UID: NewUID(), Service: service, Resource: GPU, Count: 1, Load: gpusim.Inference}
}

var uids struct {
	sync.Mutex
	n int
}

// NewUID makes the uid of a pod.
func NewUID() string {
	uids.Lock()
	defer uids.Unlock()
	uids.n++
	return fmt.Sprintf("00000000-0000-4000-8000-%012x", uids.n)
}
