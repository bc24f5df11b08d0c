// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/miglayout"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/dra"
)

// located is an id that names a MIG instance by its UUID, written as device plugins did before
// driver 470, with the GPU and the instances' numbers: MIG-GPU-<uuid>/<gi>/<ci>. Every other id,
// and that of an instance that the layout does not have, is returned as it is.
func (id kubeletID) located(l *miglayout.Layout) kubeletID {
	k := deviceid.ParseKubelet(id.resource, id.id)
	if i, ok := l.Resolve(k.MIG); ok {
		id.id = fmt.Sprintf("MIG-%s/%d/%d%s", i.GPU, i.GI, i.CI, strings.TrimPrefix(id.id, k.MIG))
	}
	return id
}

// locate writes the ids of an answer with what the layout has.
func locate(held []entry, listed []kubeletID, tl *Tally, l *miglayout.Layout) {
	if l == nil {
		return
	}
	for i := range held {
		held[i].kubeletID = held[i].located(l)
	}
	for i := range listed {
		listed[i] = listed[i].located(l)
	}
	blocked := make(map[kubeletID]bool, len(tl.blocked))
	for id := range tl.blocked {
		blocked[id.located(l)] = true
	}
	tl.blocked = blocked
}

// describeMIG adds what the layout has about a MIG device of DRA.
func describeMIG(d *dra.Described, l *miglayout.Layout) {
	if d.Kind != dra.KindMIG {
		return
	}
	if i, ok := l.Resolve(d.UUID); ok {
		d.ID, d.Parent = i.HwID(), i.GPU
	}
}
