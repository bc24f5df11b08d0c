// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/complete"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/dra"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/kubelet"
)

const maxName = 253 // bytes of a Kubernetes name

// Reason is why an entry of an answer was left out.
type Reason int

const (
	BadID Reason = iota
	BadOwner
	ContainersLimit
	DevicesLimit
	numReasons
)

// reasonNames are the values of the attribute reason.
var reasonNames = [numReasons]string{"bad_id", "bad_holder", "containers_limit", "devices_limit"}

// Tally is what was odd about one answer.
type Tally struct {
	Refused       [numReasons]int // by Reason
	SharesAssumed int
	Unusable      []Unusable

	// claimed are devices that the kubelet lists because of ResourceClaims.
	claimed []claimed

	// incomplete: owners are missing, and so nothing is known to be free.
	incomplete bool
	// blocked are ids with an unknown owner.
	blocked        map[kubeletID]bool
	blockedDevices map[dra.Device]bool
}

// String is the value of the attribute reason.
func (r Reason) String() string { return reasonNames[r] }

// Reader takes the accelerators out of answers.
type Reader struct {
	Resources *resourcenames.Matcher
	Drivers   map[string]bool // of DRA, those of GPUs
}

func valid(o owner.Owner) bool { return isName(o.Namespace) && isName(o.Pod) && isName(o.Container) }

// list gives each id that a container holds once: the kubelet repeats it for
// every NUMA node. The order is the kubelet's, which is random.
func (r *Reader) list(response *podresources.ListPodResourcesResponse) ([]entry, Tally) {
	tl := Tally{blocked: map[kubeletID]bool{}, blockedDevices: map[dra.Device]bool{}}
	seen := map[entry]bool{}
	var held []entry
	for _, pod := range response.GetPodResources() {
		for _, container := range pod.GetContainers() {
			h := owner.Owner{Namespace: pod.GetNamespace(), Pod: pod.GetName(), Container: container.GetName()}
			named := valid(h)
			r.claims(container.GetDynamicResources(), h, &tl)
			for _, devices := range container.GetDevices() {
				if !r.Resources.Match(devices.GetResourceName()) {
					continue
				}
				for _, id := range devices.GetDeviceIds() {
					e := entry{h, kubeletID{devices.GetResourceName(), id}}
					switch {
					case seen[e]:
						continue
					case !dra.IsID(id) || !dra.IsID(e.resource):
						tl.Refused[BadID]++
					case !named:
						tl.Refused[BadOwner]++
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

// Pods are those that an answer lists, and which of them have devices.
func (r *Reader) Pods(a *kubelet.Answer) complete.Answer {
	pods := make(map[complete.Pod]bool, len(a.List.GetPodResources()))
	for _, pod := range a.List.GetPodResources() {
		key := complete.Pod{Namespace: pod.GetNamespace(), Name: pod.GetName()}
		pods[key] = pods[key] || slices.ContainsFunc(pod.GetContainers(), r.owns)
	}
	return complete.Answer{At: a.At, Served: a.Served, Pods: pods}
}

func (r *Reader) owns(c *podresources.ContainerResources) bool {
	return len(c.GetDynamicResources()) > 0 || slices.ContainsFunc(c.GetDevices(), func(d *podresources.ContainerDevices) bool {
		return r.Resources.Match(d.GetResourceName())
	})
}

// allocatable gives each id that the kubelet can give away once.
func (r *Reader) allocatable(response *podresources.AllocatableResourcesResponse, tl *Tally) []kubeletID {
	seen := map[kubeletID]bool{}
	var ids []kubeletID
	for _, devices := range response.GetDevices() {
		if !r.Resources.Match(devices.GetResourceName()) {
			continue
		}
		for _, id := range devices.GetDeviceIds() {
			k := kubeletID{devices.GetResourceName(), id}
			if seen[k] {
				continue
			}
			seen[k] = true
			if !dra.IsID(id) || !dra.IsID(k.resource) {
				tl.Refused[BadID]++
				continue
			}
			ids = append(ids, k)
		}
	}
	return ids
}

func isName(s string) bool { return s != "" && len(s) <= maxName && safetext.Strip(s, maxName) == s }
