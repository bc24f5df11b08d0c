// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/counting"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/healthmetrics"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/kernellog"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/devicerules"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/servicerules"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/state"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/ras"
)

// Save returns the state to store. All events must have been taken.
func (e *Engine) Save() *state.State {
	e.changed = false
	s := state.New()
	for _, t := range e.services.all {
		for i, r := range servicerules.Rules {
			s.Raise(t.conditions[i].Level, state.Raised{
				Event: r.Event, Cluster: t.id.Cluster, Slurm: t.id.Slurm, Namespace: t.id.Namespace, Service: t.id.Name,
			})
		}
	}
	for _, d := range e.devices.all {
		saved := saveDevice(d)
		saveSeries(e.devices, d, &saved)
		if e.devices.logged {
			saved.LogSince = uint64(d.log.since)
		}
		if e.devices.boards.has(d) {
			saved.Driver, saved.Health, saved.Reported = d.health.driver, d.health.board.Save(), d.health.reported
			if site := e.devices.sites.of(d); site != nil {
				saved.Boot, saved.BootAt = site.boot, uint64(site.bootAt)
			}
		}
		s.Devices = append(s.Devices, saved)
		for i := range d.conditions {
			w := &e.devices.conditions[i]
			s.Raise(d.conditions[i].Level, state.Raised{Event: w.event, Cluster: d.ID.Cluster, Device: d.ID.ID, Part: w.Part})
		}
		s.Raise(d.health.condition.Level, state.Raised{Event: devicerules.Health.Event, Cluster: d.ID.Cluster, Device: d.ID.ID})
		s.Raise(d.lost.Level, state.Raised{Event: devicerules.DeviceLost.Event, Cluster: d.ID.Cluster, Device: d.ID.ID})
	}
	for n, site := range e.devices.sites {
		s.Raise(site.few.Level, state.Raised{Event: devicerules.Health.Event, Cluster: n.Cluster, Node: n.Name})
	}
	for _, x := range e.exporters.all {
		reason := names.ExporterReasonDown
		if x.frozen {
			reason = names.ExporterReasonFrozen
		}
		s.Raise(x.down.Level, state.Raised{
			Event: devicerules.ExporterDown.Event, Cluster: x.id.Cluster, Node: x.id.Node, Exporter: x.id.Name(), Reason: reason,
		})
	}
	for _, n := range e.nodes.all {
		s.Nodes = append(s.Nodes, saveNode(n))
		s.Raise(n.lost.Level, state.Raised{Event: servicerules.NodeLost.Event, Cluster: n.id.Cluster, Node: n.id.Name})
	}
	e.stragglers.save(s)
	s.Sort()
	return s
}

func saveDevice(d *device) state.Device {
	f := &d.Facts
	s := state.Device{
		Cluster: d.ID.Cluster, ID: d.ID.ID, Node: f.Node, Host: f.Host, Parent: f.Parent, Model: f.Model, PCI: f.PCI,
		Valued: d.valued,
	}
	if d.exporter != (subject.ExporterID{}) {
		s.Exporter = d.exporter.Name()
	}
	if f.Index >= 0 {
		index := f.Index
		s.Index = &index
	}
	if d.xids.Last >= 0 {
		last := d.xids.Last
		s.LastXID = &last
	}
	for _, c := range d.xids.Codes {
		x := state.XID{Code: c.Code}
		value, start, derived, known := c.Count.Known()
		if known { // what is pending has not been reported: it counts again
			x.Count, x.Derived, x.Start = max(0, value-float64(c.Notice.Pending-c.Logged)), derived, uint64(start)
		}
		newest, lines := c.Pairing.Saved()
		if newest != 0 {
			x.Log = &state.Log{At: uint64(newest), Lines: lines, Pending: c.Logged, Uncounted: !known}
		}
		if known || newest != 0 {
			s.XIDs = append(s.XIDs, x)
		}
	}
	return s
}

// saveSeries saves what a restart must not forget of counts, codes and ports.
func saveSeries(s *devices, d *device, to *state.Device) {
	for i := range s.counted {
		if c := &d.counted[i]; c.Count.Known { // what is pending counts again
			v := max(0, c.Count.Value-float64(c.Notice.Pending))
			*countOf(to, s.counted[i].Event) = &v
		}
	}
	m := d.series
	if m == nil {
		return
	}
	for i, c := range m.rises {
		if c.Known {
			if to.Rises == nil {
				to.Rises = map[string]float64{}
			}
			to.Rises[s.rising[i].name] = c.Value
		}
	}
	for _, c := range m.ras.Reported() {
		to.RAS = append(to.RAS, state.RAS{Code: c.Code, Severity: string(c.Severity)})
	}
	to.Ports = slices.Clone(m.ports.Seen)
}

// restoreSeries restores it.
func restoreSeries(s *devices, d *device, from *state.Device) {
	for i := range s.counted {
		if v := *countOf(from, s.counted[i].Event); v != nil {
			d.counted[i].Count = condition.Counter{Known: true, Value: *v}
		}
	}
	if len(from.Rises)+len(from.RAS)+len(from.Ports) == 0 {
		return
	}
	m := d.more()
	m.rises = make([]condition.Counter, len(s.rising))
	for i := range m.rises {
		if v, known := from.Rises[s.rising[i].name]; known {
			m.rises[i] = condition.Counter{Known: true, Value: v}
		}
	}
	for _, c := range from.RAS {
		m.ras.Last = append(m.ras.Last, devicerules.RASCode{Code: c.Code, Severity: ras.Severity(c.Severity)})
	}
	m.ports.Seen = slices.Compact(slices.Sorted(slices.Values(from.Ports)))
}

// countOf is where the state has the count of a rule.
func countOf(s *state.Device, event string) **float64 {
	if event == devicerules.DeviceReset.Event {
		return &s.Resets
	}
	return &s.ECC
}

func saveNode(n *node) state.Node {
	s := state.Node{Cluster: n.id.Cluster, Node: n.id.Name, Cordoned: n.cordoned}
	for id := range n.devices {
		s.Devices = append(s.Devices, id)
	}
	for v := range n.services {
		s.Services = append(s.Services, state.Service{Slurm: v.Slurm, Namespace: v.Namespace, Service: v.Name})
	}
	return s
}

// Restore takes the state from before a restart, on a new engine. What belongs to rules
// that do not run any more is left out.
func (e *Engine) Restore(s *state.State, now time.Time) {
	e.advance(now)
	if e.devices.on {
		for i := range s.Devices {
			e.restoreDevice(&s.Devices[i])
		}
	}
	if e.nodes.on {
		for i := range s.Nodes {
			e.restoreNode(&s.Nodes[i])
		}
	}
	for i := range s.Raised {
		r := &s.Raised[i]
		if c, levels := e.restored(r); c != nil && c.Level == 0 {
			c.Level = min(max(r.Level, 1), uint8(levels))
			e.raised++
		}
	}
	e.changed = false
}

func (e *Engine) restoreDevice(s *state.Device) {
	d := e.devices.get(subject.DeviceID{Cluster: s.Cluster, ID: s.ID})
	if d == nil {
		return
	}
	f := subject.Facts{Node: s.Node, Host: s.Host, Parent: s.Parent, Model: s.Model, PCI: s.PCI, Index: -1}
	if s.Index != nil {
		f.Index = max(-1, *s.Index)
	}
	e.devices.present(d, &f, true)
	d.known, d.first, d.seen, d.valued = true, 0, e.now, s.Valued
	if d.log.since = pcommon.Timestamp(s.LogSince); s.LogSince == 0 {
		d.log.since = pcommon.NewTimestampFromTime(e.wall) // lines were not read before
	}
	if id, ok := subject.ExporterNamed(s.Cluster, s.Node, s.Exporter); ok {
		d.exporter = id
	}
	if s.LastXID != nil {
		d.xids.Last = max(-1, *s.LastXID)
	}
	for _, x := range s.XIDs {
		if c := d.xids.Code(x.Code); c != nil {
			*c = devicerules.XIDCode{Code: x.Code}
			if x.Log == nil || !x.Log.Uncounted {
				c.Count = counting.Restored(x.Count, pcommon.Timestamp(x.Start), x.Derived)
			}
			if x.Log != nil {
				c.Pairing = kernellog.Restored(pcommon.Timestamp(x.Log.At), x.Log.Lines)
				c.Notice.Pending, c.Logged = max(0, x.Log.Pending), max(0, x.Log.Pending)
			}
		}
	}
	e.devices.boards.restore(d, s)
	restoreSeries(e.devices, d, s)
}

func (e *Engine) restoreNode(s *state.Node) {
	n := e.nodes.get(subject.Node{Cluster: s.Cluster, Name: s.Node})
	if n == nil {
		return
	}
	n.restored, n.cordoned = true, s.Cordoned
	for _, id := range s.Devices {
		n.devices[id] = e.now
	}
	for _, v := range s.Services {
		n.services[subject.Service{Cluster: s.Cluster, Slurm: v.Slurm, Namespace: v.Namespace, Name: v.Service}] = e.now
	}
}

// restored finds the condition that was raised, and how many levels it has; nil
// where its rule does not run.
func (e *Engine) restored(r *state.Raised) (c *condition.Condition, levels int) {
	switch {
	case r.Event == servicerules.NodeLost.Event:
		if n := e.nodes.all[subject.Node{Cluster: r.Cluster, Name: r.Node}]; n != nil {
			return &n.lost, 1
		}
		return nil, 0
	case r.Event == servicerules.Straggler.Event:
		return e.stragglers.restore(r), 1
	case r.Event == devicerules.ExporterDown.Event:
		id, ok := subject.ExporterNamed(r.Cluster, r.Node, r.Exporter)
		if !e.exporters.on || !ok {
			return nil, 0
		}
		x := e.exporters.get(id)
		if x == nil {
			return nil, 0
		}
		x.seen = e.now
		x.frozen = r.Reason != names.ExporterReasonDown
		x.Restore(x.frozen)
		return &x.down, 1
	case r.Event == devicerules.Health.Event && r.Device == "":
		if e.devices.boards.on && r.Node != "" {
			site := e.devices.sites.get(subject.Node{Cluster: r.Cluster, Name: r.Node})
			site.published = healthmetrics.Restored(fewBoards())
			return &site.few, 1
		}
		return nil, 0
	}
	if d := e.devices.all[subject.DeviceID{Cluster: r.Cluster, ID: r.Device}]; d != nil {
		if c, levels = d.find(e.devices, r.Event, r.Part); c != nil {
			return c, levels
		}
	}
	return e.services.restore(r.Event, subject.Service{Cluster: r.Cluster, Slurm: r.Slurm, Namespace: r.Namespace, Name: r.Service}), 1
}
