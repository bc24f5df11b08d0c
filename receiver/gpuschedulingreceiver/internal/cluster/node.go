// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster follows the nodes of a Kubernetes cluster, and the devices that drivers
// of dynamic resource allocation have on them.
package cluster

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/capacity"
)

// NodeKeeper takes of a Node what is needed.
type NodeKeeper struct {
	Resources *resourcenames.Matcher
	// GPUTaints are keys of taints that pods with devices tolerate: names, or their
	// beginning followed by "*".
	GPUTaints []string
}

// Keep is the node as far as it is needed. Devices of ResourceSlices are not among its own.
func (k *NodeKeeper) Keep(obj any) (*capacity.Node, bool) {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return nil, false
	}
	has := gpupods.AmountOf(n.Status.Allocatable)
	out := &capacity.Node{Name: n.Name, Closed: k.closed(n), CPU: has.CPU, Memory: has.Memory}
	for _, name := range slices.Sorted(maps.Keys(n.Status.Allocatable)) {
		if !k.Resources.Match(string(name)) {
			continue
		}
		count, ok := devices(n.Status.Allocatable[name])
		if !ok {
			out.Odd++
			continue
		}
		out.Devices = append(out.Devices, capacity.Devices{
			Kind:        capacity.Kind{Resource: string(name), Model: modelOf(n.Labels, string(name))},
			Allocatable: count,
		})
	}
	return out, true
}

// maxDevices of a resource on a node is more than any has, in the smallest of parts.
const maxDevices = 1 << 20

// devices is a number of devices; false where the quantity is none.
func devices(q resource.Quantity) (int, bool) {
	n := q.Value() // rounded up
	if n < 0 || n > maxDevices || q.MilliValue() != 1000*n {
		return 0, false
	}
	return int(n), true
}

// closed is why no new pod with devices gets a place on the node.
func (k *NodeKeeper) closed(n *corev1.Node) capacity.Stranded {
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	switch {
	case n.Spec.Unschedulable:
		return capacity.Cordoned
	case !ready:
		return capacity.NotReady
	case slices.ContainsFunc(n.Spec.Taints, k.keepsOut):
		return capacity.Tainted
	}
	return capacity.Schedulable
}

func (k *NodeKeeper) keepsOut(t corev1.Taint) bool {
	if t.Effect != corev1.TaintEffectNoSchedule && t.Effect != corev1.TaintEffectNoExecute {
		return false
	}
	return !slices.ContainsFunc(k.GPUTaints, func(pattern string) bool {
		beginning, wild := strings.CutSuffix(pattern, "*")
		return t.Key == pattern || wild && strings.HasPrefix(t.Key, beginning)
	})
}
