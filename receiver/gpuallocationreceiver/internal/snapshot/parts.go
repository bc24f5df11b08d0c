// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/sharing"
)

// partOf is the board in an id of the scheduler's device plugin; empty: it is another one's. The
// resource is what the plugin was configured with: one that is no scheduler's own belongs to the
// first that is read.
func (n *sharedNode) partOf(s *sharing.Scheduler, id kubeletID) string {
	if !s.Parts {
		return ""
	}
	parsed := deviceid.ParseKubelet(id.resource, id.id)
	if parsed.Resolved || !parsed.Shared || !deviceid.IsGPU(parsed.Device) {
		return ""
	}
	by := sharing.PluginOf(id.resource)
	if by == nil {
		by = n.plugins[0]
	}
	if by != s {
		return ""
	}
	return parsed.Device
}

// replaceParts replaces what the kubelet lists for the containers of a scheduler by what
// the scheduler wrote. Where that cannot be used, held stays as it is.
func (n *sharedNode) replaceParts(s *sharing.Scheduler, boards sharing.Boards, held []entry, shared *Shared, tl *Tally) []entry {
	rest := make([]entry, 0, len(held))
	for len(held) > 0 {
		count := 1
		for count < len(held) && held[count].owner == held[0].owner {
			count++
		}
		own := held[:count]
		held = held[count:]
		isPart := func(e entry) bool { return n.partOf(s, e.kubeletID) != "" }
		first := slices.IndexFunc(own, isPart)
		if first < 0 {
			rest = append(rest, own...)
			continue
		}
		name := types.NamespacedName{Namespace: own[0].owner.Namespace, Name: own[0].owner.Pod}
		pod := shared.Pods[name]
		if pod.Ended && pod.Scheduler == s {
			// Kubelets before 1.34 list it until it is deleted.
			rest = append(rest, slices.DeleteFunc(slices.Clone(own), isPart)...)
			continue
		}
		placed, err := partsFor(own[first], s, pod, boards)
		if err != nil || len(placed) == 0 {
			n.unknown[s] = true
			rest = append(rest, own...)
			if err != nil {
				tl.Unusable = append(tl.Unusable, Unusable{s.Name, name, err})
			}
			continue
		}
		n.parts = append(n.parts, placed...)
		rest = append(rest, slices.DeleteFunc(slices.Clone(own), isPart)...)
	}
	return rest
}

// partsFor are the parts of boards that a container has; none: nothing was written for it.
func partsFor(e entry, s *sharing.Scheduler, pod sharing.Pod, boards sharing.Boards) ([]part, error) {
	if pod.Scheduler != s {
		return nil, nil
	}
	if pod.Err != nil {
		return nil, pod.Err
	}
	var all []part
	for _, g := range pod.Grants {
		if g.Container != e.owner.Container {
			continue
		}
		id, share, err := boards.Find(g)
		if err != nil {
			return nil, err
		}
		all = append(all, part{e.owner, s, e.resource, id, share, g.Cores})
	}
	return all, nil
}

// unlisted notes what a pod may have of which the kubelet lists nothing: it is not free. Init
// containers, which it does not list, have that until they end. With others it is unusable: the
// plugin has another resource than those that are read.
func (n *sharedNode) unlisted(name types.NamespacedName, pod sharing.Pod, boards sharing.Boards, tl *Tally) {
	var failed error
	if pod.Err != nil && !n.hasDevices(name) {
		failed = pod.Err
		n.unknown[pod.Scheduler] = true
	}
	for _, g := range pod.Grants {
		listed, known := n.listed[owner.Owner{Namespace: name.Namespace, Pod: name.Name, Container: g.Container}]
		missing := known && !listed
		if !missing && !pod.Starting {
			continue
		}
		if missing {
			failed = sharing.ErrUnlisted
		}
		id, _, err := boards.Find(g)
		if id == "" {
			n.unknown[pod.Scheduler] = n.unknown[pod.Scheduler] || err != nil
			continue
		}
		n.divided[id] = true
	}
	if failed != nil {
		tl.Unusable = append(tl.Unusable, Unusable{pod.Scheduler.Name, name, failed})
	}
}

// hasDevices reports whether the kubelet lists devices for a pod.
func (n *sharedNode) hasDevices(name types.NamespacedName) bool {
	for o, listed := range n.listed {
		if listed && o.Namespace == name.Namespace && o.Pod == name.Name {
			return true
		}
	}
	return false
}
