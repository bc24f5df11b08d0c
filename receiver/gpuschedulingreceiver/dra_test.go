// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuschedulingreceiver

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient/k8sfake"
)

const nvDriver = "gpu.nvidia.com"

// draSlice has devices of node a, which has no device plugin.
func draSlice(devices int) *resourcev1.ResourceSlice {
	node := "a"
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "a-gpu"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: nvDriver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: "a", Generation: 1, ResourceSliceCount: 1},
	}}
	for i := range devices {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("gpu-", i)})
	}
	return s
}

// allocated is a claim that holds devices.
func allocated(name string, devices int) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name}, Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{}}}
	for i := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: "r", Driver: nvDriver, Pool: "a", Device: fmt.Sprint("gpu-", i),
		})
	}
	return c
}

// class serves an extended resource.
func class(name, expression, resource string) *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceClassSpec{
		Selectors:            []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}},
		ExtendedResourceName: &resource,
	}}
}

// claimPod runs on node a with a claim.
func claimPod(name, claim string) *corev1.Pod {
	p := gpuPod(name, "a", 0)
	p.UID, p.Status.Phase = "1", corev1.PodRunning
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}
	return p
}

// figures are the points of metrics that begin with a prefix, of one resource.
func figures(next *consumertest.MetricsSink, prefix, resource string) []string {
	return slices.DeleteFunc(text(last(next)), func(line string) bool {
		return !strings.HasPrefix(line, prefix) || !strings.Contains(line, ","+resource+" ")
	})
}

// Devices that are served through DRA are counted under their driver, whichever way they are
// requested. What cannot be read leaves them out: it is not known which of them are free. Node b,
// with a device plugin, has its figures all the same.
func TestDevicesOfDrivers(t *testing.T) {
	held := gpuPod("held", "a", 8)
	held.UID, held.Status.Phase = "1", corev1.PodRunning
	held.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
		ResourceClaimName: "c",
		RequestMappings:   []corev1.ContainerExtendedResourceRequest{{ContainerName: "main", ResourceName: "nvidia.com/gpu", RequestName: "r"}},
	}
	of := func(requested, free int) []string {
		return []string{
			"gpu.node.devices allocatable,a,gpu.nvidia.com 8", fmt.Sprintf("gpu.node.devices requested,a,gpu.nvidia.com %d", requested),
			fmt.Sprintf("gpu.node.devices free,a,gpu.nvidia.com %d", free), "gpu.node.devices stranded,a,gpu.nvidia.com 0",
		}
	}
	for name, tt := range map[string]struct {
		pod    *corev1.Pod
		denied string
		want   []string
	}{
		"a claim":                               {claimPod("held", "c"), "", of(8, 0)},
		"an extended resource":                  {held, "", of(8, 0)},
		"a claim of other devices":              {claimPod("held", "nic"), "", of(0, 8)},
		"claims that may not be read":           {claimPod("held", "c"), "resourceclaims", nil},
		"no claims of extended resources":       {held, "resourceclaims", nil},
		"devices that may not be read":          {claimPod("held", "c"), "resourceslices", nil},
		"classes, which nothing depends on":     {claimPod("held", "c"), "deviceclasses", of(8, 0)},
		"no devices for the extended resources": {held, "resourceslices", nil},
	} {
		t.Run(name, func(t *testing.T) {
			api := k8sfake.New(t)
			api.Set("nodes", gpuNode("a", 0), gpuNode("b", 4))
			api.Set("resourceslices", draSlice(8))
			api.Set("resourceclaims", allocated("c", 8))
			api.Set("pods", tt.pod)
			if tt.denied != "" {
				api.Status(tt.denied, http.StatusForbidden)
			}
			next := &consumertest.MetricsSink{}
			startReceiver(t, api, next)
			require.Eventually(t, func() bool { return len(figures(next, "gpu.node.devices", "nvidia.com/gpu")) > 0 }, patience, 10*time.Millisecond)
			assert.ElementsMatch(t, tt.want, figures(next, "gpu.node.devices", nvDriver))
			assert.Equal(t, len(tt.want) > 0, len(figures(next, "gpu.scheduling.fit", nvDriver)) > 0)
			assert.ElementsMatch(t, []string{
				"gpu.node.devices allocatable,NVIDIA L4,b,nvidia.com/gpu 4", "gpu.node.devices requested,NVIDIA L4,b,nvidia.com/gpu 0",
				"gpu.node.devices free,NVIDIA L4,b,nvidia.com/gpu 4", "gpu.node.devices stranded,NVIDIA L4,b,nvidia.com/gpu 0",
			}, figures(next, "gpu.node.devices", "nvidia.com/gpu"))
		})
	}
}

// A role may be changed while the gateway runs: what claims held before is no fact any more.
func TestClaimsThatMayNotBeReadAnyMore(t *testing.T) {
	api := k8sfake.New(t)
	api.Set("nodes", gpuNode("a", 0), gpuNode("b", 4))
	api.Set("resourceslices", draSlice(8))
	api.Set("resourceclaims", allocated("c", 4))
	waits := claimPod("waits", "c2")
	waits.UID, waits.Spec.NodeName, waits.Status.Phase = "2", "", corev1.PodPending
	api.Set("pods", claimPod("one", "c"), waits)
	next := &consumertest.MetricsSink{}
	startReceiver(t, api, next)
	free := func(value string) func() bool {
		return func() bool { return slices.Contains(text(last(next)), "gpu.node.devices free,a,gpu.nvidia.com "+value) }
	}
	require.Eventually(t, free("4"), patience, 10*time.Millisecond)
	require.Eventually(t, func() bool { return api.Watching("resourceclaims") == 1 }, patience, 10*time.Millisecond)
	expired := map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired"}
	api.Status("resourceclaims", http.StatusForbidden)
	api.Send("resourceclaims", "ERROR", expired)
	require.Eventually(t, free("ends"), patience, 10*time.Millisecond)
	assert.Len(t, figures(next, "gpu.node.devices", "nvidia.com/gpu"), 4, "no claim holds devices of a device plugin")
	api.Status("resourceclaims", 0)
	require.Eventually(t, free("4"), patience, 10*time.Millisecond)
}

// A pod that waits is counted under the driver that will serve it, where its devices are free, as
// long as no device plugin could serve it.
func TestPodsThatWaitForDevicesOfDrivers(t *testing.T) {
	const ofNVIDIA = `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"`
	for name, tt := range map[string]struct {
		nodes   []runtime.Object
		class   *resourcev1.DeviceClass
		denied  int
		counted string
	}{
		"a class serves it":                   {[]runtime.Object{gpuNode("a", 0)}, class(nvDriver, ofNVIDIA, "nvidia.com/gpu"), 0, nvDriver},
		"a device plugin might too":           {[]runtime.Object{gpuNode("a", 0), gpuNode("b", 4)}, class(nvDriver, ofNVIDIA, "nvidia.com/gpu"), 0, "nvidia.com/gpu"},
		"a class of another resource":         {[]runtime.Object{gpuNode("a", 0)}, class(nvDriver, ofNVIDIA, "nvidia.com/mig"), 0, "nvidia.com/gpu"},
		"a class that does not name a driver": {[]runtime.Object{gpuNode("a", 0)}, class(nvDriver, "true", "nvidia.com/gpu"), 0, "nvidia.com/gpu"},
		"a class of other devices":            {[]runtime.Object{gpuNode("a", 0)}, class("nic", `device.driver == "nic.example.com"`, "nvidia.com/gpu"), 0, "nvidia.com/gpu"},
		"classes may not be read":             {[]runtime.Object{gpuNode("a", 0)}, class(nvDriver, ofNVIDIA, "nvidia.com/gpu"), http.StatusForbidden, "nvidia.com/gpu"},
	} {
		t.Run(name, func(t *testing.T) {
			api := k8sfake.New(t)
			api.Set("nodes", tt.nodes...)
			api.Set("resourceslices", draSlice(8))
			api.Set("deviceclasses", tt.class)
			api.Status("deviceclasses", tt.denied)
			waits := gpuPod("waits", "", 4)
			waits.UID = "1"
			api.Set("pods", waits)
			next := &consumertest.MetricsSink{}
			startReceiver(t, api, next)
			pending := func() []string {
				return slices.DeleteFunc(text(last(next)), func(l string) bool { return !strings.HasPrefix(l, "gpu.scheduling.pending.devices") })
			}
			require.Eventually(t, func() bool { return len(pending()) > 0 }, patience, 10*time.Millisecond)
			assert.Equal(t, []string{"gpu.scheduling.pending.devices insufficient_gpu,research,ml," + tt.counted + " 4"}, pending())
		})
	}
}
