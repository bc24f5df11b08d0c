// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package subject has what events are about: devices, exporters, nodes and services,
// with their identity, their resource and their name in a sentence.
package subject

import (
	"cmp"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// DeviceID is the identity of a device: never its owner or its index, which change.
type DeviceID struct{ Cluster, ID string }

// Owner is the container or the job that a device is assigned to, and its service.
type Owner struct {
	Namespace, Pod, Container, Service string
	Job                                Job
}

// Compare orders owners.
func (o Owner) Compare(other Owner) int {
	return cmp.Or(cmp.Compare(o.Namespace, other.Namespace), cmp.Compare(o.Pod, other.Pod),
		cmp.Compare(o.Container, other.Container), cmp.Compare(o.Service, other.Service), o.Job.compare(other.Job))
}

// Facts describe a device for people.
type Facts struct {
	Node, Host, Parent, Model, PCI, Driver string
	Index                                  int64 // -1: unknown
	Owner                                  Owner
}

// Clone returns a copy with all texts in one piece of memory of their own: those of a batch may
// be parts of a page.
func (f *Facts) Clone() Facts {
	c := *f
	texts := [...]*string{
		&c.Node, &c.Host, &c.Parent, &c.Model, &c.PCI, &c.Driver,
		&c.Owner.Namespace, &c.Owner.Pod, &c.Owner.Container, &c.Owner.Service,
		&c.Owner.Job.Cluster, &c.Owner.Job.ID, &c.Owner.Job.User, &c.Owner.Job.Account, &c.Owner.Job.Partition, &c.Owner.Job.Namespace,
	}
	var all strings.Builder
	for _, s := range texts {
		all.WriteString(*s)
	}
	rest := all.String()
	for _, s := range texts {
		*s, rest = rest[:len(*s)], rest[len(*s):]
	}
	return c
}

// Device is a physical GPU, or a part of one: a MIG instance, a partition, a tile.
type Device struct {
	ID    DeviceID
	Facts Facts
	Make  deviceid.Make // by ID
}

// Other reports whether the device is of another vendor than NVIDIA. One with an id of no
// known form is taken for NVIDIA's.
func (d *Device) Other() bool { return d.Make > deviceid.MakeNVIDIA }

// part is what a part of a board of this vendor is called.
func (d *Device) part() string {
	switch d.Make {
	case deviceid.MakeAMD:
		return "partition"
	case deviceid.MakeIntelGPU:
		return "tile"
	}
	return "MIG instance"
}

// About makes the device the subject of an event. Its owner is an attribute and no part
// of the key.
func (d *Device) About(ev *event.Event, parts ...string) {
	key := []string{d.ID.Cluster, d.ID.ID}
	for _, p := range parts {
		if p != "" {
			key = append(key, p)
		}
	}
	ev.Key = event.Key(ev.Name, key...)
	is, f := *d, d.Facts
	ev.Resource = is.Identify
	ev.Add(func(attrs pcommon.Map) {
		event.PutTexts(attrs, names.K8sNamespaceName, f.Owner.Namespace, names.K8sPodName, f.Owner.Pod,
			names.K8sContainerName, f.Owner.Container, names.ServiceName, f.Owner.Service)
		f.Owner.Job.put(attrs)
	})
}

// Identify writes the device as the attributes of a resource, without its owner.
func (d *Device) Identify(attrs pcommon.Map) {
	f := &d.Facts
	event.PutTexts(attrs,
		names.K8sClusterName, d.ID.Cluster, names.K8sNodeName, f.Node, names.HostName, f.Host,
		names.HwID, d.ID.ID, names.HwType, names.HwTypeGPU, names.HwParent, f.Parent, names.HwModel, f.Model,
		names.GPUPCIAddress, f.PCI)
	if f.Index >= 0 {
		attrs.PutInt(names.GPUIndex, f.Index)
	}
}

// String names the device in a sentence: by its index and its node, which people look
// for, and by its id, which does not change.
func (d *Device) String() string {
	id, at := event.Clean(d.ID.ID), ""
	if where := cmp.Or(d.Facts.Node, d.Facts.Host); where != "" {
		at = " on " + event.Clean(where)
	}
	_, instance, _ := strings.Cut(id, "/")
	switch gpu := fmt.Sprintf("GPU %d%s", d.Facts.Index, at); {
	case d.Facts.Index >= 0 && d.Facts.Parent == "":
		return gpu + " (" + id + ")"
	case d.Other() && d.Facts.Parent != "" && instance != "":
		// The index is that of the part, and not of its board.
		return d.part() + " " + instance + " of " + event.Clean(d.Facts.Parent) + at
	case d.Facts.Index >= 0 && instance != "":
		return "MIG instance " + instance + " of " + gpu + " (" + id + ")"
	case d.Facts.Parent != "":
		return d.part() + " " + id + at
	case !deviceid.HasGPU(id):
		return "GPU " + id + at
	}
	return id + at
}

// Describe makes the event's sentence of what is the matter with the device, and of who
// owned it then: it may be read when another pod does.
func (d *Device) Describe(ev *event.Event, what string) { ev.Body = d.String() + what + d.owned(ev) }

func (d *Device) owned(ev *event.Event) string {
	o := &d.Facts.Owner
	if !o.Owned() {
		return "."
	}
	out := ". It was owned by " + o.String()
	if ev.Cleared() {
		return out + " when this was cleared."
	}
	return out + " when this was raised."
}

// DescribeWhole is Describe with a text that ends with a full stop.
func (d *Device) DescribeWhole(ev *event.Event, what string) {
	ev.Body = d.String() + what
	if owned := d.owned(ev); owned != "." {
		ev.Body += owned[1:]
	}
}
