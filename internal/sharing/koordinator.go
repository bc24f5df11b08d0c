// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const koordinatorAnnotation = "scheduling.koordinator.sh/device-allocated"

// Koordinator writes which minor numbers a pod has, in JSON. Its agent writes the boards of
// the node into an object of its own, a Device with the name of the node.
var koordinator = &Scheduler{
	Name: names.SharingKoordinator, Annotations: []string{koordinatorAnnotation}, Resource: "koordinator.sh/gpu", grants: koordinatorGrants,
}

func koordinatorGrants(pod *corev1.Pod) ([]Grant, error) {
	var allocated struct {
		GPU []struct {
			Minor     *int32            `json:"minor"`
			Resources map[string]amount `json:"resources"`
		} `json:"gpu"`
	}
	if err := json.Unmarshal([]byte(pod.Annotations[koordinatorAnnotation]), &allocated); err != nil {
		return nil, ErrMalformed
	}
	container := koordinatorContainer(pod)
	var all []Grant
	for _, device := range allocated.GPU {
		if device.Minor == nil {
			return nil, ErrMalformed
		}
		memory, cores := device.Resources["koordinator.sh/gpu-memory-ratio"], device.Resources["koordinator.sh/gpu-core"]
		if memory < 1 || memory > 100 {
			return nil, ErrShare
		}
		if cores < 0 || cores > 100 {
			return nil, ErrMalformed
		}
		all = append(all, Grant{
			Container: container, Board: minorKey(int64(*device.Minor)), Share: float64(memory) / 100, Cores: float64(cores) / 100,
		})
	}
	return all, nil // a pod that has other devices alone has no grants
}

func minorKey(minor int64) string { return strconv.FormatInt(minor, 10) }

// koordinatorContainer is the one container that requests GPUs; empty: several do.
func koordinatorContainer(pod *corev1.Pod) string {
	found := ""
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if len(pod.Spec.Containers) > 1 && !requestsGPU(c) {
			continue
		}
		if found != "" {
			return ""
		}
		found = c.Name
	}
	return found
}

func requestsGPU(c *corev1.Container) bool {
	for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		for name := range list {
			if name == "nvidia.com/gpu" || strings.HasPrefix(string(name), "koordinator.sh/gpu") {
				return true
			}
		}
	}
	return false
}

// amount is a small whole number, with or without quotation marks. Another text, such as
// 16Gi, is -1: no amount that is needed is written so.
type amount int64

func (a *amount) UnmarshalJSON(text []byte) error {
	*a = -1
	if n, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 32); err == nil {
		*a = amount(n)
	}
	return nil
}

// KoordinatorBoards are the boards in the content of a Device object, by minor number. A
// number that two boards have names neither.
func KoordinatorBoards(device map[string]any) Boards {
	spec, _ := device["spec"].(map[string]any)
	list, _ := spec["devices"].([]any)
	boards, several := Boards{}, map[string]bool{}
	for _, entry := range list {
		device, _ := entry.(map[string]any)
		id, _ := device["id"].(string)
		minor, ok := device["minor"].(int64)
		if device["type"] != "gpu" || !deviceid.IsGPU(id) || !ok {
			continue
		}
		key := minorKey(minor)
		if _, taken := boards[key]; taken {
			several[key] = true
		}
		boards[key] = Board{ID: id}
	}
	for key := range several {
		delete(boards, key)
	}
	return boards
}
