// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/capacity"
)

func keeper(t *testing.T) *NodeKeeper {
	m, err := resourcenames.New(resourcenames.Default())
	require.NoError(t, err)
	return &NodeKeeper{Resources: m, GPUTaints: []string{"nvidia.com/gpu", "gpu.intel.com/*"}}
}

func node(change func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{productLabel: "NVIDIA-H100-80GB-HBM3"}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				"cpu": resource.MustParse("15500m"), "memory": resource.MustParse("1Gi"), "pods": resource.MustParse("110"),
				"nvidia.com/gpu": resource.MustParse("8"),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	if change != nil {
		change(n)
	}
	return n
}

func TestNodes(t *testing.T) {
	h100 := []capacity.Devices{{Kind: capacity.Kind{Resource: "nvidia.com/gpu", Model: "NVIDIA H100 80GB HBM3"}, Allocatable: 8}}
	taint := func(key string, effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: key, Value: "☃ odd", Effect: effect}} }
	}
	allocatable := func(resourceName, quantity string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Status.Allocatable[corev1.ResourceName(resourceName)] = resource.MustParse(quantity)
		}
	}
	for name, tt := range map[string]struct {
		change  func(*corev1.Node)
		closed  capacity.Stranded
		odd     int
		devices []capacity.Devices
	}{
		"plain":            {nil, capacity.Schedulable, 0, h100},
		"cordoned":         {func(n *corev1.Node) { n.Spec.Unschedulable, n.Status.Conditions = true, nil }, capacity.Cordoned, 0, h100},
		"no condition":     {func(n *corev1.Node) { n.Status.Conditions = nil }, capacity.NotReady, 0, h100},
		"not ready":        {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, capacity.NotReady, 0, h100},
		"taint":            {taint("team", corev1.TaintEffectNoSchedule), capacity.Tainted, 0, h100},
		"taint, executing": {taint("team", corev1.TaintEffectNoExecute), capacity.Tainted, 0, h100},
		"preference":       {taint("team", corev1.TaintEffectPreferNoSchedule), capacity.Schedulable, 0, h100},
		"taint of GPUs":    {taint("nvidia.com/gpu", corev1.TaintEffectNoSchedule), capacity.Schedulable, 0, h100},
		"taint of a list":  {taint("gpu.intel.com/x", corev1.TaintEffectNoSchedule), capacity.Schedulable, 0, h100},
		"a similar taint":  {taint("nvidia.com/gpus", corev1.TaintEffectNoSchedule), capacity.Tainted, 0, h100},
		"half a device":    {allocatable("nvidia.com/gpu", "500m"), capacity.Schedulable, 1, nil},
		"fewer than none":  {allocatable("nvidia.com/gpu", "-1"), capacity.Schedulable, 1, nil},
		"too many":         {allocatable("nvidia.com/gpu", "9E"), capacity.Schedulable, 1, nil},
		"of another vendor": {allocatable("amd.com/gpu", "4"), capacity.Schedulable, 0, append(
			[]capacity.Devices{{Kind: capacity.Kind{Resource: "amd.com/gpu"}, Allocatable: 4}}, h100...)},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := keeper(t).Keep(node(tt.change))
			require.True(t, ok)
			assert.Equal(t, &capacity.Node{Name: "a", CPU: 15_500, Memory: 1 << 30, Closed: tt.closed, Odd: tt.odd, Devices: tt.devices}, got)
		})
	}
	_, ok := keeper(t).Keep(&corev1.Pod{})
	assert.False(t, ok)
}

func TestModels(t *testing.T) {
	for label, want := range map[string]string{
		"":                                   "",
		"NVIDIA-H100-80GB-HBM3":              "NVIDIA H100 80GB HBM3",
		"NVIDIA-A100-SXM4-80GB":              "NVIDIA A100-SXM4-80GB",
		"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb":   "NVIDIA A100-SXM4-40GB",
		"NVIDIA-A100-PCIE-40GB-SHARED":       "NVIDIA A100-PCIE-40GB",
		"NVIDIA-A100-80GB-PCIe":              "NVIDIA A100 80GB PCIe",
		"NVIDIA-H100-NVL-MIG-1g.12gb-SHARED": "NVIDIA H100 NVL",
		"NVIDIA-RTX-PRO-6000-MIG-1g.24gb-me": "NVIDIA RTX PRO 6000",
		"Tesla-T4":                           "Tesla T4",
		"Tesla-V100-SXM2-16GB":               "Tesla V100-SXM2-16GB",
		"NVIDIA-L40S":                        "NVIDIA L40S",
		"NVIDIA-RTX-6000-Ada-Generation":     "NVIDIA RTX 6000 Ada Generation",
		"GRID-A100-10C":                      "GRID A100-10C",
		"NVIDIA-A40-48Q":                     "NVIDIA A40-48Q",
	} {
		assert.Equal(t, want, modelOf(map[string]string{productLabel: label}, "nvidia.com/gpu"), label)
	}
	assert.Empty(t, modelOf(map[string]string{productLabel: "NVIDIA-L4"}, "amd.com/gpu"))
	assert.Equal(t, "NVIDIA L4", modelOf(map[string]string{productLabel: "NVIDIA-L4"}, "nvidia.com/mig-1g.10gb"))
}

func slice(poolName string, generation, count int64, products ...string) *resourcev1.ResourceSlice {
	on := "a"
	s := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.nvidia.com", NodeName: &on,
		Pool: resourcev1.ResourcePool{Name: poolName, Generation: generation, ResourceSliceCount: count},
	}}
	for _, product := range products {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"productName": {StringValue: &product}},
		})
	}
	return s
}

func TestSlices(t *testing.T) {
	keep := SliceKeeper{Drivers: map[string]bool{"gpu.nvidia.com": true}}
	kind := func(model string) capacity.Kind { return capacity.Kind{Resource: "gpu.nvidia.com", Model: model} }
	parts, tainted := slice("p", 1, 1, "H100", "H100"), slice("p", 1, 1, "H100", "H100")
	parts.Spec.Devices[1].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "one"}}
	tainted.Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "ill", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	other := slice("p", 1, 1, "H100")
	other.Spec.Driver = "nic.example.com"
	anywhere := slice("p", 1, 1, "H100")
	anywhere.Spec.NodeName = nil
	for name, tt := range map[string]struct {
		slices []*resourcev1.ResourceSlice
		want   []capacity.Devices
	}{
		"none":           {nil, nil},
		"one":            {[]*resourcev1.ResourceSlice{slice("p", 1, 1, "H100", "H100")}, []capacity.Devices{{Kind: kind("H100"), Allocatable: 2}}},
		"two of a pool":  {[]*resourcev1.ResourceSlice{slice("p", 1, 2, "H100"), slice("p", 1, 2, "H100")}, []capacity.Devices{{Kind: kind("H100"), Allocatable: 2}}},
		"incomplete":     {[]*resourcev1.ResourceSlice{slice("p", 1, 2, "H100")}, []capacity.Devices{{Kind: kind("H100"), Allocatable: 1, Unknown: true}}},
		"older":          {[]*resourcev1.ResourceSlice{slice("p", 1, 1, "H100"), slice("p", 2, 1, "L4", "L4")}, []capacity.Devices{{Kind: kind("L4"), Allocatable: 2}}},
		"several models": {[]*resourcev1.ResourceSlice{slice("p", 1, 1, "H100", "L4"), slice("q", 1, 1, "H100")}, []capacity.Devices{{Kind: kind(""), Allocatable: 3}}},
		"models by pool": {[]*resourcev1.ResourceSlice{slice("p", 1, 1, "H100"), slice("q", 1, 1, "L4")}, []capacity.Devices{{Kind: kind(""), Allocatable: 2}}},
		"of parts":       {[]*resourcev1.ResourceSlice{parts}, []capacity.Devices{{Kind: kind("H100"), Allocatable: 2, Unknown: true}}},
		"a tainted one":  {[]*resourcev1.ResourceSlice{tainted}, []capacity.Devices{{Kind: kind("H100"), Allocatable: 1}}},
		"another driver": {[]*resourcev1.ResourceSlice{other}, nil},
		"of no one node": {[]*resourcev1.ResourceSlice{anywhere, slice("p", 1, 1, "H100")}, []capacity.Devices{{Kind: kind(""), Unknown: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			var all []Slice
			for _, s := range tt.slices {
				if kept, ok := keep.Keep(s); ok {
					all = append(all, kept)
				}
			}
			before := &capacity.Node{Name: "a"}
			got := WithSlices([]*capacity.Node{before, {Name: "b"}}, all)
			assert.Equal(t, tt.want, got[0].Devices)
			assert.Equal(t, name != "of no one node", len(got[1].Devices) == 0)
			assert.Empty(t, before.Devices, "a node is immutable")
		})
	}
}
