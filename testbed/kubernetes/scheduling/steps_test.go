// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
)

const (
	driver    = "gpu.nvidia.com"
	namespace = "team"
)

// class is of all devices of the driver.
const class = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com'"}}], extendedResourceName: nvidia.com/gpu}
`

// life is what happens to a cluster, one thing after the other.
type life struct {
	*world
	*rand.Rand
	made  int
	nodes []string
	pods  []string
}

func one[T any](l *life, of ...T) T { return of[l.IntN(len(of))] }

func (l *life) name(kind string) string {
	l.made++
	return fmt.Sprintf("%s-%d", kind, l.made)
}

// addNode adds one with GPUs of a device plugin, or with some for claims.
func (l *life) addNode() {
	ctx, name := l.t.Context(), l.name("node")
	spec := cluster.NodeSpec{
		Name: name, Labels: map[string]string{"nvidia.com/gpu.product": one(l, "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-40GB")},
		Capacity: map[corev1.ResourceName]resource.Quantity{
			corev1.ResourceCPU: resource.MustParse(one(l, "8", "32", "96")), corev1.ResourceMemory: resource.MustParse(one(l, "64Gi", "512Gi")),
		},
	}
	if len(l.nodes)%3 != 2 {
		spec.Capacity["nvidia.com/gpu"] = resource.MustParse(one(l, "4", "8"))
	}
	require.NoError(l.t, l.AddNode(ctx, spec))
	l.nodes = append(l.nodes, name)
	if len(l.nodes)%3 != 0 {
		return
	}
	product := "NVIDIA L40S"
	var devices []resourcev1.Device
	for i := range 4 {
		devices = append(devices, resourcev1.Device{
			Name: fmt.Sprintf("gpu-%d", i), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"productName": {StringValue: &product}},
		})
	}
	_, err := l.Client().ResourceV1().ResourceSlices().Create(ctx, &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &name, Devices: devices, Pool: resourcev1.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1},
		},
	}, metav1.CreateOptions{})
	require.NoError(l.t, err)
}

// addPods adds pods as somebody would start them.
func (l *life) addPods() {
	for range 1 + l.IntN(3) {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: l.name("pod"), Labels: map[string]string{}, Annotations: map[string]string{}},
			Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{l.container("main", true)}},
		}
		if l.IntN(3) == 0 {
			p.Labels["kueue.x-k8s.io/queue-name"] = one(l, "gold", "silver")
		}
		if l.IntN(4) == 0 {
			p.Annotations[cluster.AnnotationCompleteAfter] = "1s"
		}
		if l.IntN(6) == 0 {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}}
		}
		switch l.IntN(4) {
		case 0:
			p.Spec.InitContainers = []corev1.Container{l.container("init", true)}
		case 1:
			always := corev1.ContainerRestartPolicyAlways
			sidecar := l.container("sidecar", false)
			sidecar.RestartPolicy = &always
			p.Spec.InitContainers = []corev1.Container{sidecar, l.container("init", true)}
		case 2:
			p.Spec.Containers = append(p.Spec.Containers, l.container("beside", l.IntN(2) == 0))
		}
		switch l.IntN(8) {
		case 0:
			p.Spec.NodeSelector = map[string]string{"zone": "nowhere"}
		case 1:
			p.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
		}
		if l.IntN(4) == 0 {
			l.claim(p)
		}
		_, err := l.Client().CoreV1().Pods(namespace).Create(l.t.Context(), p, metav1.CreateOptions{})
		require.NoError(l.t, err)
		l.pods = append(l.pods, p.Name)
	}
}

func (l *life) container(name string, devices bool) corev1.Container {
	list := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(one(l, "0", "500m", "4")), corev1.ResourceMemory: resource.MustParse(one(l, "0", "8Gi", "64Gi")),
	}
	if devices {
		list["nvidia.com/gpu"] = resource.MustParse(one(l, "0", "1", "1", "2", "3", "8"))
	}
	return corev1.Container{Name: name, Image: "example.com/" + name, Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}
}

// claim gives a pod devices through a ResourceClaim, and nothing else.
func (l *life) claim(p *corev1.Pod) {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: l.name("claim")}}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{
		Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: driver, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(1 + l.IntN(3))},
	}}
	_, err := l.Client().ResourceV1().ResourceClaims(namespace).Create(l.t.Context(), c, metav1.CreateOptions{})
	require.NoError(l.t, err)
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &c.Name}}
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].Resources = corev1.ResourceRequirements{}
	}
	p.Spec.InitContainers = nil
	p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
}

// step does one thing and returns what.
func (l *life) step() string {
	ctx := l.t.Context()
	switch n := l.IntN(14); {
	case n > 11:
		require.NoError(l.t, l.SetReady(ctx, one(l, l.nodes...), l.IntN(3) == 0))
		return "a node is not ready, or again"
	case n < 4:
		l.addPods()
		return "pods come"
	case n < 6 && len(l.pods) > 0:
		i := l.IntN(len(l.pods))
		name := l.pods[i]
		l.pods = append(l.pods[:i:i], l.pods[i+1:]...)
		require.NoError(l.t, l.Client().CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
		return "a pod goes"
	case n < 8:
		require.NoError(l.t, l.Cordon(ctx, one(l, l.nodes...), l.IntN(2) == 0))
		return "cordon"
	case n < 10:
		l.taint(ctx, one(l, l.nodes...))
		return "taint"
	case n == 10 && len(l.nodes) < 8:
		l.addNode()
		return "a node comes"
	case len(l.nodes) > 4:
		i := l.IntN(len(l.nodes))
		name := l.nodes[i]
		l.nodes = append(l.nodes[:i:i], l.nodes[i+1:]...)
		require.NoError(l.t, l.DeleteNode(ctx, name))
		_ = l.Client().ResourceV1().ResourceSlices().Delete(ctx, name, metav1.DeleteOptions{})
		return "a node goes"
	default:
		require.NoError(l.t, l.SetCapacity(ctx, l.nodes[0], map[corev1.ResourceName]resource.Quantity{"nvidia.com/gpu": resource.MustParse(one(l, "2", "6"))}))
		return "devices are lost"
	}
}

func (l *life) taint(ctx context.Context, name string) {
	node, err := l.Client().CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	require.NoError(l.t, err)
	node.Spec.Taints = nil
	if key := one(l, "", "nvidia.com/gpu", "dedicated"); key != "" {
		node.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}
	}
	if _, err := l.Client().CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
		l.t.Log(err) // it was changed meanwhile
	}
}
