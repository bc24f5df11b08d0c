// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
)

// maxPutIDs is how many devices of a pod become an attribute.
const maxPutIDs = 16

// Pod is a pod as a resource names it. What the resource does not name is empty.
type Pod struct {
	Namespace, Name string
	Node            Node
	Started         pcommon.Timestamp // by the clock of its node
}

// Devices are the devices of one pod. They are immutable.
type Devices struct {
	// IDs are their hw.id, sorted. A MIG instance and a replica have their own.
	IDs []string
	// Model is the hw.model of all of them, "" where they differ or telemetry of one
	// has not shown it.
	Model string
	// Since is the time of the first snapshot of those in a row with these devices.
	Since pcommon.Timestamp
}

// Put writes the devices to the attributes of a resource, a log record or a span.
func (d *Devices) Put(attrs pcommon.Map) {
	attrs.EnsureCapacity(attrs.Len() + 3)
	ids := d.IDs[:min(len(d.IDs), maxPutIDs)]
	list := attrs.PutEmptySlice(names.GPUDeviceIDs)
	list.EnsureCapacity(len(ids))
	for _, id := range ids {
		list.AppendEmpty().SetStr(id)
	}
	attrs.PutInt(names.GPUDeviceCount, int64(len(d.IDs)))
	if d.Model != "" {
		attrs.PutStr(names.HwModel, d.Model)
	}
}

// podDevices are the devices of each pod of a snapshot. A pod with a device of which it
// is not certain which one it is, or that the pod has it, has Devices without IDs.
func (v *view) podDevices(all map[string]*listed) map[owner.Owner]*Devices {
	pods := map[owner.Owner]*Devices{}
	uncertain := map[owner.Owner]bool{}
	for _, l := range all {
		id := v.idOf(l)
		resolved := l.resolved || v.joined[l.Device] != ""
		for _, c := range l.claims {
			if c.owner.IsZero() {
				continue
			}
			pod := c.owner.Whole()
			of := pods[pod]
			if of == nil {
				of = &Devices{}
				pods[pod] = of
			}
			if held := v.facts[id].heldAs(id, c); held != "" && resolved {
				of.IDs = append(of.IDs, held)
			} else {
				uncertain[pod] = true
			}
		}
	}
	for pod, of := range pods {
		if uncertain[pod] {
			of.IDs = nil
		}
		slices.Sort(of.IDs)
		of.IDs = slices.Clip(slices.Compact(of.IDs))
	}
	return pods
}

// heldAs is the hw.id under which the pod of a claim has the device id, or a replica of
// it; "" where others claim the same.
func (f *Fact) heldAs(id string, c claim) string {
	switch {
	case f.State == Owned, f.State == Shared && c.replica == "":
		return id
	case f.State == Shared:
		for i := range f.Replicas {
			if r := &f.Replicas[i]; r.Suffix == c.replica && r.Owner.SamePod(c.owner) {
				return id + c.replica
			}
		}
	}
	return ""
}

// describe completes the devices of a pod: before are those that the snapshot before the
// one at t had for it, nil if none.
func (d *Devices) describe(before *Devices, t pcommon.Timestamp, seen *sightings) {
	d.Since = t
	if before != nil && slices.Equal(before.IDs, d.IDs) {
		d.Since = min(t, before.Since)
	}
	for i, id := range d.IDs {
		device, _ := deviceid.CutReplica(id)
		model := ""
		if s := seen.get(device); s != nil {
			model = s.Model
		}
		if i > 0 && model != d.Model {
			model = ""
		}
		if d.Model = model; model == "" {
			return
		}
	}
}
