// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/random"
)

// former is a pod that held a device or instance until a second.
type former struct {
	pod   Pod
	until int64
}

// listEvery is how often, in seconds, the exporter asks the kubelet, which lists
// in another order each time.
const listEvery = 30

// asksKubelet is whether the exporter knows of pods at all.
func (n *node) asksKubelet() bool { return n.cfg.Kubernetes == nil || *n.cfg.Kubernetes }

// rows are the rows that the exporter makes of a device or instance: one, or
// with virtual GPUs one for each pod that shares it.
func (n *node) rows(r reading, k int64) []reading {
	r.replica = -1
	switch {
	case !n.asksKubelet():
	case len(r.owners) == 0:
		if f, ok := n.former(slotRef{r.board.index, r.position}, k); ok {
			r.pod = &f.pod
		}
	case n.cfg.VirtualGPUs && r.owners[0].replica >= 0:
		return n.virtual(r)
	default:
		// Of several pods, the last one in the kubelet's list has the row.
		pick := random.Mix(r.board.seed+uint64(r.position+2)<<40+uint64(k/listEvery)) % uint64(len(r.owners))
		r.pod = r.owners[pick].pod
	}
	return []reading{r}
}

// virtual is a row for each sharing pod, all with the values of the device.
// Later versions report two fields by process: they are on a row of the device
// without a pod, and on each pod's row with the pod's own value.
func (n *node) virtual(r reading) []reading {
	var out []reading
	if n.exp.byProcess {
		device := r
		device.deviceOnly = true
		out = append(out, device)
	}
	for i := range r.owners {
		h := &r.owners[i]
		row := r
		row.pod, row.replica = h.pod, h.replica
		if n.exp.byProcess {
			row.process = h
		}
		out = append(out, row)
	}
	return out
}

// former is the pod that had a free device or instance at second k, while the
// exporter still reports it.
func (n *node) former(ref slotRef, k int64) (former, bool) {
	window := step(n.cfg.StaleLabels)
	for j := k - 1; j >= max(k-window, n.since); j-- {
		if held := n.owners(ref, j); len(held) > 0 {
			return former{*held[len(held)-1].pod, j + 1}, true
		}
	}
	f, ok := n.formers[ref]
	return f, ok && k < f.until+window
}

// remember keeps, across a change at second k, the pods with labels that are stale
// then or may become so.
func (n *node) remember(k int64) {
	kept := map[slotRef]former{}
	for _, b := range n.boards {
		for _, position := range b.positions() {
			ref := slotRef{b.index, position}
			if held := n.owners(ref, k); len(held) > 0 {
				kept[ref] = former{*held[len(held)-1].pod, k}
			} else if f, ok := n.former(ref, k); ok {
				kept[ref] = f
			}
		}
	}
	n.formers = kept
}

// shows reports whether the utilization of a row can be read from the exporter in this
// state at second k. It applies the faults that change the row's values.
func (n *node) shows(r *reading, k int64, exporter string) bool {
	shown := n.faults.mark(r, k) && (exporter == "up" || exporter == "slow")
	field := "DCGM_FI_DEV_GPU_UTIL"
	if r.mig != nil {
		field = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
		shown = shown && (n.cfg.Profiling == nil || *n.cfg.Profiling)
	}
	for _, s := range r.blank {
		if len(s.Fields) == 0 || slices.Contains(s.Fields, field) {
			shown = false
		}
	}
	return shown
}
