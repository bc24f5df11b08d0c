// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Driver is the name of NVIDIA's DRA driver for GPUs.
const Driver = "gpu.nvidia.com"

// Device classes that CreateDeviceClasses creates.
const (
	ClassGPU = "gpu.nvidia.com" // whole GPUs
	ClassMIG = "mig.nvidia.com"
	// ClassExtended are whole GPUs for pods that ask for nvidia.com/gpu.
	ClassExtended = "extended.gpu.nvidia.com"
)

// CreateDeviceClasses creates the classes of NVIDIA's driver, where missing.
func CreateDeviceClasses(ctx context.Context, client kubernetes.Interface) error {
	extended := "nvidia.com/gpu"
	for _, class := range []struct {
		name, kind string
		extended   *string
	}{{ClassGPU, "gpu", nil}, {ClassMIG, "mig", nil}, {ClassExtended, "gpu", &extended}} {
		expression := fmt.Sprintf("device.driver == '%s' && device.attributes['%s'].type == '%s'", Driver, Driver, class.kind)
		_, err := client.ResourceV1().DeviceClasses().Create(ctx, &resourcev1.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: class.name},
			Spec: resourcev1.DeviceClassSpec{
				Selectors:            []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}},
				ExtendedResourceName: class.extended,
			},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// pool is the one pool of a node's devices, named after the node. Its methods may be
// called at the same time.
type pool struct {
	client kubernetes.Interface
	node   string
	uid    types.UID // of the node

	mu         sync.Mutex // guards what follows
	generation int64
}

// publish writes the node's ResourceSlice: the pool has one slice, in a generation of
// its own.
func (p *pool) publish(ctx context.Context, devices []Device) error {
	p.mu.Lock()
	p.generation++
	spec := resourcev1.ResourceSliceSpec{
		Driver:   Driver,
		NodeName: &p.node,
		Pool:     resourcev1.ResourcePool{Name: p.node, Generation: p.generation, ResourceSliceCount: 1},
	}
	p.mu.Unlock()
	for _, d := range devices {
		spec.Devices = append(spec.Devices, draDevice(d))
	}

	slices := p.client.ResourceV1().ResourceSlices()
	name := p.node + "-" + Driver
	current, err := slices.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		controller := true
		_, err = slices.Create(ctx, &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Node", Name: p.node, UID: p.uid, Controller: &controller},
			}},
			Spec: spec,
		}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	current.Spec = spec
	_, err = slices.Update(ctx, current, metav1.UpdateOptions{})
	return err
}

// draDevice describes a device as the driver does.
func draDevice(d Device) resourcev1.Device {
	text := func(s string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &s} }
	version := func(s string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{VersionValue: &s} }
	memory := d.GPU.MemoryMiB
	attributes := map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		"type":                            text("gpu"),
		"uuid":                            text(d.GPU.UUID),
		"productName":                     text(d.GPU.Model),
		"brand":                           text("Nvidia"),
		"driverVersion":                   version(semantic(d.GPU.Driver)),
		"cudaDriverVersion":               version("13.0.0"),
		"resource.kubernetes.io/pciBusID": text(d.GPU.PCIBusID),
		"resource.kubernetes.io/pcieRoot": text("pci" + d.GPU.PCIBusID[:len("0000:53")]),
	}
	if d.MIG != nil {
		attributes["type"] = text("mig")
		attributes["uuid"] = text(d.MIG.UUID)
		attributes["parentUUID"] = text(d.GPU.UUID)
		attributes["profile"] = text(d.MIG.Profile)
		memory = d.MIG.MemoryMiB
	}
	return resourcev1.Device{
		Name:       d.draName(),
		Attributes: attributes,
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
			"memory": {Value: *resource.NewQuantity(int64(memory)<<20, resource.BinarySI)},
		},
	}
}

// semantic writes a driver's version as a semantic version: 580.126.09 is
// 580.126.9.
func semantic(version string) string {
	parts := strings.Split(version, ".")
	for i, part := range parts {
		if trimmed := strings.TrimLeft(part, "0"); trimmed != "" {
			parts[i] = trimmed
		}
	}
	return strings.Join(parts, ".")
}

// podClaims are the names of a pod's ResourceClaims, by the name that its spec
// gives them. One that is not there yet is left out.
func podClaims(pod *corev1.Pod) map[string]string {
	names := map[string]string{}
	for _, c := range pod.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			names[c.Name] = *c.ResourceClaimName
		}
	}
	for _, s := range pod.Status.ResourceClaimStatuses {
		if s.ResourceClaimName != nil {
			names[s.Name] = *s.ResourceClaimName
		}
	}
	return names
}
