// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/vendors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
)

// Options of a node. Name, Model and GPUs must be given.
type Options struct {
	Name   string
	Labels map[string]string
	Model  string           // of the boards, as gpusim names them
	GPUs   int              // 1 to 8
	MIG    map[int][]string // profiles by GPU index; a GPU that is not there is whole
	// TimeSlicing is into how many replicas the plugin cuts each device; 0 and
	// 1 are whole ones.
	TimeSlicing int
	// DRA serves the GPUs by the DRA driver in place of the device plugin.
	DRA bool
	// Exporter is dcgm-exporter's version, as gpusim names it. Empty: 4.6.
	Exporter string
	// Fields are those of the exporter's page, as gpusim names them.
	Fields string
	// HideOwners leaves pods out of the exporter's labels.
	HideOwners bool
	// Vendor are boards of another vendor than NVIDIA, in place of Model, GPUs and what is
	// of dcgm-exporter and NVIDIA's plugin. Its Name and Pods are the node's.
	Vendor  *vendors.Node
	Kubelet kubelet.Options
	Seed    uint64 // of what differs between nodes by chance; 0 is derived from the name
}

// Node is a simulated node. Its methods may be called concurrently.
type Node struct {
	opts     Options
	cluster  *cluster.Cluster
	kubelet  *kubelet.Kubelet
	boards   boards
	exporter *exporter // nil: of another vendor
	pool     *pool
	dir      string
	pods     *follower
	cancel   context.CancelFunc
	decisions

	mu        sync.Mutex // guards what follows
	devices   inventory
	replicas  int
	announced map[string]bool // resources of the device plugin
	down      bool            // the kubelet is
}

// Start adds a node to the cluster and starts what runs on it. Stop ends it.
func Start(ctx context.Context, c *cluster.Cluster, o Options) (_ *Node, err error) {
	if o.Exporter == "" {
		o.Exporter = "4.6"
	}
	if o.Seed == 0 {
		for _, b := range []byte(o.Name) {
			o.Seed = o.Seed*131 + uint64(b)
		}
	}
	n := &Node{opts: o, cluster: c, kubelet: kubelet.New(o.Kubelet), replicas: max(o.TimeSlicing, 1),
		pool:      &pool{client: c.Client(), node: o.Name},
		decisions: decisions{failures: map[kubelet.Pod]error{}, owners: map[string][]kubelet.Owner{}}}
	defer func() {
		if err != nil {
			n.Stop()
			err = fmt.Errorf("node %s: %w", o.Name, err)
		}
	}()
	// Short: the path of a unix socket has 107 bytes at most.
	if n.dir, err = os.MkdirTemp("", "k"); err != nil {
		return nil, err
	}
	if err := n.startBoards(); err != nil {
		return nil, err
	}
	if err := n.readDevices(); err != nil {
		return nil, err
	}
	if err := n.kubelet.Serve(n.Socket()); err != nil {
		return nil, err
	}
	if err := n.register(ctx); err != nil {
		return nil, err
	}
	if o.DRA {
		if err := n.pool.publish(ctx, n.Devices()); err != nil {
			return nil, err
		}
	}
	return n, n.follow(ctx)
}

// startBoards starts the boards of a node and their exporter.
func (n *Node) startBoards() (err error) {
	if n.opts.Vendor != nil {
		n.boards, err = startOthers(n.opts, n.Sysfs())
		return err
	}
	if n.exporter, err = startExporter(n.opts); err == nil {
		n.boards = n.exporter
	}
	return err
}

// Stop ends what runs on the node. The node stays in the cluster, as one does
// that lost power.
func (n *Node) Stop() {
	if n.cancel != nil {
		n.cancel()
		n.pods.wait()
	}
	n.kubelet.Stop()
	if n.boards != nil {
		n.boards.close()
	}
	if n.dir != "" {
		_ = os.RemoveAll(n.dir)
	}
}

// Name of the node.
func (n *Node) Name() string { return n.opts.Name }

// Socket is the path of the kubelet's pod-resources socket.
func (n *Node) Socket() string { return filepath.Join(n.dir, "kubelet.sock") }

// ExporterURL is where the exporter's page is.
func (n *Node) ExporterURL() string { return n.boards.url() }

// Sysfs is a tree of the node's sysfs, of boards of other vendors than NVIDIA.
func (n *Node) Sysfs() string { return filepath.Join(n.dir, "sys") }

// Kubelet is the node's kubelet, for faults.
func (n *Node) Kubelet() *kubelet.Kubelet { return n.kubelet }

// Fleet is the node's GPUs, for faults and telemetry's own truth; those of other vendors
// than NVIDIA are Others.
func (n *Node) Fleet() *gpusim.Fleet { return n.exporter.fleet }

// StopKubelet stops the kubelet: its socket disappears, and pods that come and
// go meanwhile are met at StartKubelet.
func (n *Node) StopKubelet() {
	n.mu.Lock()
	n.down = true
	n.mu.Unlock()
	n.kubelet.Stop()
}

// StartKubelet starts the kubelet again with the allocations of its checkpoint.
func (n *Node) StartKubelet() error {
	if err := n.kubelet.Serve(n.Socket()); err != nil {
		return err
	}
	n.mu.Lock()
	n.down = false
	n.mu.Unlock()
	n.pods.signal()
	return nil
}

// RestartKubelet stops the kubelet and starts it after a while.
func (n *Node) RestartKubelet(ctx context.Context, after time.Duration) error {
	n.StopKubelet()
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return errors.Join(ctx.Err(), n.StartKubelet())
	}
	return n.StartKubelet()
}

// Others are the node's boards of another vendor than NVIDIA, for faults and telemetry's
// own truth; nil for NVIDIA's.
func (n *Node) Others() *vendors.Fleet {
	if o, ok := n.boards.(*others); ok {
		return o.fleet
	}
	return nil
}
