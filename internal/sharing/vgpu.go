// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// HAMi writes for every container its devices, and terminates each of them with ";". Its
// device plugin writes the boards of the node.
var hami = vgpu{
	name: names.SharingHAMi, pod: "hami.io/vgpu-devices-allocated", node: "hami.io/node-nvidia-register",
	resource: "nvidia.com/gpu", terminated: true,
}.scheduler()

// Volcano has the same encoding of devices. It separates containers with ";", and lists in
// some versions only those that request vGPUs.
var volcano = vgpu{
	name: names.SharingVolcano, pod: "volcano.sh/vgpu-ids-new", node: "volcano.sh/node-vgpu-register",
	resource: "volcano.sh/vgpu-number", requests: []corev1.ResourceName{"volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"},
}.scheduler()

// vgpu is a scheduler that writes UUID,type,memory,cores: for each device of a container.
type vgpu struct {
	name, pod, node, resource string
	terminated                bool
	requests                  []corev1.ResourceName
}

func (v vgpu) scheduler() *Scheduler {
	return &Scheduler{
		Name: v.name, Annotations: []string{v.pod}, Parts: true, Resource: v.resource, grants: v.grants,
		boards: func(node *corev1.Node) Boards { return registered(node.Annotations[v.node]) },
	}
}

func (v vgpu) grants(pod *corev1.Pod) ([]Grant, error) {
	text := pod.Annotations[v.pod]
	if v.terminated {
		text = strings.TrimSuffix(text, ";")
	}
	segments := strings.Split(text, ";")
	containers := v.containers(pod, len(segments))
	if containers == nil {
		return nil, ErrMalformed
	}
	var all []Grant
	for i, segment := range segments {
		for device := range strings.SplitSeq(segment, ":") {
			if device == "" {
				continue
			}
			g, err := vgpuGrant(device)
			if err != nil {
				return nil, err
			}
			g.Container = containers[i]
			all = append(all, g)
		}
	}
	if len(all) == 0 {
		return nil, ErrMalformed
	}
	return all, nil
}

// containers are the names of the n containers that are listed; nil: there is no such list.
func (v vgpu) containers(pod *corev1.Pod, n int) []string {
	var init, all, requesting []string
	for i := range pod.Spec.InitContainers {
		init = append(init, pod.Spec.InitContainers[i].Name)
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		all = append(all, c.Name)
		if slices.ContainsFunc(v.requests, func(r corev1.ResourceName) bool { _, ok := c.Resources.Limits[r]; return ok }) {
			requesting = append(requesting, c.Name)
		}
	}
	for _, list := range [][]string{append(init, all...), all, requesting} {
		if n > 0 && len(list) == n {
			return list
		}
	}
	return nil
}

func vgpuGrant(device string) (Grant, error) {
	fields := strings.Split(device, ",")
	if len(fields) < 4 || fields[0] == "" {
		return Grant{}, ErrMalformed
	}
	memory, err := strconv.ParseInt(fields[2], 10, 32)
	if err != nil {
		return Grant{}, ErrMalformed
	}
	cores, err := strconv.ParseInt(fields[3], 10, 32)
	if err != nil || cores < 0 || cores > 100 {
		return Grant{}, ErrMalformed
	}
	if memory <= 0 {
		return Grant{}, ErrShare
	}
	return Grant{Board: fields[0], Memory: memory, Cores: float64(cores) / 100}, nil
}

// registered are the boards in the annotation of a node: a list of
// UUID,parts,memory,…: or the same as JSON. What cannot be read has no boards.
func registered(text string) Boards {
	if text == "" || len(text) > MaxAnnotation {
		return nil
	}
	boards := Boards{}
	add := func(id string, memory int64) {
		if deviceid.IsGPU(id) && memory > 0 {
			boards[id] = Board{ID: id, Memory: memory}
		}
	}
	if strings.HasPrefix(text, "[") {
		var list []struct {
			ID     string `json:"id"`
			Memory int64  `json:"devmem"`
		}
		if json.Unmarshal([]byte(text), &list) != nil {
			return nil
		}
		for _, d := range list {
			add(d.ID, d.Memory)
		}
		return boards
	}
	for device := range strings.SplitSeq(text, ":") {
		fields := strings.Split(device, ",")
		if len(fields) < 3 {
			continue // behind the last board
		}
		memory, err := strconv.ParseInt(fields[2], 10, 32)
		if err != nil {
			continue
		}
		add(fields[0], memory)
	}
	return boards
}
