// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"slices"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/complete"
)

const (
	maxID   = 256 // bytes of a device's id and of a resource's name
	maxName = 253 // bytes of a Kubernetes name
)

// reason is why an entry of an answer was left out.
type reason int

const (
	badID reason = iota
	badHolder
	containersLimit
	devicesLimit
	numReasons
)

// reasonNames are the values of the attribute reason.
var reasonNames = [numReasons]string{"bad_id", "bad_holder", "containers_limit", "devices_limit"}

// tally is what was odd about one answer.
type tally struct {
	refused       [numReasons]int
	sharesAssumed int

	// claimed are devices that the kubelet lists because of ResourceClaims.
	claimed []claimed

	// incomplete: holders are missing, and so nothing is known to be free.
	incomplete bool
	// blocked are ids that somebody holds, it is not known who.
	blocked        map[kubeletID]bool
	blockedDevices map[poolDevice]bool
}

// reader takes the accelerators out of answers.
type reader struct {
	resources *resourcenames.Matcher
	drivers   map[string]bool // of DRA, those of GPUs
}

func (h holder) valid() bool { return isName(h.namespace) && isName(h.pod) && isName(h.container) }

// list gives each id that a container holds once: the kubelet repeats it for
// every NUMA node. The order is the kubelet's, which is random.
func (r *reader) list(response *podresources.ListPodResourcesResponse) ([]entry, tally) {
	tl := tally{blocked: map[kubeletID]bool{}, blockedDevices: map[poolDevice]bool{}}
	seen := map[entry]bool{}
	var held []entry
	for _, pod := range response.GetPodResources() {
		for _, container := range pod.GetContainers() {
			h := holder{pod.GetNamespace(), pod.GetName(), container.GetName()}
			valid := h.valid()
			r.claims(container.GetDynamicResources(), h, &tl)
			for _, devices := range container.GetDevices() {
				if !r.resources.Match(devices.GetResourceName()) {
					continue
				}
				for _, id := range devices.GetDeviceIds() {
					e := entry{h, kubeletID{devices.GetResourceName(), id}}
					switch {
					case seen[e]:
						continue
					case !isID(id) || !isID(e.resource):
						tl.refused[badID]++
					case !valid:
						tl.refused[badHolder]++
						tl.blocked[e.kubeletID] = true
					default:
						held = append(held, e)
					}
					seen[e] = true
				}
			}
		}
	}
	slices.SortFunc(tl.claimed, claimed.compare)
	tl.claimed = slices.Compact(tl.claimed)
	return held, tl
}

// pods are those that an answer lists, and which of them have devices.
func (r *reader) pods(a *answer) complete.Answer {
	pods := make(map[complete.Pod]bool, len(a.list.GetPodResources()))
	for _, pod := range a.list.GetPodResources() {
		key := complete.Pod{Namespace: pod.GetNamespace(), Name: pod.GetName()}
		pods[key] = pods[key] || slices.ContainsFunc(pod.GetContainers(), r.owns)
	}
	return complete.Answer{At: a.at, Served: a.served, Pods: pods}
}

func (r *reader) owns(c *podresources.ContainerResources) bool {
	return len(c.GetDynamicResources()) > 0 || slices.ContainsFunc(c.GetDevices(), func(d *podresources.ContainerDevices) bool {
		return r.resources.Match(d.GetResourceName())
	})
}

// allocatable gives each id that the kubelet can give away once.
func (r *reader) allocatable(response *podresources.AllocatableResourcesResponse, tl *tally) []kubeletID {
	seen := map[kubeletID]bool{}
	var ids []kubeletID
	for _, devices := range response.GetDevices() {
		if !r.resources.Match(devices.GetResourceName()) {
			continue
		}
		for _, id := range devices.GetDeviceIds() {
			k := kubeletID{devices.GetResourceName(), id}
			if seen[k] {
				continue
			}
			seen[k] = true
			if !isID(id) || !isID(k.resource) {
				tl.refused[badID]++
				continue
			}
			ids = append(ids, k)
		}
	}
	return ids
}

// isID reports whether s can stand in an attribute and be read there.
func isID(s string) bool { return s != "" && len(s) <= maxID && safetext.Strip(s, maxID) == s }

func isName(s string) bool { return s != "" && len(s) <= maxName && safetext.Strip(s, maxName) == s }
