// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nodefake

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Names in tests.
const (
	NVIDIA  = "gpu.nvidia.com"
	GPUName = "nvidia.com/gpu"
	GPUA    = "GPU-aaaaaaaa-0000-0000-0000-000000000000"
	GPUB    = "GPU-bbbbbbbb-0000-0000-0000-000000000000"
	GPUC    = "GPU-cccccccc-0000-0000-0000-000000000000"
	MIGC    = "MIG-cccccccc-0000-0000-0000-000000000000"
)

// SliceDevice is one of a ResourceSlice; attributes are pairs of name and text.
func SliceDevice(name string, attributes ...string) resourcev1.Device {
	d := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}}
	for i := 0; i < len(attributes); i += 2 {
		d.Attributes[resourcev1.QualifiedName(attributes[i])] = resourcev1.DeviceAttribute{StringValue: &attributes[i+1]}
	}
	return d
}

// WholeGPU is a GPU in a ResourceSlice.
func WholeGPU(name, uuid string) resourcev1.Device {
	return SliceDevice(name, "type", "gpu", "uuid", uuid, "productName", "NVIDIA H100")
}

// MIGDevice is a MIG device of the GPU parent.
func MIGDevice(name, uuid, parent string) resourcev1.Device {
	return SliceDevice(name, "type", "mig", "uuid", uuid, "parentUUID", parent, "profile", "1g.10gb")
}

// ResourceSlice is one of count slices of the pool node-a.
func ResourceSlice(name, driver string, generation, count int64, devices ...resourcev1.Device) *resourcev1.ResourceSlice {
	node := "node-a"
	return &resourcev1.ResourceSlice{
		TypeMeta:   metav1.TypeMeta{Kind: "ResourceSlice", APIVersion: "resource.k8s.io/v1"},
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node, Devices: devices,
			Pool: resourcev1.ResourcePool{Name: "node-a", Generation: generation, ResourceSliceCount: count},
		},
	}
}

// Allocated is a ResourceClaim that has devices, or looks at them (adminAccess).
func Allocated(looked bool, devices ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{}}}
	for _, d := range devices {
		r := resourcev1.DeviceRequestAllocationResult{Driver: NVIDIA, Pool: "node-a", Device: d}
		if looked {
			r.AdminAccess = &looked
		}
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, r)
	}
	return c
}

// Object is the node's object; labels are pairs of key and value.
func Object(unschedulable bool, labels ...string) *corev1.Node {
	n := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{Kind: "Node", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "node-a", ResourceVersion: "1", Labels: map[string]string{}},
		Spec:       corev1.NodeSpec{Unschedulable: unschedulable},
	}
	for i := 0; i < len(labels); i += 2 {
		n.Labels[labels[i]] = labels[i+1]
	}
	return n
}

// Annotated is a pod with one container, main; labels are pairs of key and value.
func Annotated(namespace, name string, annotations map[string]string, labels ...string) *corev1.Pod {
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, ResourceVersion: "1", Annotations: annotations, Labels: map[string]string{},
		},
		Spec: corev1.PodSpec{NodeName: "node-a", Containers: []corev1.Container{{Name: "main"}}},
	}
	for i := 0; i < len(labels); i += 2 {
		p.Labels[labels[i]] = labels[i+1]
	}
	return p
}

// Lines renders metrics, one line per point: owner, hw.id, value, resource,
// sharing, resolved.
func Lines(md pmetric.Metrics) []string {
	out := []string{}
	for _, rm := range md.ResourceMetrics().All() {
		get := func(attrs pcommon.Map, key string) string {
			v, ok := attrs.Get(key)
			if !ok {
				return "-"
			}
			return v.AsString()
		}
		r := rm.Resource().Attributes()
		if rm.ScopeMetrics().At(0).Metrics().At(0).Name() != names.GPUAllocation.Name {
			continue // about the node
		}
		for _, p := range rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().All() {
			a := p.Attributes()
			out = append(out, fmt.Sprintf("%s/%s/%s %s %v %s %s %s",
				get(r, names.K8sNamespaceName), get(r, names.K8sPodName), get(r, names.K8sContainerName),
				get(a, names.HwID), p.DoubleValue(), get(a, names.K8sResourceName), get(a, names.GPUSharing), get(a, names.GPUAllocationResolved)))
		}
	}
	return out
}

// Replicas are the ids of n replicas of a device.
func Replicas(id string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s::%d", id, i)
	}
	return ids
}
