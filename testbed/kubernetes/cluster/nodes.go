// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// NodeSpec describes a node.
type NodeSpec struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
	// Capacity by resource, such as nvidia.com/gpu: 8. CPU, memory and pods
	// have values large enough to be no matter.
	Capacity map[corev1.ResourceName]resource.Quantity
}

// AddNode creates a node and returns when pods can be scheduled to it.
func (c *Cluster) AddNode(ctx context.Context, spec NodeSpec) error {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	maps.Copy(capacity, spec.Capacity)
	labels := map[string]string{
		corev1.LabelHostname:   spec.Name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
	}
	maps.Copy(labels, spec.Labels)
	annotations := map[string]string{annotationNode: "fake"}
	maps.Copy(annotations, spec.Annotations)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: spec.Name, Labels: labels, Annotations: annotations},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: spec.Name}, {Type: corev1.NodeInternalIP, Address: host}},
			NodeInfo:  corev1.NodeSystemInfo{KubeletVersion: "v1.37.2", OperatingSystem: "linux", Architecture: "amd64"},
		},
	}
	if _, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return err
	}
	return c.Wait(ctx, "node "+spec.Name, func(ctx context.Context) error {
		node, err := c.client.CoreV1().Nodes().Get(ctx, spec.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(node.Spec.Taints) > 0 {
			return fmt.Errorf("tainted: %v", node.Spec.Taints)
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return errors.New("not ready")
	})
}

// SetCapacity changes what a node has of these resources, as a kubelet does when
// a device plugin reports its devices.
func (c *Cluster) SetCapacity(ctx context.Context, node string, capacity map[corev1.ResourceName]resource.Quantity) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"capacity": capacity, "allocatable": capacity}})
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// DeleteNode removes a node. Its pods are removed by the control plane.
func (c *Cluster) DeleteNode(ctx context.Context, node string) error {
	return c.client.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{})
}

// Cordon keeps new pods off a node, or lets them in again.
func (c *Cluster) Cordon(ctx context.Context, node string, off bool) error {
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, off)
	_, err := c.client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}

// SetReady has the kubelet of a node report that it is not ready, or that it is again.
func (c *Cluster) SetReady(ctx context.Context, node string, ready bool) error {
	value := `"true"`
	if ready {
		value = "null"
	}
	nodes := c.client.CoreV1().Nodes()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, annotationNotReady, value)
	if _, err := nodes.Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil || ready {
		return err // KWOK reports a node ready that has no such annotation
	}
	patch = []byte(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"KubeletNotReady"}]}}`)
	_, err := nodes.Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// Drain cordons a node, evicts its pods, those of DaemonSets excepted, and
// returns when they are gone.
func (c *Cluster) Drain(ctx context.Context, node string) error {
	if err := c.Cordon(ctx, node, true); err != nil {
		return err
	}
	return c.Wait(ctx, "drain of "+node, func(ctx context.Context) error {
		pods, err := c.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		if err != nil {
			return err
		}
		left := 0
		for _, pod := range pods.Items {
			if owner := metav1.GetControllerOf(&pod); owner != nil && owner.Kind == "DaemonSet" {
				continue
			}
			left++
			if pod.DeletionTimestamp != nil {
				continue
			}
			err := c.client.CoreV1().Pods(pod.Namespace).EvictV1(ctx,
				&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}})
			// Refused by a disruption budget: the next round tries again.
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsTooManyRequests(err) {
				return err
			}
		}
		if left > 0 {
			return fmt.Errorf("%d pods left", left)
		}
		return nil
	})
}
