// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// owner is the owner of a device that the exporter names.
type owner struct {
	namespace, pod, container, podUID string
	// vgpu, hpc_job, dra_* and pod_label_*, sorted by key.
	more []label
	// ofPart: the claim is for a part that the row does not identify. The owner has not the
	// board.
	ofPart bool
}

func (h *owner) empty() bool {
	return h.pod == "" && h.namespace == "" && h.container == "" && h.podUID == "" && len(h.more) == 0
}

func (h *owner) same(o *owner) bool {
	if h.pod != o.pod || h.namespace != o.namespace || h.container != o.container {
		return false
	}
	if len(h.more) == 0 && len(o.more) == 0 {
		return true
	}
	for _, key := range [...]string{names.ExporterVGPU, "hpc_job", "job_id"} {
		if h.label(key) != o.label(key) {
			return false
		}
	}
	return true
}

// merge adds the labels of another row of the same owner.
func (h *owner) merge(o *owner) {
	keep(&h.podUID, o.podUID)
	h.ofPart = h.ofPart || o.ofPart
	if slices.Equal(h.more, o.more) {
		return
	}
	for _, l := range o.more {
		i, found := slices.BinarySearchFunc(h.more, l.key, func(a label, key string) int { return strings.Compare(a.key, key) })
		if !found {
			h.more = slices.Insert(h.more, i, l)
		}
		keep(&h.more[i].value, l.value)
	}
}

// shared reports whether the owner has a replica or a part of the device.
func (h *owner) shared() bool { return h.ofPart || h.label(names.ExporterVGPU) != "" }

func (h *owner) label(key string) string {
	for i := range h.more {
		if h.more[i].key == key {
			return h.more[i].value
		}
	}
	return ""
}

func (h *owner) sortKey() string {
	return strings.Join([]string{h.namespace, h.pod, h.container, h.label(names.ExporterVGPU), h.label("hpc_job"), h.label("job_id")}, "\x00")
}

func (h *owner) put(attrs pcommon.Map) {
	for _, l := range [...]label{
		{names.ExporterNamespace, h.namespace},
		{names.ExporterPod, h.pod},
		{names.ExporterContainer, h.container},
		{names.ExporterPodUID, h.podUID},
	} {
		if l.value != "" {
			attrs.PutStr(l.key, l.value)
		}
	}
	for _, l := range h.more {
		attrs.PutStr(l.key, l.value)
	}
}

// owners are those that the rows of one device name on one page.
type owners struct {
	list  []ownerShares
	whole []*Family // those with shares that have a row without owner
}

// noOwner is the place of an owner that is not in the list.
const noOwner = -1

func (hs *owners) startPage() { hs.list, hs.whole = hs.list[:0], hs.whole[:0] }

// add remembers the owner that a row names. It returns the owner's place in the
// list, and reports whether there was room for it.
func (hs *owners) add(h *owner) (place int, ok bool) {
	if h.empty() {
		return noOwner, true
	}
	for i := range hs.list {
		if hs.list[i].same(h) {
			hs.list[i].merge(h)
			return i, true
		}
	}
	if len(hs.list) >= MaxOwners {
		return noOwner, false
	}
	own := *h
	own.more = slices.Clone(h.more)
	hs.list = append(hs.list, ownerShares{owner: own})
	return len(hs.list) - 1, true
}

// put writes the owners that the exporter names, for gpu_pod. One goes onto the
// resource; those of a shared device into a list with the given key, since the device's
// series belong to none of them, together with their shares, if shares is set. usage is
// the memory that the device as a whole uses.
func (hs *owners) put(attrs pcommon.Map, key string, usage float64, shares bool) {
	switch {
	case len(hs.list) == 0:
	case len(hs.list) == 1 && !hs.list[0].shared():
		hs.list[0].put(attrs)
	default:
		slices.SortFunc(hs.list, func(a, b ownerShares) int { return strings.Compare(a.sortKey(), b.sortKey()) })
		list := attrs.PutEmptySlice(key)
		shares = shares && hs.sharesSeen(usage)
		for i := range hs.list {
			entry := list.AppendEmpty().SetEmptyMap()
			hs.list[i].put(entry)
			if shares {
				hs.list[i].putShares(entry)
			}
		}
	}
}
