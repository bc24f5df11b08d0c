// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const gpu = "nvidia.com/gpu"

var llama, trainer = Pod{Namespace: "inference", Name: "llama-0"}, Pod{Namespace: "training", Name: "job-0"}

// bench is a kubelet behind its socket and a client of it.
type bench struct {
	t      *testing.T
	k      *Kubelet
	socket string
	client podresources.PodResourcesListerClient
}

func serve(t *testing.T, o Options) *bench {
	t.Helper()
	// Not t.TempDir(): a socket's path is short, a test's name may not be.
	dir, err := os.MkdirTemp("", "kubelet")
	require.NoError(t, err)
	if o.QPS == 0 {
		o.QPS = -1 // a test asks as often as it likes
	}
	b := &bench{t: t, k: New(o), socket: filepath.Join(dir, "kubelet.sock")}
	require.NoError(t, b.k.Serve(b.socket))
	t.Cleanup(func() {
		b.k.Stop()
		require.NoError(t, os.RemoveAll(dir))
	})
	b.client = b.dial()
	return b
}

// dial makes a client with its own connection.
func (b *bench) dial() podresources.PodResourcesListerClient {
	conn, err := grpc.NewClient("unix://"+b.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = conn.Close() })
	return podresources.NewPodResourcesListerClient(conn)
}

func (b *bench) list() *podresources.ListPodResourcesResponse {
	b.t.Helper()
	r, err := b.tryList(b.t.Context())
	require.NoError(b.t, err)
	return r
}

func (b *bench) tryList(ctx context.Context, o ...grpc.CallOption) (*podresources.ListPodResourcesResponse, error) {
	return b.client.List(ctx, &podresources.ListPodResourcesRequest{}, o...)
}

func (b *bench) allocatable() []string {
	b.t.Helper()
	r, err := b.client.GetAllocatableResources(b.t.Context(), &podresources.AllocatableResourcesRequest{})
	require.NoError(b.t, err)
	return ids(r.GetDevices())
}

// pods lists what the API reports of each container, as namespace/pod/container.
func (b *bench) pods() map[string][]string {
	b.t.Helper()
	out := map[string][]string{}
	for _, p := range b.list().GetPodResources() {
		for _, c := range p.GetContainers() {
			key := p.GetNamespace() + "/" + p.GetName() + "/" + c.GetName()
			out[key] = append(out[key], ids(c.GetDevices())...)
			if out[key] == nil {
				out[key] = []string{}
			}
		}
	}
	return out
}

func ids(entries []*podresources.ContainerDevices) []string {
	out := []string{}
	for _, e := range entries {
		out = append(out, e.GetDeviceIds()...)
	}
	slices.Sort(out)
	return out
}

func (b *bench) allocate(p Pod, container, resource string, n int) []string {
	b.t.Helper()
	got, err := b.k.Allocate(p, container, resource, n)
	require.NoError(b.t, err)
	return got
}
