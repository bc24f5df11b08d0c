// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/sharing"
)

// Labels of a node.
const (
	labelMIGState   = "nvidia.com/mig.config.state"               // NVIDIA's MIG manager
	labelSharing    = "nvidia.com/gpu.sharing-strategy"           // GPU feature discovery
	labelGKESharing = "cloud.google.com/gke-gpu-sharing-strategy" // GKE
	labelMemory     = "nvidia.com/gpu.memory"                     // GPU feature discovery
)

// Node is what is kept of the node's object.
type Node struct {
	schedulable bool
	// reconfiguring: the MIG layout is being changed. hasMIG is false where no
	// MIG manager reports it.
	reconfiguring, hasMIG bool
	mps                   bool   // replicas are shared by MPS
	info                  info   // without what a person has acknowledged
	cleared               string // the annotation health.ClearedAnnotation, not checked
	memory                int64  // of each board in MiB; 0: not known
	boards                map[string]sharing.Boards
}

// Equal reports whether both are the same.
func (s *Node) Equal(o *Node) bool {
	return s.schedulable == o.schedulable && s.reconfiguring == o.reconfiguring && s.hasMIG == o.hasMIG &&
		s.mps == o.mps && s.cleared == o.cleared && slices.Equal(s.info, o.info) && s.SameBoards(o)
}

// SameBoards reports whether both have the same boards for schedulers that share them.
func (s *Node) SameBoards(o *Node) bool {
	return s.memory == o.memory && maps.EqualFunc(s.boards, o.boards, maps.Equal[sharing.Boards, sharing.Boards])
}

// Boards are those of the node for schedulers that share them, and the memory of each in
// MiB, 0 where it is not known.
func (s *Node) Boards() (map[string]sharing.Boards, int64) {
	if s == nil {
		return nil, 0
	}
	return s.boards, s.memory
}

// Keep is the Node of an object, false where it is of another kind.
func (r *NodeReader) Keep(obj any) (Node, bool) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return Node{}, false
	}
	s := Node{
		schedulable: !node.Spec.Unschedulable,
		mps:         node.Labels[labelSharing] == "mps" || node.Labels[labelGKESharing] == "mps",
	}
	s.info = r.info(node)
	for _, scheduler := range r.Schedulers {
		if boards := scheduler.Boards(node); len(boards) > 0 {
			if s.boards == nil {
				s.boards = map[string]sharing.Boards{}
			}
			s.boards[scheduler.Name] = boards
		}
	}
	if memory, err := strconv.ParseInt(node.Labels[labelMemory], 10, 32); err == nil && memory > 0 {
		s.memory = memory
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
// boards of the node, and adds it to what gpu.node.info has. What cannot be used is left out,
// and err names it.
func (s *Node) Acknowledge(now time.Time) error {
	all, err := health.ParseCleared(s.cleared, now)
	texts := make([]string, len(all))
	for i, c := range all {
		texts[i] = c.String()
	}
	s.info = slices.Clip(s.info).with(names.GPUHealthCleared, strings.Join(texts, ","))
	return err
}

// Reconfiguring reports whether the MIG manager is changing the node's layout; false too
// where that is not known.
func (s *Node) Reconfiguring() bool { return s.reconfiguring }

// Sharing is the value of gpu.sharing for replicas of the device plugin. Their
// ids do not show it.
func (s *Node) Sharing() string {
	if s != nil && s.mps {
		return names.SharingMPS
	}
	return names.SharingTimeSlicing
}
