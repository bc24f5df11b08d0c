// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

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

// nodeState is what is kept of the node's object.
type nodeState struct {
	schedulable bool
	// reconfiguring: the MIG layout is being changed. hasMIG is false where no
	// MIG manager says so or otherwise.
	reconfiguring, hasMIG bool
	mps                   bool // replicas are shared by MPS
}

func keepNode(obj any) (nodeState, bool) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return nodeState{}, false
	}
	s := nodeState{
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

// sharing is the value of gpu.sharing for replicas of the device plugin, whose
// ids do not tell.
func (s *nodeState) sharing() string {
	if s != nil && s.mps {
		return names.SharingMPS
	}
	return names.SharingTimeSlicing
}
