// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/pricing"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// describe reads what a resource and its points have about a node or a device.
func (x *Intake) describe(r *resource) {
	if r.what&hasNode != 0 {
		x.describeNode(r)
	}
	if r.what&hasValues != 0 && !r.other {
		x.describeDevice(r)
	}
}

func (x *Intake) describeNode(r *resource) {
	for _, sm := range r.rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			switch m.Name() {
			case names.GPUNodeInfo.Name, names.GPUNodeSchedulable.Name, names.GPUNodeMIGReconfiguring.Name:
				x.nodePoints(r, m)
			}
		}
	}
}

func (x *Intake) nodePoints(r *resource, m pmetric.Metric) {
	dps, ok := points.Numbers(m)
	if !ok {
		x.counts.Invalid++
		return
	}
	for _, p := range dps.All() {
		if p.Flags().NoRecordedValue() {
			continue // the end of a series: what replaces it has a point of its own
		}
		at, ok := x.timeOf(p.Timestamp())
		if !ok {
			continue
		}
		n := x.node(r.cluster, nodeName(r, p.Attributes()))
		if n == nil {
			continue
		}
		switch v := points.Value(p); {
		case m.Name() == names.GPUNodeInfo.Name:
			n.learn(p.Attributes(), x.cfg.NodeLabels, at)
		case v != 0 && v != 1:
			x.counts.Invalid++
		case at < n.stateAt:
		default:
			if m.Name() == names.GPUNodeSchedulable.Name {
				n.cordoned = v == 0
			} else {
				n.reconfiguring = v == 1
			}
			n.stateAt = at
			x.ledger.Node(n.key.cluster, n.key.name, at, n.cordoned || n.reconfiguring)
		}
	}
}

// nodeName is the node of a point: without Kubernetes, the host.
func nodeName(r *resource, attrs pcommon.Map) string {
	if r.node != "" {
		return r.node
	}
	if name := points.Str(attrs, names.K8sNodeName); name != "" {
		return name
	}
	return r.host
}

// learn reads a point of gpu.node.info.
func (n *node) learn(attrs pcommon.Map, keys []string, at int64) {
	if at < n.info {
		return
	}
	n.info = at
	f := facts{
		points.Str(attrs, names.HostType), points.Str(attrs, names.CloudRegion), points.Str(attrs, names.GPUCapacityType),
		points.Str(attrs, names.GPUNodePool), labels(attrs, keys),
	}
	if f == n.facts {
		return
	}
	n.facts = facts{text(f.hostType), text(f.region), text(f.capacity), text(f.pool), f.labels}
	n.version++
}

// labels are the labels of the node that prices depend on.
func labels(attrs pcommon.Map, keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	const most = 4096 // bytes of all of them
	var all []pricing.Label
	size := 0
	for _, key := range keys {
		value := points.Str(attrs, names.NodeLabelPrefix+key)
		if size += len(key) + len(value) + 2; size > most {
			break
		}
		if value != "" && !strings.ContainsAny(value, ",=") && text(value) == value {
			all = append(all, pricing.Label{Key: key, Value: value})
		}
	}
	return pricing.Labels(all)
}

// describeDevice reads what is known of a device, and notes that there is telemetry of it.
func (x *Intake) describeDevice(r *resource) {
	for _, sm := range r.rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			name := m.Name()
			switch name {
			case names.GPUUtilization.Name, names.HwEnergy.Name, names.HwPower.Name, names.GPUMemoryLimit.Name, names.GPUPowerLimit.Name:
			default:
				continue
			}
			dps, ok := points.Numbers(m)
			if !ok {
				x.counts.Invalid++
				continue
			}
			for _, p := range dps.All() {
				v := points.Value(p)
				if math.IsNaN(v) || math.IsInf(v, 0) {
					continue
				}
				at, ok := x.timeOf(p.Timestamp())
				if !ok {
					continue
				}
				id, isGPU := deviceOf(r, p)
				if !isGPU {
					continue
				}
				if id == "" {
					x.counts.Invalid++
					continue
				}
				b := x.see(r, id, at)
				if b == nil || id != b.id {
					continue
				}
				switch name {
				case names.GPUMemoryLimit.Name:
					b.size(v)
				case names.GPUPowerLimit.Name:
					b.watts = max(b.watts, min(v, maxWatts))
				}
			}
		}
	}
}

// deviceOf is the hw.id of a point; false if it is of other hardware than a GPU.
func deviceOf(r *resource, p pmetric.NumberDataPoint) (id string, isGPU bool) {
	if r.device != "" {
		return r.device, true
	}
	for k, v := range p.Attributes().All() {
		switch k {
		case names.HwID:
			id = v.Str()
		case names.HwType:
			if v.Str() != names.HwTypeGPU && v.Str() != "" {
				return "", false
			}
		}
	}
	return id, true
}

// see notes that there is telemetry of a device at a time. It returns the board, nil where
// there are too many.
func (x *Intake) see(r *resource, id string, at int64) *board {
	if r.seen != nil && r.seenID == id && r.seenAt == at {
		return r.seen
	}
	is := placeOf(id, r.parent)
	b := x.board(is.board)
	if b == nil {
		return nil
	}
	p := b.part(is.part)
	if p == nil {
		x.counts.Refused++
		return nil
	}
	r.seen, r.seenID, r.seenAt = b, id, at
	x.locate(r, b)
	if b.node != nil {
		b.node.seen = max(b.node.seen, at)
		x.bare(b, at)
		p = b.part(is.part)
	}
	if r.device == id {
		if r.model != "" && (is.part == b.id || b.model == "") && r.model != b.model {
			b.model = text(r.model)
			b.changed()
		}
		p.describe(r.profile)
		// What is no longer named has no owner, and what other metrics of the device
		// name in the same batch is the same.
		p.owner = x.ownerOf(r, byTelemetry)
	}
	p.seen, b.seen = max(p.seen, at), max(b.seen, at)
	return b
}

// locate makes the board one of the node that telemetry names. Where gpu.allocation named
// the board, it knows better: telemetry may have the name of the host alone.
func (x *Intake) locate(r *resource, b *board) {
	name := r.node
	if name == "" {
		name = r.host
	}
	if name == "" {
		return
	}
	if b.named != 0 && b.node != nil {
		if n := b.node; r.node == "" && n.key.name != name {
			if key := (nodeKey{r.cluster, name}); x.hosts[key] != n && len(x.hosts) < x.cfg.MaxDevices && !tooLong(r.cluster, name) {
				x.hosts[nodeKey{strings.Clone(r.cluster), strings.Clone(name)}] = n
			}
		}
		return
	}
	n := x.hosts[nodeKey{r.cluster, name}]
	if n == nil {
		n = x.node(r.cluster, name)
	}
	if n != nil {
		n.take(b)
	}
}
