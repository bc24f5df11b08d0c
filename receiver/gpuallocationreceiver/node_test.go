// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

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

// node is what a kubelet knows: the ids that its plugins registered, by resource,
// and who has them. It answers as the kubelet does: in the order of maps, one
// entry for each id and NUMA node, containers without devices among the others.
type node struct {
	devices map[string][]string
	pods    []pod
}

type pod struct {
	namespace, name string
	containers      []container
}

type container struct {
	name    string
	devices map[string][]string
	claims  []claimedDevice
}

// claimedDevice is a device of a ResourceClaim. Its pool is the node.
type claimedDevice struct{ claim, driver, device, share string }

// claimsOf is a pod with one container, main, that has devices of one claim of
// gpu.nvidia.com.
func claimsOf(namespace, name, claim string, devices ...string) pod {
	c := container{name: "main"}
	for _, d := range devices {
		c.claims = append(c.claims, claimedDevice{claim, "gpu.nvidia.com", d, ""})
	}
	return pod{namespace, name, []container{c}}
}

// holds is a pod with one container, main, that holds ids of one resource.
func holds(namespace, name, resource string, ids ...string) pod {
	return pod{namespace, name, []container{{name: "main", devices: map[string][]string{resource: ids}}}}
}

func (n *node) list(order *rand.Rand) *podresources.ListPodResourcesResponse {
	response := &podresources.ListPodResourcesResponse{
		PodResources: []*podresources.PodResources{{
			Namespace: "kube-system", Name: "kube-proxy-x7k2p",
			Containers: []*podresources.ContainerResources{{Name: "kube-proxy"}},
		}},
	}
	for _, p := range n.pods {
		out := &podresources.PodResources{Namespace: p.namespace, Name: p.name}
		for _, c := range p.containers {
			resources := &podresources.ContainerResources{Name: c.name, Devices: perNUMANode(c.devices, order)}
			for _, claim := range c.claims {
				device := &podresources.ClaimResource{
					DriverName: claim.driver, PoolName: "node-a", DeviceName: claim.device,
					CdiDevices: []*podresources.CDIDevice{{Name: "k8s." + claim.driver + "/claim=uid-" + claim.device}},
				}
				if claim.share != "" {
					device.ShareId = &claim.share
				}
				last := len(resources.DynamicResources) - 1
				if last < 0 || resources.DynamicResources[last].ClaimName != claim.claim {
					resources.DynamicResources = append(resources.DynamicResources, &podresources.DynamicResource{ClaimName: claim.claim, ClaimNamespace: p.namespace})
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

func (n *node) allocatable(order *rand.Rand) *podresources.AllocatableResourcesResponse {
	return &podresources.AllocatableResourcesResponse{Devices: perNUMANode(n.devices, order)}
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

// fakeKubelet serves a node on a unix socket, by the real protocol.
type fakeKubelet struct {
	podresources.UnimplementedPodResourcesListerServer
	t      *testing.T
	socket string
	server *grpc.Server

	mu                      sync.Mutex
	node                    node
	listErr, allocatableErr error
	hangs                   bool
	order                   *rand.Rand
}

func newFakeKubelet(t *testing.T) *fakeKubelet {
	t.Helper()
	// Not t.TempDir(): a socket's path is short, a test's name may not be.
	dir, err := os.MkdirTemp("", "kubelet")
	require.NoError(t, err)
	k := &fakeKubelet{t: t, socket: filepath.Join(dir, "kubelet.sock"), order: rand.New(rand.NewPCG(1, 2))}
	t.Cleanup(func() {
		k.stop()
		require.NoError(t, os.RemoveAll(dir))
	})
	return k
}

// start serves, on a new socket in place of one that is there.
func (k *fakeKubelet) start() {
	k.t.Helper()
	if err := os.Remove(k.socket); !errors.Is(err, fs.ErrNotExist) {
		require.NoError(k.t, err)
	}
	listener, err := net.Listen("unix", k.socket)
	require.NoError(k.t, err)
	k.server = grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(k.server, k)
	go k.server.Serve(listener) // ends with stop
}

func (k *fakeKubelet) stop() {
	if k.server != nil {
		k.server.Stop()
		k.server = nil
	}
}

func (k *fakeKubelet) set(f func(*fakeKubelet)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(k)
}

func (k *fakeKubelet) List(ctx context.Context, _ *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.hangs {
		k.mu.Unlock()
		<-ctx.Done()
		k.mu.Lock()
		return nil, ctx.Err()
	}
	if k.listErr != nil {
		return nil, k.listErr
	}
	return k.node.list(k.order), nil
}

func (k *fakeKubelet) GetAllocatableResources(context.Context, *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.allocatableErr != nil {
		return nil, k.allocatableErr
	}
	return k.node.allocatable(k.order), nil
}
