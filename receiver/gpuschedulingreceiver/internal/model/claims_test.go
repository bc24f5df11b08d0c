// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serves is the driver of a class.
func serves(class string) string {
	if strings.HasSuffix(class, ".nvidia.com") {
		return driver
	}
	return class
}

func (w *world) addClasses() {
	for _, name := range []string{driver, "mig.nvidia.com", "nic.example.com", "another.nvidia.com"} {
		w.Classes = append(w.Classes, &resourcev1.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(w.now.Add(-pick(w, 0, time.Hour)))},
			Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
				Expression: fmt.Sprintf("device.driver == %q && true", serves(name)),
			}}}},
		})
	}
}

func (w *world) addClaim() {
	if own := slices.DeleteFunc(slices.Clone(w.Claims), func(c *resourcev1.ResourceClaim) bool { return strings.HasPrefix(c.Name, "extended") }); len(own) > 4 {
		return
	}
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pick(w, "team-a", "team-b"), Name: w.name("claim")}}
	for i := range 1 + w.IntN(2) {
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, resourcev1.DeviceRequest{
			Name: fmt.Sprint("r", i), Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: pick(w, driver, driver, "mig.nvidia.com", "nic.example.com"), AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: pick[int64](w, 1, 1, 2),
			},
		})
	}
	w.Claims = append(w.Claims, c)
}

// serve gives a pod devices of a claim of its own for one of its extended resources, as the
// scheduler does.
func (w *world) serve(p *corev1.Pod) {
	resource := pick[corev1.ResourceName](w, "nvidia.com/gpu", "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "amd.com/gpu", "example.com/fpga")
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: w.name("extended")}}
	c.Status.Allocation = &resourcev1.AllocationResult{}
	status := &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: c.Name}
	for i := range p.Spec.Containers {
		q := p.Spec.Containers[i].Resources.Requests[resource]
		if q.IsZero() || q.Value() > 16 {
			continue
		}
		request := fmt.Sprintf("container-%d-request-0", i)
		status.RequestMappings = append(status.RequestMappings, corev1.ContainerExtendedResourceRequest{
			ContainerName: p.Spec.Containers[i].Name, ResourceName: string(resource), RequestName: request,
		})
		by := pick(w, driver, driver, driver, "nic.example.com")
		for n := range q.Value() {
			c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
				Request: request, Driver: by, Pool: "p", Device: fmt.Sprint("gpu-", n),
			})
		}
	}
	if len(status.RequestMappings) > 0 {
		p.Status.ExtendedResourceClaimStatus = status
		w.Claims = append(slices.Clone(w.Claims), c)
	}
}

// class has another extended resource served by a class.
func (w *world) class() {
	i := w.IntN(len(w.Classes))
	c := w.Classes[i].DeepCopy()
	c.Spec.ExtendedResourceName = nil
	if resource := pick(w, "", "nvidia.com/gpu", "amd.com/gpu", "amd.com/gpu", "nvidia.com/mig-1g.10gb"); resource != "" {
		c.Spec.ExtendedResourceName = &resource
	}
	w.Classes = slices.Clone(w.Classes)
	w.Classes[i] = c
}

// allocate gives a claim devices, or takes them.
func (w *world) allocate() {
	if len(w.Claims) == 0 {
		return
	}
	i := w.IntN(len(w.Claims))
	c := w.Claims[i].DeepCopy()
	w.Claims = slices.Clone(w.Claims)
	w.Claims[i] = c
	if c.Status.Allocation != nil {
		c.Status.Allocation = nil
		return
	}
	c.Status.Allocation = &resourcev1.AllocationResult{}
	for _, r := range c.Spec.Devices.Requests {
		for n := range r.Exactly.Count {
			c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
				Request: r.Name, Driver: serves(r.Exactly.DeviceClassName), Pool: "p", Device: fmt.Sprint("gpu-", n),
			})
		}
	}
}
