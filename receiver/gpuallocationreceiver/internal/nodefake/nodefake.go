// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package nodefake is a node for tests: a kubelet that answers by its real protocol, and
// what DRA has of the node.
package nodefake

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Node is what a kubelet knows: the ids that its plugins registered, by resource,
// and who has them. It answers as the kubelet does: in the order of maps, one
// entry for each id and NUMA node, containers without devices among the others.
type Node struct {
	Devices map[string][]string
	Pods    []Pod
}

// Pod is a pod of a Node.
type Pod struct {
	Namespace, Name string
	Containers      []Container
}

// Container is a container of a Pod, with the ids that it has by resource.
type Container struct {
	Name    string
	Devices map[string][]string
	Claims  []Claimed
}

// Claimed is a device of a ResourceClaim. Its pool is the node.
type Claimed struct{ Claim, Driver, Device, Share string }

// ClaimsOf is a pod with one container, main, that has devices of one claim of
// gpu.nvidia.com.
func ClaimsOf(namespace, name, claim string, devices ...string) Pod {
	c := Container{Name: "main"}
	for _, d := range devices {
		c.Claims = append(c.Claims, Claimed{claim, "gpu.nvidia.com", d, ""})
	}
	return Pod{namespace, name, []Container{c}}
}

// Holds is a pod with one container, main, that holds ids of one resource.
func Holds(namespace, name, resource string, ids ...string) Pod {
	return Pod{namespace, name, []Container{{Name: "main", Devices: map[string][]string{resource: ids}}}}
}

// List is the answer to List.
func (n *Node) List(order *rand.Rand) *podresources.ListPodResourcesResponse {
	response := &podresources.ListPodResourcesResponse{
		PodResources: []*podresources.PodResources{{
			Namespace: "kube-system", Name: "kube-proxy-x7k2p",
			Containers: []*podresources.ContainerResources{{Name: "kube-proxy"}},
		}},
	}
	for _, p := range n.Pods {
		out := &podresources.PodResources{Namespace: p.Namespace, Name: p.Name}
		for _, c := range p.Containers {
			resources := &podresources.ContainerResources{Name: c.Name, Devices: perNUMANode(c.Devices, order)}
			for _, claim := range c.Claims {
				device := &podresources.ClaimResource{
					DriverName: claim.Driver, PoolName: "node-a", DeviceName: claim.Device,
					CdiDevices: []*podresources.CDIDevice{{Name: "k8s." + claim.Driver + "/claim=uid-" + claim.Device}},
				}
				if claim.Share != "" {
					device.ShareId = &claim.Share
				}
				last := len(resources.DynamicResources) - 1
				if last < 0 || resources.DynamicResources[last].ClaimName != claim.Claim {
					resources.DynamicResources = append(resources.DynamicResources, &podresources.DynamicResource{ClaimName: claim.Claim, ClaimNamespace: p.Namespace})
					last++
				}
				of := resources.DynamicResources[last]
				of.ClaimResources = append(of.ClaimResources, device)
			}
			out.Containers = append(out.Containers, resources)
		}
		response.PodResources = append(response.PodResources, out)
	}
	order.Shuffle(len(response.PodResources), func(i, j int) {
		response.PodResources[i], response.PodResources[j] = response.PodResources[j], response.PodResources[i]
	})
	return response
}

// Allocatable is the answer to GetAllocatableResources.
func (n *Node) Allocatable(order *rand.Rand) *podresources.AllocatableResourcesResponse {
	return &podresources.AllocatableResourcesResponse{Devices: perNUMANode(n.Devices, order)}
}

func perNUMANode(devices map[string][]string, order *rand.Rand) []*podresources.ContainerDevices {
	var out []*podresources.ContainerDevices
	for _, resource := range slices.Sorted(maps.Keys(devices)) {
		for _, id := range devices[resource] {
			for numa := range int64(2) {
				out = append(out, &podresources.ContainerDevices{
					ResourceName: resource, DeviceIds: []string{id},
					Topology: &podresources.TopologyInfo{Nodes: []*podresources.NUMANode{{ID: numa}}},
				})
			}
		}
	}
	order.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// Kubelet serves a node on a unix socket, by the real protocol.
type Kubelet struct {
	podresources.UnimplementedPodResourcesListerServer
	t      *testing.T
	Socket string
	server *grpc.Server

	mu                      sync.Mutex
	Node                    Node
	ListErr, AllocatableErr error
	Hangs                   bool
	order                   *rand.Rand
}

func NewKubelet(t *testing.T) *Kubelet {
	t.Helper()
	// Not t.TempDir(): a socket's path is short, a test's name may not be.
	dir, err := os.MkdirTemp("", "kubelet")
	require.NoError(t, err)
	k := &Kubelet{t: t, Socket: filepath.Join(dir, "kubelet.sock"), order: rand.New(rand.NewPCG(1, 2))}
	t.Cleanup(func() {
		k.Stop()
		require.NoError(t, os.RemoveAll(dir))
	})
	return k
}

// start serves, on a new socket in place of one that is there.
func (k *Kubelet) Start() {
	k.t.Helper()
	if err := os.Remove(k.Socket); !errors.Is(err, fs.ErrNotExist) {
		require.NoError(k.t, err)
	}
	listener, err := net.Listen("unix", k.Socket)
	require.NoError(k.t, err)
	k.server = grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(k.server, k)
	go k.server.Serve(listener) // ends with stop
}

func (k *Kubelet) Stop() {
	if k.server != nil {
		k.server.Stop()
		k.server = nil
	}
}

func (k *Kubelet) Set(f func(*Kubelet)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(k)
}

func (k *Kubelet) List(ctx context.Context, _ *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.Hangs {
		k.mu.Unlock()
		<-ctx.Done()
		k.mu.Lock()
		return nil, ctx.Err()
	}
	if k.ListErr != nil {
		return nil, k.ListErr
	}
	return k.Node.List(k.order), nil
}

func (k *Kubelet) GetAllocatableResources(context.Context, *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.AllocatableErr != nil {
		return nil, k.AllocatableErr
	}
	return k.Node.Allocatable(k.order), nil
}
