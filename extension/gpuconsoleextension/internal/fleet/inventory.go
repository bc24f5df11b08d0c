// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"context"
	"maps"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// place names a device or a node within a cluster.
type place struct{ cluster, name string }

// device is what is known of a device without its gauges.
type device struct {
	id       place
	node     place
	parent   string
	identity model.Metric // of its newest series
	seen     time.Time    // newest telemetry
	// alive: a series of it has not ended and is not older than the store's lookback.
	alive       bool
	utilization *float64
	measured    time.Time // of utilization
	idle        *bool
	allocated   time.Time // newest word of gpu.allocation
	owners      []consoleapi.Holder
	free        bool // known to be
	state       consoleapi.DeviceState
	parts       []*device // instances and replicas
	frozenSince time.Time // of its exporter; zero is not frozen
	gone        bool      // the summary counts a pod that holds it as missing
	silent      bool      // the summary leaves it out
	amounts     amounts
}

// inventory is all devices and nodes of a fleet.
type inventory struct {
	devices map[place]*device
	nodes   map[place]*node
	// had are the devices that services were seen with.
	had map[Key]map[place]bool
	// exporters that were seen, the worst first.
	exporters []*exporter
}

// inventoryAnswers are what an inventory is made of.
type inventoryAnswers struct {
	utilization, utilizationTime, seen, remembered *model.Vector
	peak, before                                   *model.Vector
	allocations, allocationTimes                   *model.Vector
	exporters, exporterTimes, exportersRemembered  *model.Vector
	exportersMoved                                 *model.Vector
	nodeTimes, pods                                *model.Vector
}

// askInventory asks for devices and nodes; the function returns them after wait,
// and asks once more where the node of an exporter is not known.
func (r *reading) askInventory(s queries.Selector) func(context.Context) (*inventory, error) {
	o := &r.options
	a := inventoryAnswers{
		utilization:     r.vector(queries.DeviceUtilization(s)),
		utilizationTime: r.vector(queries.DeviceUtilizationTime(s)),
		seen:            r.vector(queries.DevicesSeen(s)),
		remembered:      r.vector(queries.DevicesRemembered(s, o.Remembered)),
		peak:            r.vector(queries.UtilizationPeak(s, r.thresholds.IdleFor)),
		before:          r.vector(queries.SeenBefore(s, r.thresholds.IdleFor)),
		allocations:     r.vector(queries.Allocations(s)),
		allocationTimes: r.vector(queries.AllocationTimes(s)),
		exporters:       r.vector(queries.Exporters(s)),
		exporterTimes:   r.vector(queries.ExporterTimes(s)),

		exportersRemembered: r.vector(queries.ExportersRemembered(s, o.Remembered)),
		exportersMoved:      r.vector(queries.ExportersMoved(s, o.Remembered)),
		nodeTimes:           r.vector(queries.NodeTimes(s)),
		pods:                r.vector(queries.PodStates(s)),
	}
	return func(ctx context.Context) (*inventory, error) {
		inv := &inventory{devices: map[place]*device{}, nodes: map[place]*node{}, had: map[Key]map[place]bool{}}
		inv.putTelemetry(&a)
		inv.putIdle(&a, r.thresholds.IdleThreshold)
		r.putAllocations(inv, &a)
		inv.nameServices(*a.pods)
		r.putNodes(inv, &a)
		if err := r.putExporters(ctx, inv, &a, s); err != nil {
			return nil, err
		}
		r.settle(inv)
		return inv, nil
	}
}

func (inv *inventory) device(m model.Metric) *device {
	id := place{string(m[queries.Cluster]), string(m[queries.Device])}
	if id.name == "" {
		return nil
	}
	d := inv.devices[id]
	if d == nil {
		d = &device{id: id}
		inv.devices[id] = d
	}
	return d
}

// putTelemetry notes which devices were seen, and when.
func (inv *inventory) putTelemetry(a *inventoryAnswers) {
	note := func(v *model.Vector, alive bool) {
		for _, sample := range *v {
			d := inv.device(sample.Metric)
			if d == nil {
				continue
			}
			inv.owned(sample.Metric, d)
			t := seconds(sample.Value)
			// A series that continues is better evidence than one that may have ended.
			if t.After(d.seen) || alive && !d.alive {
				d.identity = sample.Metric
			}
			if t.After(d.seen) {
				d.seen = t
			}
			d.alive = d.alive || alive
		}
	}
	note(a.seen, true)
	note(a.utilizationTime, true)
	for _, sample := range *a.utilizationTime {
		if d := inv.device(sample.Metric); d != nil {
			if t := seconds(sample.Value); t.After(d.measured) {
				d.measured = t
			}
		}
	}
	for _, sample := range *a.utilization {
		if d := inv.device(sample.Metric); d != nil && (d.utilization == nil || sameOwner(sample.Metric, d.identity)) {
			d.utilization = pointer(float64(sample.Value))
		}
	}
	// What goes on is in the answers above: here only what is silent counts.
	for _, sample := range *a.remembered {
		if d := inv.devices[placeOf(sample.Metric)]; d != nil && d.alive {
			inv.owned(sample.Metric, d)
			continue
		}
		one := model.Vector{sample}
		note(&one, false)
	}
	for _, d := range inv.devices {
		d.parent = parentOf(d.id.name, d.identity)
		d.node = place{d.id.cluster, nodeName(d.identity)}
		if d.identity[queries.Pod] != "" {
			d.owners = []consoleapi.Holder{ownerOf(d.identity, consoleapi.SourceExporterLabels)}
		}
	}
}

// owned notes that a service was seen with a device.
func (inv *inventory) owned(m model.Metric, d *device) {
	key := keyOf(m)
	if key.Service == "" {
		return
	}
	if inv.had[key] == nil {
		inv.had[key] = map[place]bool{}
	}
	inv.had[key][d.id] = true
}

func sameOwner(a, b model.Metric) bool {
	return a[queries.Namespace] == b[queries.Namespace] && a[queries.Pod] == b[queries.Pod] && a[queries.Container] == b[queries.Container]
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
		Namespace: string(m[queries.Namespace]), Service: text(m[queries.Service]), Pod: string(m[queries.Pod]),
		Container: text(m[queries.Container]), Source: source,
	}
}

// putIdle notes which devices were below the threshold for long.
func (inv *inventory) putIdle(a *inventoryAnswers, threshold float64) {
	before := map[place]bool{}
	for _, sample := range *a.before {
		before[placeOf(sample.Metric)] = true
	}
	for _, sample := range *a.peak {
		if d := inv.device(sample.Metric); d != nil && d.utilization != nil {
			d.idle = pointer(float64(sample.Value) < threshold && before[d.id])
		}
	}
}

// putAllocations notes who holds what. What was reported too long ago is unknown.
func (r *reading) putAllocations(inv *inventory, a *inventoryAnswers) {
	times := map[model.Fingerprint]time.Time{}
	for _, sample := range *a.allocationTimes {
		times[sample.Metric.Fingerprint()] = seconds(sample.Value)
	}
	reported := map[*device][]consoleapi.Holder{}
	unresolved := map[*model.Sample]time.Time{}
	for _, sample := range *a.allocations {
		series := maps.Clone(sample.Metric) // as timestamp() names it
		delete(series, model.MetricNameLabel)
		t := times[series.Fingerprint()]
		r.seenOfNode(inv, sample.Metric, t)
		if !r.fresh(t) {
			continue
		}
		if sample.Metric[queries.Resolved] == "false" {
			unresolved[sample] = t
			continue
		}
		d := inv.device(sample.Metric)
		if d == nil {
			continue
		}
		if d.identity == nil {
			d.identity, d.parent, d.node = sample.Metric, parentOf(d.id.name, sample.Metric), place{d.id.cluster, nodeName(sample.Metric)}
		}
		d.allocated = t
		reported[d] = append(reported[d], allocated(sample)...)
	}
	for d, owners := range reported {
		d.owners = owners
		d.free = len(owners) == 0
	}
	inv.putUnresolved(unresolved)
}

// nameServices gives owners their services: the kubelet names the pods that own
// devices, and no service.
func (inv *inventory) nameServices(pods model.Vector) {
	type pod struct{ cluster, namespace, name string }
	services := make(map[pod]model.LabelValue, len(pods))
	for _, sample := range pods {
		m := sample.Metric
		services[pod{string(m[queries.Cluster]), string(m[queries.Namespace]), string(m[queries.Pod])}] = m[queries.Service]
	}
	for _, d := range inv.devices {
		for i := range d.owners {
			if h := &d.owners[i]; h.Service == nil {
				h.Service = text(services[pod{d.id.cluster, h.Namespace, h.Pod}])
			}
		}
	}
}

// allocated is the owner that gpu.allocation names; none for a free device.
func allocated(sample *model.Sample) []consoleapi.Holder {
	m := sample.Metric
	if sample.Value <= 0 || m[queries.Pod] == "" {
		return nil
	}
	source := string(m[queries.Source])
	if source == "" {
		source = "pod_resources"
	}
	h := ownerOf(m, source)
	h.Share = pointer(min(1, float64(sample.Value)))
	switch s := string(m[queries.Sharing]); s {
	case "none", "time_slicing", "mps":
		h.Sharing = &s
	}
	return []consoleapi.Holder{h}
}

// putUnresolved notes devices that are held, and that cannot be joined to a device
// in telemetry: only on nodes without any, where nothing is counted twice.
func (inv *inventory) putUnresolved(samples map[*model.Sample]time.Time) {
	telemetry := map[place]bool{}
	for _, d := range inv.devices {
		if !d.seen.IsZero() {
			telemetry[d.node] = true
		}
	}
	for sample, t := range samples {
		at := place{string(sample.Metric[queries.Cluster]), nodeName(sample.Metric)}
		if telemetry[at] {
			continue
		}
		d := inv.device(sample.Metric)
		if d == nil {
			continue
		}
		// Its id is the node's name and the kubelet's id, which names no parent.
		d.identity, d.node, d.allocated = sample.Metric, at, t
		d.owners = append(d.owners, allocated(sample)...)
		d.free = len(d.owners) == 0
	}
}
