// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// Labels of a node.
const (
	labelMIGState   = "nvidia.com/mig.config.state"               // NVIDIA's MIG manager
	labelSharing    = "nvidia.com/gpu.sharing-strategy"           // GPU feature discovery
	labelGKESharing = "cloud.google.com/gke-gpu-sharing-strategy" // GKE
	labelDriver     = "nvidia.com/cuda.driver-version.full"       // GPU feature discovery
	// In versions before that: major, minor and rev of the driver.
	labelDriverPart = "nvidia.com/cuda.driver."
)

// Node is what is kept of the node's object.
type Node struct {
	schedulable bool
	// reconfiguring: the MIG layout is being changed. hasMIG is false where no
	// MIG manager reports it.
	reconfiguring, hasMIG bool
	mps                   bool // replicas are shared by MPS
	info                  info
	cleared               string // the annotation health.ClearedAnnotation, not checked
}

// info is what gpu.node.info has; what is not known is empty.
type info struct{ boot, hostType, driver, cleared string }

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
	s.info = info{
		boot:     bounded(node.Status.NodeInfo.BootID),
		hostType: bounded(cmp.Or(node.Labels[corev1.LabelInstanceTypeStable], node.Labels[corev1.LabelInstanceType])),
		driver:   bounded(driver(node.Labels)),
	}
	s.cleared = node.Annotations[health.ClearedAnnotation]
	if longest := health.MaxCleared + 1; len(s.cleared) > longest {
		s.cleared = s.cleared[:longest] // too long in any case
	}
	switch node.Labels[labelMIGState] {
	case "pending", "rebooting":
		s.reconfiguring, s.hasMIG = true, true
	case "success", "failed":
		s.hasMIG = true
	}
	return s, true
}

// Acknowledge checks as of now until when a person has acknowledged the reasons against the
// boards of the node. What cannot be used is left out, and err names it.
func (s *Node) Acknowledge(now time.Time) error {
	all, err := health.ParseCleared(s.cleared, now)
	texts := make([]string, len(all))
	for i, c := range all {
		texts[i] = c.String()
	}
	s.info.cleared = strings.Join(texts, ",")
	return err
}

// driver returns the version of the driver that labels have; empty: they have none.
func driver(labels map[string]string) string {
	if full := labels[labelDriver]; full != "" {
		return full
	}
	version := labels[labelDriverPart+"major"]
	for _, part := range []string{"minor", "rev"} {
		if v := labels[labelDriverPart+part]; version != "" && v != "" {
			version += "." + v
		}
	}
	return version
}

// maxInfo is the longest text of gpu.node.info, in characters.
const maxInfo = 256

func bounded(text string) string { return safetext.Strip(text, maxInfo) }

// Sharing is the value of gpu.sharing for replicas of the device plugin. Their
// ids do not show it.
func (s *Node) Sharing() string {
	if s != nil && s.mps {
		return names.SharingMPS
	}
	return names.SharingTimeSlicing
}
