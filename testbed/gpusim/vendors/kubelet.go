// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"fmt"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/random"
)

// Grant is what a container was given, ids by resource.
type Grant struct {
	Owner
	IDs map[string][]string
}

// granted is what a node's device plugin announces, and who was given it.
func granted(h *host, all []*state) (announced map[string][]string, grants []Grant) {
	announced = map[string][]string{}
	given := map[Owner]map[string][]string{}
	var order []Owner
	for _, s := range all {
		for i := range s.parts {
			p := &s.parts[i]
			if h.model.Vendor == Intel && i > 0 {
				break // tiles are no devices of the plugin
			}
			resource, ids := kubeletIDs(h, s, p)
			announced[resource] = append(announced[resource], ids...)
			for _, o := range p.owners {
				owner := Owner{o.Namespace, o.Name, o.Container}
				if given[owner] == nil {
					given[owner] = map[string][]string{}
					order = append(order, owner)
				}
				given[owner][resource] = append(given[owner][resource], idsOf(h, o, s, ids)...)
			}
		}
	}
	for _, o := range order {
		grants = append(grants, Grant{o, given[o]})
	}
	return announced, grants
}

// idsOf are the ids of a pod among those of a device: all, or of a shared card its own.
func idsOf(h *host, o *held, s *state, ids []string) []string {
	if len(ids) == 1 {
		return ids
	}
	var own []string
	for _, at := range o.places {
		if at.board == s.index && at.replica < len(ids) {
			own = append(own, ids[at.replica])
		}
	}
	return own
}

// kubeletIDs are the ids of a device at its plugin: of a shared card one a replica.
func kubeletIDs(h *host, s *state, p *part) (resource string, ids []string) {
	switch h.model.Vendor {
	case Gaudi:
		return "habana.ai/gaudi", []string{s.serial}
	case Intel:
		for i := range h.Replicas {
			ids = append(ids, fmt.Sprintf("card%d-%d", s.card(), i))
		}
		if h.Model == "B60" {
			return "gpu.intel.com/xe", ids
		}
		return "gpu.intel.com/i915", ids
	}
	resource = "amd.com/gpu"
	if h.Mixed {
		resource = "amd.com/" + s.profile()
	}
	if p.id == 0 { // partition 0 keeps the address of the board
		return resource, []string{s.pci}
	}
	return resource, []string{fmt.Sprintf("amdgpu_xcp_%d", xcp(h, s, p))}
}

// xcp is the number of the platform device of a partition but the first. The order is
// the driver's own and has nothing to do with boards.
func xcp(h *host, s *state, p *part) int {
	// A walk over all numbers with a step that has no common divisor with their count.
	count := uint64(len(h.boards) * 8)
	at := uint64(s.index*8 + p.id)
	return int((at*17 + random.Mix(h.seed)%count) % count)
}
