// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/answers"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/kernellog"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/straggler"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/internal/xid"
)

// resource is the resource of the points that are read.
type resource struct {
	straggler.Source
	attrs pcommon.Map

	last   *device // of the last point
	shown  bool    // last has what the resource contains
	lastID string
	metric string            // the name of that of the points that are read
	delta  bool              // they are changes
	at     pcommon.Timestamp // of the points that are read; 0: of all
	live   bool              // there was a point with a value
	valued bool              // and one of what is measured on a device
}

// node is the node of a point.
func (r *resource) node(p pmetric.NumberDataPoint) subject.Node {
	node := r.Facts.Node
	if node == "" {
		node = event.Bounded(points.Str(p.Attributes(), names.K8sNodeName))
	}
	return subject.Node{Cluster: r.Device.Cluster, Name: node}
}

// read reads one batch. Points of several times are read one time after the other.
func (e *Engine) read(md pmetric.Metrics) {
	for _, rm := range md.ResourceMetrics().All() {
		r := &e.resource
		*r = resource{attrs: rm.Resource().Attributes()}
		r.Read(r.attrs)
		times := e.timesOf(rm)
		if len(times) <= 1 {
			e.readResource(r, rm)
			continue
		}
		for _, at := range times {
			r.at, r.live, r.valued, r.last, r.lastID = at, false, false, nil, ""
			e.readResource(r, rm)
		}
	}
}

// timesOf are the times of the resource's points, in order: nearly always one.
// Without rules about devices only points that a rule reads have an order.
func (e *Engine) timesOf(rm pmetric.ResourceMetrics) []pcommon.Timestamp {
	e.times = e.times[:0]
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			if !e.devices.on && e.inputs.table.Get(m.Name()) == nil {
				continue
			}
			dps, ok := points.Numbers(m)
			if !ok {
				continue
			}
			for _, p := range dps.All() {
				t := p.Timestamp()
				if n := len(e.times); n > 0 && e.times[n-1] == t {
					continue
				}
				if i, found := slices.BinarySearch(e.times, t); !found {
					e.times = slices.Insert(e.times, i, t)
				}
			}
		}
	}
	return e.times
}

// instance is the device that counts the XID of a line about a board: the MIG instance that the
// line names, if it is known, else the board.
func (e *Engine) instance(of *device, l *xid.Line) *device {
	if of == nil || !l.InInstance {
		return of
	}
	id := of.ID
	id.ID = deviceid.MIG(id.ID, strconv.Itoa(l.Instance))
	return cmp.Or(e.devices.all[id], of)
}

// ReadLog reads log records with lines of the kernel log.
func (e *Engine) ReadLog(logs plog.Logs, now time.Time) {
	e.advance(now)
	lines, at := e.log.Read(logs, now), pcommon.NewTimestampFromTime(now)
	newest := map[*device]pcommon.Timestamp{}
	var order []*device
	for i := range lines {
		l := &lines[i]
		of := e.addresses.find(e.devices.all, l.PCI, l.Node, e.now)
		switch d := e.instance(of, &l.Line); {
		case d == nil:
			e.log.Count(kernellog.UnknownGPU)
			e.counts.UnknownGPU = *l
		case l.At < d.log.since && d.log.since <= at:
			e.log.Count(kernellog.Old)
		default:
			fresh, again, room := d.xids.Line(&l.Line, l.At, at)
			switch {
			case !room:
				e.log.Count(kernellog.Refused)
				e.unwatched("xid")
				continue
			case !fresh:
				e.log.Count(kernellog.Duplicate)
				continue
			}
			e.log.Count(kernellog.Used)
			e.devices.boards.line(of, &l.Line, again, l.At)
			if newest[d] == 0 {
				order = append(order, d)
			}
			newest[d] = max(newest[d], l.At)
		}
	}
	for _, d := range order { // one event of a batch about one code
		e.devices.reportLines(d, newest[d])
	}
}

func (e *Engine) readResource(r *resource, rm pmetric.ResourceMetrics) {
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			name := m.Name()
			in := e.inputs.table.Get(name)
			measure := e.devices.on && !r.valued && isMeasured(name)
			if in == nil && r.live && !measure {
				continue
			}
			dps, ok := points.Numbers(m)
			if !ok {
				continue
			}
			r.metric, r.delta = name, in != nil && points.IsDelta(m)
			for _, p := range dps.All() {
				if r.at != 0 && p.Timestamp() != r.at {
					continue
				}
				if !r.live && !p.Flags().NoRecordedValue() {
					r.live = true
					e.see(r, name, p.Timestamp())
				}
				if measure && !p.Flags().NoRecordedValue() && r.last != nil && r.last.snapshot == p.Timestamp() {
					measure, r.valued, r.last.measured = false, true, true
				}
				if in != nil {
					e.readPoint(r, in, p)
				} else if r.live {
					break
				}
			}
		}
	}
}

// see notes that there is telemetry of the resource.
func (e *Engine) see(r *resource, metric string, at pcommon.Timestamp) {
	if e.devices.on && r.Device.ID != "" && !r.NotGPU && metric != names.GPUAllocation.Name {
		if !r.Replica {
			e.deviceAt(r, r.Device.ID, at)
		}
		if r.Facts.Owner.Owned() {
			e.devices.owned(r.Device, r.Facts.Parent, at)
		}
	}
	if e.onServices {
		device := r.Device.ID
		if r.NotGPU || r.Replica {
			device = ""
		}
		e.nodes.see(subject.Node{Cluster: r.Device.Cluster, Name: r.Facts.Node}, metric, device, r.Facts.Owner.ServiceIn(r.Device.Cluster), at)
	}
}

// deviceAt opens the device's snapshot of that time; nil where the point cannot
// be used.
func (e *Engine) deviceAt(r *resource, id string, at pcommon.Timestamp) *device {
	if r.last == nil || r.lastID != id {
		d := e.devices.get(subject.DeviceID{Cluster: r.Device.Cluster, ID: id})
		if d == nil {
			return nil
		}
		r.last, r.lastID, r.shown = d, id, false
	}
	first := r.last.snapshot != at
	if !e.devices.openAt(r.last, at) {
		return nil
	}
	if first || !r.shown && r.Device.ID == id {
		e.devices.present(r.last, &r.Facts, first)
		r.shown = true
	}
	return r.last
}

// readPoint takes one point of a metric that a rule reads.
func (e *Engine) readPoint(r *resource, in *input, p pmetric.NumberDataPoint) {
	if in.peers != nil {
		in.peers(e.stragglers.fleet, &r.Source, p)
	}
	if in.kind == ofPeers {
		return
	}
	if in.kind == ofService {
		if !e.services.batch.Read(r.attrs, r.metric, p) {
			e.invalid(r.metric)
		}
		return
	}
	if p.Flags().NoRecordedValue() {
		return // an end: absent input leaves a state unchanged
	}
	v := points.Value(p)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		e.invalid(r.metric)
		return
	}
	switch in.kind {
	case ofDevice:
		e.readDevice(r, in, p, v)
	case ofReconfiguring:
		e.devices.reconfiguring(r.node(p), p.Timestamp(), v > 0)
	case ofAllocation:
		e.devices.listed(subject.DeviceID{Cluster: r.Device.Cluster, ID: points.Str(p.Attributes(), names.HwID)}, v == 0)
	case ofSchedulable:
		e.nodes.schedulable(r.node(p), p.Timestamp(), v > 0)
	case ofNodeInfo:
		attrs := p.Attributes()
		e.devices.boards.info(r.node(p), nodeInfo{
			boot: event.Bounded(points.Str(attrs, names.GPUNodeBootID)), hostType: event.TextOf(names.HostType, r.attrs, attrs),
			cleared: points.Str(attrs, names.GPUHealthCleared),
		}, p.Timestamp())
	default:
		e.readExporter(r, in, p, v)
	}
}

func (e *Engine) readDevice(r *resource, in *input, p pmetric.NumberDataPoint, v float64) {
	if r.NotGPU || r.Replica {
		return
	}
	if t := points.Str(p.Attributes(), names.HwType); t != "" && t != names.HwTypeGPU {
		return
	}
	id := r.Device.ID
	if id == "" {
		if id = event.Bounded(points.Str(p.Attributes(), names.HwID)); id == "" {
			e.invalid(r.metric)
			return
		}
	}
	d := e.deviceAt(r, id, p.Timestamp())
	if d == nil {
		return
	}
	d.measured = d.measured || in.measured
	valid, full := d.read(in, p, v, r.delta)
	if !valid {
		e.invalid(r.metric)
	}
	if full != "" {
		e.unwatched(full)
	}
}

func (e *Engine) readExporter(r *resource, in *input, p pmetric.NumberDataPoint, v float64) {
	address := event.TextOf(names.ServerAddress, r.attrs, p.Attributes())
	port := int64(0)
	for _, attrs := range [...]pcommon.Map{r.attrs, p.Attributes()} {
		if v, ok := attrs.Get(names.ServerPort); ok && v.Type() == pcommon.ValueTypeInt {
			port = v.Int()
		}
	}
	at := r.node(p)
	id := subject.ExporterID{Cluster: at.Cluster, Node: at.Name, Port: port}
	if at.Name == "" && address == "" {
		e.invalid(names.ExporterUp.Name)
		return
	}
	if at.Name == "" || port == 0 {
		id.Address = address
	}
	x := e.exporters.get(id)
	if x == nil || !e.exporters.openAt(x, p.Timestamp()) {
		return
	}
	on := int8(0)
	if v > 0 {
		on = 1
	}
	about := answers.Up
	switch in.kind {
	case ofExporterFrozen:
		about = answers.Frozen
	case ofExporterUnrecognized:
		about = answers.Unrecognized
	}
	x.Read(p.Timestamp(), address, port, about, on)
}
