// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package day

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/node"
)

// Devices that are held through ResourceClaims.

func exactly(count int64, admin bool) resourcev1.ResourceClaimSpec {
	r := &resourcev1.ExactDeviceRequest{DeviceClassName: node.ClassGPU, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}
	if admin {
		r.AdminAccess = &admin
	}
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: r}}}}
}

func (w *world) stepClaim() {
	n := w.nodes[2]
	name := "pair"
	_, err := w.Client().ResourceV1().ResourceClaimTemplates(namespace).Create(w.t.Context(), &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourcev1.ResourceClaimTemplateSpec{Spec: exactly(2, false)},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	pod := template("claimer", n, "", 0)
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: &name}}
	pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpus"}}
	w.deploy("claimer", 1, pod)
	w.held(n, 2)
}

// A pod that asks for nvidia.com/gpu as ever, on a node with a driver that serves it.
func (w *world) stepExtended() {
	n := w.nodes[2]
	w.deploy("classic", 1, template("classic", n, gpu, 1))
	w.held(n, 3)
}

// A monitor may look at all devices, held or not, and holds none of them.
func (w *world) stepAdmin() {
	n := w.nodes[2]
	_, err := w.Client().CoreV1().Namespaces().Patch(w.t.Context(), namespace, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"resource.kubernetes.io/admin-access":"true"}}}`), metav1.PatchOptions{})
	require.NoError(w.t, err)
	name := "admin"
	_, err = w.Client().ResourceV1().ResourceClaims(namespace).Create(w.t.Context(), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: exactly(4, true),
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	pod := template("monitor", n, "", 0)
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "all", ResourceClaimName: &name}}
	pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "all"}}
	created := time.Now()
	w.pod("monitor", pod)
	w.eventually("the kubelet lists the monitor's devices", func(context.Context) error {
		for _, owners := range n.Truth().Owners {
			if !slices.ContainsFunc(owners, func(h kubelet.Owner) bool { return h.Claim == adminClaim }) {
				return fmt.Errorf("%v", owners)
			}
		}
		return nil
	})
	w.held(n, 3)
	// The claim has to be read before it is known that it holds nothing.
	w.ledger.Undecided(n.Name(), created, time.Now())
}
