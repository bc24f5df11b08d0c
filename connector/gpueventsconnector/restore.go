// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/counting"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// restore takes over the state from before a restart. What belongs to rules that
// do not run any more is left out.
func (e *engine) restore(s *savedState, now time.Time) {
	e.advance(now)
	if e.onDevices {
		for i := range s.Devices {
			e.restoreDevice(&s.Devices[i])
		}
	}
	if e.onServices && e.cfg.Events.NodeLost.Enabled {
		for i := range s.Nodes {
			e.restoreNode(&s.Nodes[i])
		}
	}
	for i := range s.Raised {
		r := &s.Raised[i]
		if c, levels := e.restored(r); c != nil && c.level == 0 {
			c.level = min(max(r.Level, 1), uint8(levels))
			e.raised++
		}
	}
	e.changed = false
}

func (e *engine) restoreDevice(s *savedDevice) {
	d := e.device(deviceID{s.Cluster, s.ID})
	if d == nil {
		return
	}
	f := facts{node: s.Node, host: s.Host, parent: s.Parent, model: s.Model, pci: s.PCI, index: -1}
	if s.Index != nil {
		f.index = max(-1, *s.Index)
	}
	e.present(d, &f, true)
	d.known, d.heard, d.valued = true, e.now, s.Valued
	if id, ok := exporterNamed(s.Cluster, s.Node, s.Exporter); ok {
		d.exporter = id
	}
	if s.LastXID != nil {
		d.xid.last = max(-1, *s.LastXID)
	}
	for _, x := range s.XIDs {
		if c := d.xid.code(x.Code); c != nil {
			*c = xidCode{code: x.Code, count: counting.Restored(x.Count, pcommon.Timestamp(x.Start), x.Derived)}
		}
	}
	if s.ECC != nil {
		d.ecc = counter{known: true, value: *s.ECC}
	}
}

func (e *engine) restoreNode(s *savedNode) {
	n := e.node(place{s.Cluster, s.Node})
	if n == nil {
		return
	}
	n.restored, n.cordoned = true, s.Cordoned
	for _, id := range s.Devices {
		n.devices[id] = e.now
	}
	for _, v := range s.Services {
		n.services[service{s.Cluster, v.Namespace, v.Service}] = e.now
	}
}

// restored finds the condition that was raised, and how many levels it has; nil
// where its rule does not run.
func (e *engine) restored(r *savedEvent) (c *condition, levels int) {
	cfg := &e.cfg.Events
	switch r.Event {
	case names.EventServicePartial, names.EventServiceNoData, names.EventIdleHeld:
		i := slices.IndexFunc(serviceRules[:], func(o rule) bool { return o.event == r.Event })
		if on := [...]bool{cfg.ServicePartial.Enabled, cfg.ServiceNoData.Enabled, cfg.IdleHeld.Enabled}; !e.onServices || !on[i] || r.Service == "" {
			return nil, 0
		}
		s := service{r.Cluster, r.Namespace, r.Service}
		t := e.services[s]
		if t == nil {
			t = &tenant{service: s, heard: e.now, restored: true}
			e.services[s] = t
			e.unheard++
		}
		return &t.conds[i], 1
	case names.EventNodeLost:
		if n := e.nodes[place{r.Cluster, r.Node}]; n != nil {
			return &n.lost, 1
		}
		return nil, 0
	case names.EventExporterDown:
		id, ok := exporterNamed(r.Cluster, r.Node, r.Exporter)
		if !e.onDevices || !cfg.ExporterDown.Enabled || !ok {
			return nil, 0
		}
		x := e.exporterOf(id)
		if x == nil {
			return nil, 0
		}
		x.heard = e.now
		x.restored = r.Reason != names.ExporterReasonDown
		x.frozen = x.restored
		return &x.down, 1
	}
	d := e.devices[deviceID{r.Cluster, r.Device}]
	if d == nil {
		return nil, 0
	}
	if r.Event == names.EventDeviceLost && cfg.DeviceLost.Enabled {
		return &d.lost, 1
	}
	for i := range e.deviceRules {
		if o := &e.deviceRules[i].rule; o.event == r.Event && o.part == r.Part {
			return &d.conds[i], len(o.levels)
		}
	}
	return nil, 0
}
