// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package simkubelet

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// owners is what a node's kubelet answers, as "namespace/pod/container resource n",
// and how many devices it has of each resource.
func owners(t *testing.T, socket string) (held, allocatable []string) {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	client := podresources.NewPodResourcesListerClient(conn)
	list, err := client.List(t.Context(), &podresources.ListPodResourcesRequest{})
	require.NoError(t, err)
	count := map[string]int{}
	for _, p := range list.PodResources {
		for _, c := range p.Containers {
			for _, d := range c.Devices {
				count[fmt.Sprintf("%s/%s/%s %s", p.Namespace, p.Name, c.Name, d.ResourceName)] += len(d.DeviceIds)
			}
		}
	}
	lines := func(count map[string]int) (out []string) {
		for key, n := range count {
			out = append(out, fmt.Sprintf("%s %d", key, n))
		}
		slices.Sort(out)
		return out
	}
	held = lines(count)
	all, err := client.GetAllocatableResources(t.Context(), &podresources.AllocatableResourcesRequest{})
	require.NoError(t, err)
	clear(count)
	for _, d := range all.Devices {
		count[d.ResourceName] += len(d.DeviceIds)
	}
	return held, lines(count)
}

func TestKubeletsFollowTheFleet(t *testing.T) {
	start := time.Now()
	fleet, err := gpusim.New(gpusim.Config{Seed: 1, Nodes: []gpusim.Node{{
		Name: "a", Version: "4.6", Model: "A100-SXM4-40GB", Devices: 4, MIG: map[string][]string{"3": {"1g.5gb", "2g.10gb"}},
		Pods: []gpusim.Pod{
			{Namespace: "n", Name: "two", Container: "main", Devices: []string{"0", "1"}, Load: "idle"},
			{Namespace: "n", Name: "part", Container: "main", Devices: []string{"3:0"}, Load: "idle"},
		},
	}}}, func() time.Time { return start })
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "k") // short, for a socket
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	var passed atomic.Int64
	now := func() time.Time { return start.Add(time.Duration(passed.Load())) }
	k, err := Start(fleet, dir, now)
	require.NoError(t, err)
	defer k.Stop()

	held, allocatable := owners(t, k.Socket("a"))
	assert.Equal(t, []string{"n/part/main nvidia.com/mig-1g.5gb 1", "n/two/main nvidia.com/gpu 2"}, held)
	assert.Equal(t, []string{"nvidia.com/gpu 3", "nvidia.com/mig-1g.5gb 1", "nvidia.com/mig-2g.10gb 1"}, allocatable)

	require.NoError(t, k.Restart("a", kubelet.Faults{NoPods: true}))
	forgot, _ := owners(t, k.Socket("a"))
	assert.Empty(t, forgot, "a kubelet that is back without its pods")
	k.SetFaults("a", kubelet.Faults{})
	again, _ := owners(t, k.Socket("a"))
	assert.Equal(t, held, again)

	require.NoError(t, fleet.SetPods("a", []gpusim.Pod{
		{Namespace: "n", Name: "two", Container: "main", Devices: []string{"1"}, Load: "idle"},
		{Namespace: "n", Name: "shares", Container: "main", Devices: []string{"2::1"}, Load: "idle"},
	}))
	require.NoError(t, fleet.SetMIG("a", 3, nil))
	passed.Store(int64(2 * time.Second))
	require.NoError(t, k.follow(now()))
	held, allocatable = owners(t, k.Socket("a"))
	assert.Equal(t, []string{"n/shares/main nvidia.com/gpu 1", "n/two/main nvidia.com/gpu 1"}, held)
	assert.Equal(t, []string{"nvidia.com/gpu 5"}, allocatable, "device 2 has two shares")

	_, err = Start(fleet, strings.Repeat("long", 40), time.Now)
	assert.Error(t, err, "no such folder, and too long a path")
}
