// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Labels of a node.
const (
	labelMIGState   = "nvidia.com/mig.config.state"               // NVIDIA's MIG manager
	labelSharing    = "nvidia.com/gpu.sharing-strategy"           // GPU feature discovery
	labelGKESharing = "cloud.google.com/gke-gpu-sharing-strategy" // GKE
)

// Node is what is kept of the node's object.
type Node struct {
	schedulable bool
	// reconfiguring: the MIG layout is being changed. hasMIG is false where no
	// MIG manager reports it.
	reconfiguring, hasMIG bool
	mps                   bool // replicas are shared by MPS
}

// KeepNode is the Node of an object, false where it is of another kind.
func KeepNode(obj any) (Node, bool) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return Node{}, false
	}
	s := Node{
		schedulable: !node.Spec.Unschedulable,
		mps:         node.Labels[labelSharing] == "mps" || node.Labels[labelGKESharing] == "mps",
	}
	switch node.Labels[labelMIGState] {
	case "pending", "rebooting":
		s.reconfiguring, s.hasMIG = true, true
	case "success", "failed":
		s.hasMIG = true
	}
	return s, true
}

// Sharing is the value of gpu.sharing for replicas of the device plugin. Their
// ids do not show it.
func (s *Node) Sharing() string {
	if s != nil && s.mps {
		return names.SharingMPS
	}
	return names.SharingTimeSlicing
}
