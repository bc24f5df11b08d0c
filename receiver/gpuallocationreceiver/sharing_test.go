// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient/k8sfake"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/nodefake"
)

func koordinatorPod(name, allocated string) *corev1.Pod {
	return nodefake.Annotated("ml", name, map[string]string{"scheduling.koordinator.sh/device-allocated": allocated})
}

func koordinatorDevice(gpus ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device",
		"metadata": map[string]any{"name": "node-a", "resourceVersion": "1"}, "spec": map[string]any{"devices": gpus},
	}}
}

// What schedulers write is followed: pods, the node's object, and Koordinator's own.
func TestSharing(t *testing.T) {
	a := k8sfake.New(t)
	node0 := nodeOf(false, "nvidia.com/gpu.memory", "81920")
	a.Set("nodes", node0)
	half := koordinatorPod("half", `{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-memory-ratio":50}}]}`)
	elsewhere := koordinatorPod("elsewhere", `{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-memory-ratio":50}}]}`)
	elsewhere.Spec.NodeName = "node-b"
	a.Set("pods", half, elsewhere)
	a.Set("devices", koordinatorDevice(map[string]any{"id": gpuA, "minor": int64(0), "type": "gpu"}))
	s := &script{node: node{
		Devices: map[string][]string{gpuName: {gpuB + "-0", gpuB + "-1"}},
		Pods:    []pod{{Namespace: "ml", Name: "half"}, {Namespace: "ml", Name: "elsewhere"}, holds("ml", "vgpu", gpuName, gpuB+"-1")},
	}}
	r := kubeRun(t, s, a, func(c *Config) { c.Sharing, c.DRA.Enabled = []string{"hami", "koordinator"}, false })
	r.start()
	defer r.stop()

	schedulable := map[string]int64{"gpu.node.schedulable": 1}
	first := "ml/half/main " + gpuA + "::0 0.5 koordinator.sh/gpu koordinator true"
	r.await("without HAMi's annotation", []string{first, "ml/vgpu/main node-a/" + gpuB + "-1 0.5 nvidia.com/gpu time_slicing false"}, schedulable)
	require.Eventually(t, func() bool { return a.Watching("pods") == 1 && a.Watching("devices") == 1 && a.Watching("nodes") == 1 }, long, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		return assert.ObjectsAreEqual(map[string]float64{"node": 0, "pods": 0, "koordinator_devices": 0}, r.apiAges())
	}, long, 10*time.Millisecond)

	vgpu := nodefake.Annotated("ml", "vgpu", map[string]string{"hami.io/vgpu-devices-allocated": gpuB + ",NVIDIA,20480,0:;"})
	a.Send("pods", "ADDED", vgpu)
	r.await("a pod", []string{first, "ml/vgpu/main " + gpuB + "::0 0.25 nvidia.com/gpu hami true"}, schedulable)

	// Another amount of memory in the node's own list changes the share.
	registered := nodeOf(false, "nvidia.com/gpu.memory", "81920")
	registered.Annotations = map[string]string{"hami.io/node-nvidia-register": gpuB + ",10,40960,100,A100,0,true:"}
	registered.ResourceVersion = "2"
	a.Send("nodes", "MODIFIED", registered)
	r.await("the node", []string{first, "ml/vgpu/main " + gpuB + "::0 0.5 nvidia.com/gpu hami true"}, schedulable)

	moved := koordinatorDevice(map[string]any{"id": gpuC, "minor": int64(0), "type": "gpu"})
	moved.SetResourceVersion("2")
	a.Send("devices", "MODIFIED", moved)
	r.await("Koordinator's list", []string{
		"ml/half/main " + gpuC + "::0 0.5 koordinator.sh/gpu koordinator true", "ml/vgpu/main " + gpuB + "::0 0.5 nvidia.com/gpu hami true",
	}, schedulable)

	broken := nodefake.Annotated("ml", "vgpu", map[string]string{"hami.io/vgpu-devices-allocated": gpuB + ",NVIDIA,much,0:;"})
	broken.ResourceVersion = "3"
	a.Send("pods", "MODIFIED", broken)
	r.await("a broken annotation", []string{
		"ml/half/main " + gpuC + "::0 0.5 koordinator.sh/gpu koordinator true", "ml/vgpu/main node-a/" + gpuB + "-1 0.5 nvidia.com/gpu time_slicing false",
	}, schedulable)
	polls := s.polls()
	require.Eventually(t, func() bool { return s.polls() > polls+2 }, long, 10*time.Millisecond)
	logged := r.logs.FilterMessage("what a scheduler wrote on a pod cannot be used: which board it has is not known").All()
	require.Len(t, logged, 1, "once, not with each answer")
	assert.Equal(t, map[string]any{
		"scheduler": "hami", "k8s.namespace.name": "ml", "k8s.pod.name": "vgpu", "cause": "the annotation does not have the scheduler's form",
	}, logged[0].ContextMap())
	m, err := r.telemetry.GetMetric("otelcol_gpu_allocation_annotations_unusable")
	require.NoError(t, err)
	p := m.Data.(metricdata.Sum[int64]).DataPoints[0]
	scheduler, _ := p.Attributes.Value("scheduler")
	problem, _ := p.Attributes.Value("problem")
	assert.Equal(t, "hami malformed", scheduler.AsString()+" "+problem.AsString())
	assert.Greater(t, p.Value, int64(1), "it counts with each")
}

// A cluster without Koordinator's resource, and a service account without the right, are
// logged with what is to be done.
func TestSharingDenied(t *testing.T) {
	a := k8sfake.New(t)
	a.Set("nodes", nodeOf(false))
	a.Status("pods", 403)
	a.Status("devices", 404)
	s := oneOfTwo()
	r := kubeRun(t, s, a, func(c *Config) { c.Sharing, c.DRA.Enabled = []string{"koordinator"}, false })
	r.start()
	defer r.stop()
	require.Eventually(t, func() bool {
		return r.requests("pods", k8sclient.ResultDenied) > 0 && r.requests("koordinator_devices", k8sclient.ResultNotServed) > 0
	}, long, 10*time.Millisecond)
	remedies := ""
	for _, line := range r.logs.All() {
		if remedy, ok := line.ContextMap()["remedy"].(string); ok {
			remedies += remedy + "\n"
		}
	}
	assert.Contains(t, remedies, "list and watch on pods")
	assert.Contains(t, remedies, "take koordinator out of sharing")
}

// Pods that may not be read may have parts of any board that Koordinator shares: none is free.
func TestBoardsOfPodsThatMayNotBeRead(t *testing.T) {
	a := k8sfake.New(t)
	a.Set("nodes", nodeOf(false))
	half := koordinatorPod("half", `{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-memory-ratio":50}}]}`)
	a.Set("pods", half)
	a.Set("devices", koordinatorDevice(map[string]any{"id": gpuA, "minor": int64(0), "type": "gpu"}, map[string]any{"id": gpuC, "minor": int64(1), "type": "gpu"}))
	a.Status("pods", 403)
	s := &script{node: node{Devices: map[string][]string{gpuName: {gpuB}}, Pods: []pod{{Namespace: "ml", Name: "half"}}}}
	r := kubeRun(t, s, a, func(c *Config) { c.Sharing, c.DRA.Enabled = []string{"koordinator"}, false })
	r.start()
	defer r.stop()
	schedulable := map[string]int64{"gpu.node.schedulable": 1}
	free := "-/-/- " + gpuB + " 0 nvidia.com/gpu none true"
	require.Eventually(t, func() bool { return r.requests("pods", k8sclient.ResultDenied) > 0 && a.Watching("devices") == 1 }, long, 10*time.Millisecond)
	r.await("the device plugin's alone", []string{free}, schedulable)
	a.Status("pods", 0)
	r.await("the pods", []string{
		"-/-/- " + gpuC + " 0 koordinator.sh/gpu koordinator true", free, "ml/half/main " + gpuA + "::0 0.5 koordinator.sh/gpu koordinator true",
	}, schedulable)
}
