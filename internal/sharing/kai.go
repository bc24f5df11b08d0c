// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	kaiFraction  = "gpu-fraction"
	kaiMemory    = "gpu-memory" // MiB
	kaiDevices   = "gpu-fraction-num-devices"
	kaiContainer = "gpu-fraction-container-name"
	kaiGroup     = "runai-gpu-group" // label; runai-gpu-group/<group> with several boards
	kaiReserved  = "run.ai/reserve_for_gpu_index"
)

// KAI, and Run:ai, put the pods that share a board into a group, and have a pod of theirs,
// the reservation pod, hold the board for the kubelet.
var kai = &Scheduler{
	Name: names.SharingKAI, Annotations: []string{kaiFraction, kaiMemory}, Resource: "nvidia.com/gpu", grants: kaiGrants,
}

func kaiGrants(pod *corev1.Pod) ([]Grant, error) {
	g := Grant{Container: pod.Annotations[kaiContainer]}
	if g.Container == "" && len(pod.Spec.Containers) > 0 {
		g.Container = pod.Spec.Containers[0].Name
	}
	if fraction := pod.Annotations[kaiFraction]; fraction != "" {
		share, err := strconv.ParseFloat(fraction, 64)
		if err != nil {
			return nil, ErrMalformed
		}
		if !(share > 0 && share <= 1) {
			return nil, ErrShare
		}
		g.Share = share
	} else {
		memory, err := strconv.ParseInt(pod.Annotations[kaiMemory], 10, 32)
		if err != nil {
			return nil, ErrMalformed
		}
		if memory <= 0 {
			return nil, ErrShare
		}
		g.Memory = memory
	}
	devices := 1
	if text := pod.Annotations[kaiDevices]; text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, ErrMalformed
		}
		devices = n
	}
	groups := kaiGroups(pod)
	if len(groups) == 0 {
		return nil, ErrUnknownDevice // it has no board yet
	}
	if len(groups) != devices {
		return nil, ErrMalformed
	}
	all := make([]Grant, len(groups))
	for i, group := range groups {
		all[i] = g
		all[i].Board = group
	}
	return all, nil
}

func kaiGroups(pod *corev1.Pod) []string {
	var groups []string
	for key, group := range pod.Labels {
		if group != "" && (key == kaiGroup || strings.HasPrefix(key, kaiGroup+"/")) {
			groups = append(groups, group)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// Reservations are the namespaces in which KAI and Run:ai run reservation pods by default.
func Reservations() []string { return []string{"kai-resource-reservation", "runai-reservation"} }

// IsReservation reports whether a pod holds a board for others, in one of these namespaces:
// it requests a board that it does not use.
func IsReservation(pod *corev1.Pod) bool {
	return pod.Labels[kaiGroup] != "" && slices.Contains(Reservations(), pod.Namespace)
}

// reservation is a pod that holds a board for the members of its group.
func reservation(pod *corev1.Pod) Pod {
	p := Pod{Scheduler: kai, Group: pod.Labels[kaiGroup]}
	// Old versions write the number of the board there.
	if id := pod.Annotations[kaiReserved]; deviceid.IsGPU(id) {
		p.ReservedID = id
	}
	return p
}
