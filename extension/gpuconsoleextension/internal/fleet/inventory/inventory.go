// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package inventory joins what the responses of a store contain of devices, nodes and
// exporters.
package inventory // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/conditions"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/age"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// Key names a service; an empty cluster is that of telemetry that names none. Of a service
// on Slurm, which has a Slurm cluster, the namespace is its account.
type Key struct{ Cluster, Slurm, Namespace, Service string }

// KeyOf is the service that a series is of.
func KeyOf(m model.Metric) Key {
	k := Key{Cluster: string(m[queries.Cluster]), Namespace: string(m[queries.Namespace]), Service: string(m[queries.Service])}
	if k.Namespace == "" && m[queries.SlurmCluster] != "" {
		k.Slurm, k.Namespace = string(m[queries.SlurmCluster]), string(m[queries.Account])
	}
	return k
}

// Selector selects the series of the service.
func (k Key) Selector() queries.Selector {
	if k.Slurm != "" {
		return queries.OfSlurmService(k.Cluster, k.Slurm, k.Namespace, k.Service)
	}
	return queries.OfService(k.Cluster, k.Namespace, k.Service)
}

// Unit is the labels of what the service consists of.
func (k Key) Unit() queries.Unit {
	if k.Slurm != "" {
		return queries.UnitJob
	}
	return queries.UnitPod
}

// KeyOfOwner is the service of an owner in a cluster.
func KeyOfOwner(cluster string, h *consoleapi.Holder) Key {
	return Key{cluster, h.SlurmCluster(), h.Namespace, optional.Value(h.Service)}
}

// UnitOf is the pod that a series is of, or the part of a job on a node.
func UnitOf(m model.Metric) string {
	if m[queries.Pod] != "" || m[queries.SlurmJob] == "" {
		return string(m[queries.Pod])
	}
	return string(m[queries.SlurmJob]) + " on " + nodeName(m)
}

// JobOf is the job that a series is of; nil if it is of none.
func JobOf(m model.Metric) *consoleapi.Job {
	if m[queries.SlurmJob] == "" {
		return nil
	}
	return &consoleapi.Job{
		Cluster: string(m[queries.SlurmCluster]), ID: string(m[queries.SlurmJob]), User: optional.Text(m[queries.SlurmUser]), Account: optional.Text(m[queries.Account]),
		Partition: optional.Text(m[queries.SlurmPartition]), Nested: m[queries.Pod] != "" || m[queries.Nested] == "true",
	}
}

// CompareKeys orders by namespace, then service, then cluster.
func CompareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Slurm, b.Slurm))
}

// Place names a device or a node within a cluster.
type Place struct{ Cluster, Name string }

// PlaceOf is the device that a series is of.
func PlaceOf(m model.Metric) Place {
	return Place{string(m[queries.Cluster]), string(m[queries.Device])}
}

// Shown is the place as conditions name it.
func (p Place) Shown() conditions.Place { return conditions.Place{Cluster: p.Cluster, Name: p.Name} }

// Device is what is known of a device without its gauges.
type Device struct {
	ID       Place
	Node     Place
	Parent   string
	Identity model.Metric // of its newest series
	Seen     time.Time    // newest telemetry
	// alive: a series of it has not ended and is not older than the store's lookback.
	alive       bool
	Utilization *float64
	Measured    time.Time // of utilization
	Idle        *bool
	Allocated   time.Time // newest word of gpu.allocation
	Owners      []consoleapi.Holder
	Free        bool // known to be
	State       consoleapi.DeviceState
	Parts       []*Device // instances and replicas
	FrozenSince time.Time // of its exporter; zero is not frozen
	Gone        bool      // the summary counts a pod that holds it as missing
	Silent      bool      // the summary leaves it out
	Amounts     amounts
}

// Inventory is all devices and nodes of a fleet.
type Inventory struct {
	Devices map[Place]*Device
	Nodes   map[Place]*Node
	// Had are the devices that services were seen with.
	Had map[Key]map[Place]bool
	// Exporters that were seen, the worst first.
	Exporters []*Exporter
}

// answers are what an inventory is made of.
type answers struct {
	utilization, utilizationTime, seen, remembered *model.Vector
	peak, before                                   *model.Vector
	allocations, allocationTimes                   *model.Vector
	exporters, exporterTimes, exportersRemembered  *model.Vector
	exportersMoved                                 *model.Vector
	nodeTimes, pods                                *model.Vector
}

// Limits are what an inventory is made by.
type Limits struct {
	Remembered    time.Duration // what fell silent is named for so long
	IdleThreshold float64       // utilization below which a device is idle
	IdleFor       time.Duration // once it was so for that long
}

// Ask asks for devices and nodes; the function returns them after Wait,
// and asks once more where the node of an exporter is not known.
func Ask(q *ask.Questions, j *age.Judge, l Limits, s queries.Selector) func(context.Context) (*Inventory, error) {
	a := answers{
		utilization:     q.Vector(queries.DeviceUtilization(s)),
		utilizationTime: q.Vector(queries.DeviceUtilizationTime(s)),
		seen:            q.Vector(queries.DevicesSeen(s)),
		remembered:      q.Vector(queries.DevicesRemembered(s, l.Remembered)),
		peak:            q.Vector(queries.UtilizationPeak(s, l.IdleFor)),
		before:          q.Vector(queries.OwnersBefore(s, l.IdleFor)),
		allocations:     q.Vector(queries.Allocations(s)),
		allocationTimes: q.Vector(queries.AllocationTimes(s)),
		exporters:       q.Vector(queries.Exporters(s)),
		exporterTimes:   q.Vector(queries.ExporterTimes(s)),

		exportersRemembered: q.Vector(queries.ExportersRemembered(s, l.Remembered)),
		exportersMoved:      q.Vector(queries.ExportersMoved(s, l.Remembered)),
		nodeTimes:           q.Vector(queries.NodeTimes(s)),
		pods:                q.Vector(queries.PodStates(s)),
	}
	return func(ctx context.Context) (*Inventory, error) {
		b := builder{&Inventory{Devices: map[Place]*Device{}, Nodes: map[Place]*Node{}, Had: map[Key]map[Place]bool{}}, j}
		b.putTelemetry(&a)
		b.putAllocations(&a)
		b.putIdle(&a, l.IdleThreshold)
		b.nameServices(*a.pods)
		b.putNodes(&a)
		b.Exporters = exporters(&a, j, q.At.Add(-l.Remembered))
		join := joiner{b.Inventory, map[string][]*Exporter{}, map[*Node][]*Exporter{}}
		if err := lookUp(ctx, q, s, join.candidates(), join.note); err != nil {
			return nil, err
		}
		join.settle()
		settle(b.Inventory, j)
		return b.Inventory, nil
	}
}

// builder fills an inventory with what the responses contain.
type builder struct {
	*Inventory
	judge *age.Judge
}

// Node is the node of that name, which is added if it is not known yet.
func (inv *Inventory) Node(id Place) *Node {
	n := inv.Nodes[id]
	if n == nil {
		n = &Node{ID: id, Exporter: consoleapi.ExporterUnknown}
		inv.Nodes[id] = n
	}
	return n
}

func (inv *Inventory) device(m model.Metric) *Device {
	id := Place{string(m[queries.Cluster]), string(m[queries.Device])}
	if id.Name == "" {
		return nil
	}
	d := inv.Devices[id]
	if d == nil {
		d = &Device{ID: id}
		inv.Devices[id] = d
	}
	return d
}

// putTelemetry notes which devices were seen, and when.
func (inv builder) putTelemetry(a *answers) {
	note := func(v *model.Vector, alive bool) {
		for _, sample := range *v {
			d := inv.device(sample.Metric)
			if d == nil {
				continue
			}
			inv.owned(sample.Metric, d)
			t := ask.Seconds(sample.Value)
			// A series that continues is better evidence than one that may have ended.
			if t.After(d.Seen) || alive && !d.alive {
				d.Identity = sample.Metric
			}
			if t.After(d.Seen) {
				d.Seen = t
			}
			d.alive = d.alive || alive
		}
	}
	note(a.seen, true)
	note(a.utilizationTime, true)
	for _, sample := range *a.utilizationTime {
		if d := inv.device(sample.Metric); d != nil {
			if t := ask.Seconds(sample.Value); t.After(d.Measured) {
				d.Measured = t
			}
		}
	}
	for _, sample := range *a.utilization {
		if d := inv.device(sample.Metric); d != nil && (d.Utilization == nil || sameOwner(sample.Metric, d.Identity)) {
			d.Utilization = optional.Pointer(float64(sample.Value))
		}
	}
	// What goes on is in the answers above: here only what is silent counts.
	for _, sample := range *a.remembered {
		if d := inv.Devices[PlaceOf(sample.Metric)]; d != nil && d.alive {
			inv.owned(sample.Metric, d)
			continue
		}
		one := model.Vector{sample}
		note(&one, false)
	}
	for _, d := range inv.Devices {
		d.Parent = parentOf(d.ID.Name, d.Identity)
		d.Node = Place{d.ID.Cluster, nodeName(d.Identity)}
		if UnitOf(d.Identity) != "" {
			d.Owners = []consoleapi.Holder{ownerOf(d.Identity, consoleapi.SourceExporterLabels)}
		}
	}
}

// owned notes that a service was seen with a device.
func (inv *Inventory) owned(m model.Metric, d *Device) {
	key := KeyOf(m)
	if key.Service == "" {
		return
	}
	if inv.Had[key] == nil {
		inv.Had[key] = map[Place]bool{}
	}
	inv.Had[key][d.ID] = true
}

func sameOwner(a, b model.Metric) bool {
	return a[queries.Namespace] == b[queries.Namespace] && a[queries.Pod] == b[queries.Pod] && a[queries.Container] == b[queries.Container] &&
		a[queries.SlurmCluster] == b[queries.SlurmCluster] && a[queries.SlurmJob] == b[queries.SlurmJob]
}

func parentOf(id string, m model.Metric) string {
	if p := m[queries.Parent]; p != "" {
		return string(p)
	}
	return deviceid.Parent(id)
}

// nodeName is the name of the node that telemetry comes from, else of the host,
// else the exporter's address.
func nodeName(m model.Metric) string {
	for _, label := range []model.LabelName{queries.Node, queries.Host, queries.Address} {
		if m[label] != "" {
			return string(m[label])
		}
	}
	return ""
}

func ownerOf(m model.Metric, source string) consoleapi.Holder {
	return consoleapi.Holder{
		Namespace: KeyOf(m).Namespace, Service: optional.Text(m[queries.Service]), Pod: UnitOf(m),
		Container: optional.Text(m[queries.Container]), Source: source, Job: JobOf(m),
	}
}

// putIdle notes which devices were below the threshold for long. Of a device that is held this is
// counted from when its owner began to hold it, as gpu_summary does: what it did not do before is
// no waste of this owner. A series without an owner is of the time before the owner was known.
func (inv builder) putIdle(a *answers, threshold float64) {
	type tenure struct {
		device                 Place
		namespace, slurm, unit string
	}
	tenureOf := func(m model.Metric) tenure {
		k := KeyOf(m)
		return tenure{PlaceOf(m), k.Namespace, k.Slurm, UnitOf(m)}
	}
	before, since := map[Place]bool{}, map[tenure]bool{}
	for _, sample := range *a.before {
		before[PlaceOf(sample.Metric)] = true
		since[tenureOf(sample.Metric)] = true
	}
	owned := map[Place][]tenure{} // owners within the time, as telemetry names them
	for _, sample := range *a.peak {
		d := inv.device(sample.Metric)
		if d == nil || d.Utilization == nil {
			continue
		}
		idle := float64(sample.Value) < threshold && before[d.ID]
		d.Idle = optional.Pointer(idle && (d.Idle == nil || *d.Idle))
		if t := tenureOf(sample.Metric); t.unit != "" {
			owned[d.ID] = append(owned[d.ID], t)
		}
	}
	for id, all := range owned {
		d := inv.Devices[id]
		held := func(t tenure) bool {
			return slices.ContainsFunc(d.Owners, func(h consoleapi.Holder) bool { return t == tenure{id, h.Namespace, h.SlurmCluster(), h.Pod} })
		}
		long := slices.ContainsFunc(all, func(t tenure) bool { return held(t) && since[t] })
		other := slices.ContainsFunc(all, func(t tenure) bool { return !held(t) })
		if len(d.Owners) > 0 && (!long || other) {
			d.Idle = optional.Pointer(false)
		}
	}
}

// Kubernetes reports whether telemetry names a node of Kubernetes, or a kubelet.
func (inv *Inventory) Kubernetes() bool {
	for _, n := range inv.Nodes {
		if n.Schedulable != nil || !n.Allocated.IsZero() {
			return true
		}
	}
	for _, d := range inv.Devices {
		if d.Identity[queries.Node] != "" {
			return true
		}
	}
	return slices.ContainsFunc(inv.Exporters, func(e *Exporter) bool { return e.onKubernetes })
}

// FrozenPods are the pods of a service that have a device of a frozen exporter, and
// since when: what it repeats is no data.
func (inv *Inventory) FrozenPods(key Key) map[string]time.Time {
	frozen := map[string]time.Time{}
	for _, d := range inv.Devices {
		for _, h := range d.Owners {
			if d.FrozenSince.IsZero() || KeyOfOwner(key.Cluster, &h) != key {
				continue
			}
			if t, found := frozen[h.Pod]; !found || d.FrozenSince.Before(t) {
				frozen[h.Pod] = d.FrozenSince
			}
		}
	}
	return frozen
}
