// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// holder is who the exporter says holds the device.
type holder struct {
	namespace, pod, container, podUID string
	// vgpu, hpc_job, dra_* and pod_label_*, sorted by key.
	more []label
}

type label struct{ key, value string }

func (h *holder) empty() bool {
	return h.pod == "" && h.namespace == "" && h.container == "" && h.podUID == "" && len(h.more) == 0
}

func (h *holder) same(o *holder) bool {
	return h.pod == o.pod && h.namespace == o.namespace && h.container == o.container &&
		h.label(names.ExporterVGPU) == o.label(names.ExporterVGPU) && h.label("hpc_job") == o.label("hpc_job")
}

// merge adds what another row says about the same holder.
func (h *holder) merge(o *holder) {
	keep(&h.podUID, o.podUID)
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

// shared reports whether the exporter says that the device has replicas.
func (h *holder) shared() bool { return h.label(names.ExporterVGPU) != "" }

func (h *holder) label(key string) string {
	for i := range h.more {
		if h.more[i].key == key {
			return h.more[i].value
		}
	}
	return ""
}

// noHolder is the place of a holder that is not in the device's list.
const noHolder = -1

// heldBy remembers a holder that a row of the device names. It returns the
// holder's place in d.holders, and reports whether there was room for it.
func (d *device) heldBy(h *holder) (place int, ok bool) {
	if h.empty() {
		return noHolder, true
	}
	for i := range d.holders {
		if d.holders[i].same(h) {
			d.holders[i].merge(h)
			return i, true
		}
	}
	if len(d.holders) >= maxHolders {
		return noHolder, false
	}
	own := *h
	own.more = slices.Clone(h.more)
	d.holders = append(d.holders, held{holder: own})
	return len(d.holders) - 1, true
}

// putHolder hands the exporter's word on who holds the device to gpu_pod. One
// holder goes onto the resource; the holders of a shared device into a list,
// since the device's series belong to none of them, together with what is told
// of each one's share, if shares is set.
func (d *device) putHolder(attrs pcommon.Map, shares bool) {
	switch {
	case len(d.holders) == 0:
	case len(d.holders) == 1 && !d.holders[0].shared():
		d.holders[0].put(attrs)
	default:
		slices.SortFunc(d.holders, func(a, b held) int {
			return strings.Compare(a.sortKey(), b.sortKey())
		})
		list := attrs.PutEmptySlice(names.ExporterHolders)
		shares = shares && d.sharesSeen()
		for i := range d.holders {
			entry := list.AppendEmpty().SetEmptyMap()
			d.holders[i].put(entry)
			if shares {
				d.holders[i].putShares(entry)
			}
		}
	}
}

func (h *holder) sortKey() string {
	return strings.Join([]string{h.namespace, h.pod, h.container, h.label(names.ExporterVGPU), h.label("hpc_job")}, "\x00")
}

func (h *holder) put(attrs pcommon.Map) {
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
