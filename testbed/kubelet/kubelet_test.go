// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

func TestDevicesAreGivenAndComeBack(t *testing.T) {
	b := serve(t, Options{})
	devices := Devices("GPU-a", "GPU-b", "GPU-c", "GPU-d")
	devices[1].Healthy = false
	b.k.SetDevices(gpu, devices)
	assert.Equal(t, []string{"GPU-a", "GPU-c", "GPU-d"}, b.allocatable(), "what is sick is not allocatable")

	assert.Equal(t, []string{"GPU-a", "GPU-c"}, b.allocate(llama, "vllm", gpu, 2))
	assert.Equal(t, []string{"GPU-a", "GPU-c"}, b.allocate(llama, "vllm", gpu, 2), "asked again")
	_, err := b.k.Allocate(trainer, "pytorch", gpu, 2)
	require.ErrorContains(t, err, "2 devices are wanted and 1 are free")
	assert.Equal(t, map[string][]string{"inference/llama-0/vllm": {"GPU-a", "GPU-c"}}, b.pods(), "a pod that was refused is not listed")
	assert.Equal(t, []string{"GPU-a", "GPU-c", "GPU-d"}, b.allocatable(), "given away or not")

	b.k.Release(llama)
	assert.Equal(t, []string{"GPU-a", "GPU-c", "GPU-d"}, b.allocate(trainer, "pytorch", gpu, 3))
	assert.Equal(t, map[string][]Owner{
		"GPU-a": {{Pod: trainer, Container: "pytorch", Resource: gpu}},
		"GPU-c": {{Pod: trainer, Container: "pytorch", Resource: gpu}},
		"GPU-d": {{Pod: trainer, Container: "pytorch", Resource: gpu}},
	}, b.k.Owners())
}

func TestOneEntryForEachDeviceAndNUMANodeInAnyOrder(t *testing.T) {
	b := serve(t, Options{})
	devices := []Device{{ID: "GPU-plain", Healthy: true}}
	for i := range 6 {
		devices = append(devices, Device{ID: fmt.Sprintf("GPU-%d", i), NUMA: []int64{0, 1}, Healthy: true})
	}
	b.k.SetDevices(gpu, devices)
	b.allocate(llama, "vllm", gpu, 7)
	orders := map[string]bool{}
	for range 20 {
		c := b.list().GetPodResources()[0].GetContainers()[0]
		nodes := map[string][]int64{}
		order := ""
		for _, d := range c.GetDevices() {
			require.Len(t, d.GetDeviceIds(), 1)
			id := d.GetDeviceIds()[0]
			order += id + " "
			require.LessOrEqual(t, len(d.GetTopology().GetNodes()), 1)
			for _, n := range d.GetTopology().GetNodes() {
				nodes[id] = append(nodes[id], n.GetID())
			}
		}
		orders[order] = true
		require.Len(t, c.GetDevices(), 13)
		require.Len(t, nodes, 6)
		require.ElementsMatch(t, []int64{0, 1}, nodes["GPU-3"])
	}
	assert.Greater(t, len(orders), 10)
}

func TestContainersThatAreListed(t *testing.T) {
	b := serve(t, Options{})
	b.k.SetDevices(gpu, Devices("GPU-a", "GPU-b"))
	require.NoError(t, b.k.AddPod(llama,
		Container{Name: "download", Kind: Init}, Container{Name: "proxy", Kind: Sidecar}, Container{Name: "vllm"}, Container{Name: "metrics"}))
	require.NoError(t, b.k.AddPod(Pod{Namespace: "kube-system", Name: "dns"}, Container{Name: "coredns"}))
	assert.Equal(t, []string{"GPU-a"}, b.allocate(llama, "download", gpu, 1))
	assert.Equal(t, map[string][]string{
		"inference/llama-0/proxy": {}, "inference/llama-0/vllm": {}, "inference/llama-0/metrics": {}, "kube-system/dns/coredns": {},
	}, b.pods(), "an init container is in no answer, even while it has a device")
	assert.Equal(t, "download", b.k.Owners()["GPU-a"][0].Container)

	assert.Equal(t, []string{"GPU-a", "GPU-b"}, b.allocate(llama, "vllm", gpu, 2), "the init container's device passes on")
	assert.Equal(t, []Owner{{Pod: llama, Container: "vllm", Resource: gpu}}, b.k.Owners()["GPU-a"])
	r, err := b.client.Get(t.Context(), &podresources.GetPodResourcesRequest{PodNamespace: "inference", PodName: "llama-0"})
	require.NoError(t, err)
	var names []string
	for _, c := range r.GetPodResources().GetContainers() {
		names = append(names, c.GetName())
	}
	assert.Equal(t, []string{"proxy", "vllm", "metrics"}, names, "sidecars first")
}

func TestFinishedPods(t *testing.T) {
	for _, old := range []bool{false, true} {
		b := serve(t, Options{ListFinished: old})
		b.k.SetDevices(gpu, Devices("GPU-a"))
		b.allocate(trainer, "pytorch", gpu, 1)
		b.k.Finish(trainer)
		_, err := b.k.Allocate(trainer, "pytorch", gpu, 1)
		require.ErrorContains(t, err, "is finished")
		assert.Equal(t, []string{"GPU-a"}, b.allocate(llama, "vllm", gpu, 1), "its device is free")
		want := map[string][]string{"inference/llama-0/vllm": {"GPU-a"}}
		if old {
			want["training/job-0/pytorch"] = []string{"GPU-a"}
		}
		assert.Equal(t, want, b.pods())
		assert.Len(t, b.k.Owners()["GPU-a"], 1)
	}
}

func TestDevicesThatVanishStayWithTheirContainer(t *testing.T) {
	b := serve(t, Options{})
	const small = "nvidia.com/mig-1g.5gb"
	b.k.SetDevices(small, []Device{{ID: "MIG-old", NUMA: []int64{1}, Healthy: true}})
	b.allocate(llama, "vllm", small, 1)
	b.k.SetDevices(small, nil)
	b.k.SetDevices(gpu, Devices("GPU-a"))
	assert.Equal(t, []string{"GPU-a"}, b.allocatable())
	d := b.list().GetPodResources()[0].GetContainers()[0].GetDevices()
	require.Len(t, d, 1)
	assert.Equal(t, "MIG-old", d[0].GetDeviceIds()[0])
	assert.EqualValues(t, 1, d[0].GetTopology().GetNodes()[0].GetID(), "as the checkpoint has it")
	_, err := b.k.Allocate(trainer, "pytorch", small, 1)
	require.ErrorContains(t, err, "0 are free")
	b.k.Release(llama)
	assert.Empty(t, b.pods())
}

func TestSharesSpreadOverDevices(t *testing.T) {
	for name, announced := range map[string][]Device{
		"NVIDIA": Replicas(Devices("GPU-a", "GPU-b"), 2),
		"GKE":    Devices(GKESharedID("nvidia0", 0), GKESharedID("nvidia0", 1), GKESharedID("nvidia1", 0), GKESharedID("nvidia1", 1)),
	} {
		t.Run(name, func(t *testing.T) {
			b := serve(t, Options{})
			b.k.SetDevices(gpu, announced)
			var got []string
			for i := range 4 {
				got = append(got, b.allocate(Pod{Namespace: "n", Name: fmt.Sprint(i)}, "c", gpu, 1)...)
			}
			assert.Equal(t, []string{announced[0].ID, announced[2].ID, announced[1].ID, announced[3].ID}, got)
		})
	}
}

func TestDevicesOfClaims(t *testing.T) {
	b := serve(t, Options{})
	claim := Claim{Namespace: "inference", Name: "two", UID: "u-1", Devices: []ClaimDevice{
		{Driver: "gpu.nvidia.com", Pool: "node-a", Device: "gpu-0"},
		{Driver: "gpu.nvidia.com", Pool: "node-a", Device: "gpu-1", ShareID: "s-1"},
		{Driver: "other.example", Pool: "node-a", Device: "x", CDI: []string{"other/x=0"}},
	}}
	for _, c := range []string{"vllm", "sidecar", "vllm"} {
		require.NoError(t, b.k.AllocateClaim(llama, c, claim))
	}
	containers := b.list().GetPodResources()[0].GetContainers()
	require.Len(t, containers, 2)
	require.Len(t, containers[0].GetDynamicResources(), 1, "asked again is once")
	r := containers[0].GetDynamicResources()[0]
	assert.Equal(t, []string{"inference", "two"}, []string{r.GetClaimNamespace(), r.GetClaimName()})
	var got []string
	for _, d := range r.GetClaimResources() {
		line := DRAID(d.GetDriverName(), d.GetPoolName(), d.GetDeviceName()) + " " + d.GetShareId()
		for _, c := range d.GetCdiDevices() {
			line += " " + c.GetName()
		}
		got = append(got, line)
	}
	assert.Equal(t, []string{
		"gpu.nvidia.com/node-a/gpu-0  k8s.gpu.nvidia.com/claim=u-1-gpu-0",
		"gpu.nvidia.com/node-a/gpu-1 s-1 k8s.gpu.nvidia.com/claim=u-1-gpu-0 k8s.gpu.nvidia.com/claim=u-1-gpu-1",
		"other.example/node-a/x  other/x=0",
	}, got, "later devices repeat the CDI names of the earlier ones")
	assert.Nil(t, r.GetClaimResources()[0].ShareId, "none is absent, not empty")
	assert.Equal(t, []Owner{
		{Pod: llama, Container: "vllm", Resource: "gpu.nvidia.com", Claim: "inference/two"},
		{Pod: llama, Container: "sidecar", Resource: "gpu.nvidia.com", Claim: "inference/two"},
	}, b.k.Owners()["gpu.nvidia.com/node-a/gpu-0"])
	assert.Empty(t, b.allocatable(), "devices of claims are not in it")

	old := serve(t, Options{NoDynamicResources: true})
	require.NoError(t, old.k.AllocateClaim(llama, "vllm", claim))
	assert.Empty(t, old.list().GetPodResources()[0].GetContainers()[0].GetDynamicResources())
}

func TestGet(t *testing.T) {
	b := serve(t, Options{})
	_, err := b.client.Get(t.Context(), &podresources.GetPodResourcesRequest{PodNamespace: "n", PodName: "p"})
	assert.Equal(t, codes.Unknown, status.Code(err))
	assert.ErrorContains(t, err, "not found")
	b = serve(t, Options{NoGet: true})
	_, err = b.client.Get(t.Context(), &podresources.GetPodResourcesRequest{PodNamespace: "n", PodName: "p"})
	assert.ErrorContains(t, err, "switched off")
}

func TestTwoPodsOfOneName(t *testing.T) {
	b := serve(t, Options{})
	b.k.SetDevices(gpu, Devices("GPU-a", "GPU-b"))
	first, second := Pod{"n", "db-0", "uid-1"}, Pod{"n", "db-0", "uid-2"}
	b.allocate(first, "c", gpu, 1)
	b.allocate(second, "c", gpu, 1)
	assert.Len(t, b.list().GetPodResources(), 2, "the API tells no uid")
	b.k.Release(first)
	assert.Equal(t, map[string][]string{"n/db-0/c": {"GPU-b"}}, b.pods())
}

func TestWhatCannotBe(t *testing.T) {
	k := New(Options{})
	require.ErrorContains(t, k.AddPod(Pod{Name: "p"}), "namespace and name")
	require.ErrorContains(t, k.AddPod(llama, Container{}), "a container needs a name")
	_, err := k.Allocate(llama, "", gpu, 1)
	require.ErrorContains(t, err, "a container needs a name")
	_, err = k.Allocate(llama, "c", gpu, -1)
	require.Error(t, err)
	require.ErrorContains(t, k.AllocateClaim(llama, "c", Claim{}), "claim needs namespace")
	require.ErrorContains(t, k.AllocateClaim(llama, "c", Claim{Namespace: "n", Name: "x", Devices: []ClaimDevice{{}}}), "driver, pool and device")
	require.ErrorContains(t, k.Force(Pod{}, "c", gpu), "namespace and name")
	require.Error(t, k.SetSocketMode(0))
	require.ErrorContains(t, k.Serve("/nonexistent/kubelet.sock"), "cannot listen")
	k.Stop()
	k.Kill()
	k.Release(llama)
	k.Finish(llama)
}

func TestIDs(t *testing.T) {
	const u = "5c06efd5-1ab8-5ab9-9c22-000000000001"
	assert.Equal(t, "GPU-"+u, GPUID(u))
	assert.Equal(t, "GPU-"+u, GPUID(GPUID(u)))
	assert.Equal(t, "MIG-"+u, MIGID(MIGID(u)))
	assert.Equal(t, "MIG-GPU-"+u+"/7/0", OldMIGID("GPU-"+u, 7, 0))
	assert.Equal(t, "GPU-"+u+"::3", ReplicaID(GPUID(u), 3))
	assert.Equal(t, "nvidia2", GKEID(2))
	assert.Equal(t, "nvidia2/gi7/vgpu1", GKESharedID(GKEMIGID(2, 7), 1))
}
