// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"math"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// clockSet is after how long without a later point an earlier one is believed
// again: the clock of its source was set back.
const clockSet = 2 * time.Minute

// input is what a metric is to the rules.
type input uint8

const (
	inputNone input = iota
	inputTemperature
	inputUsage
	inputLimit
	inputRatio
	inputThrottle
	inputErrors
	inputRemapFailure
	inputXIDLast
	inputXIDs
	lastDeviceInput
	inputUp
	inputFrozen
	inputReconfiguring
	inputSchedulable
	inputServiceRule // gpu.service.partial, gpu.service.pods, gpu.service.idle_devices
)

// choose notes which metrics the enabled rules read.
func (e *engine) choose() {
	read := func(on bool, i input, m ...*names.Metric) {
		for _, m := range m {
			if on {
				e.inputs.Put(m.Name, i)
			}
		}
	}
	c := &e.cfg.Events
	if e.onDevices {
		read(c.Temperature.Enabled, inputTemperature, &names.HwTemperature)
		read(c.MemoryPressure.Enabled, inputUsage, &names.GPUMemoryUsage)
		read(c.MemoryPressure.Enabled, inputLimit, &names.GPUMemoryLimit)
		read(c.MemoryPressure.Enabled, inputRatio, &names.GPUMemoryUtilization)
		read(c.Throttle.Enabled, inputThrottle, &names.GPUThrottleActive)
		read(c.ECCUncorrected.Enabled, inputErrors, &names.HwErrors)
		read(c.RowRemapFailure.Enabled, inputRemapFailure, &names.GPURowRemapFailure)
		read(c.XID.Enabled, inputXIDLast, &names.GPUXIDLast)
		read(c.XID.Enabled, inputXIDs, &names.GPUXIDErrors)
		read(c.ExporterDown.Enabled || c.DeviceLost.Enabled, inputUp, &names.ExporterUp)
		read(c.ExporterDown.Enabled, inputFrozen, &names.ExporterFrozen)
		read(c.DeviceLost.Enabled, inputReconfiguring, &names.GPUNodeMIGReconfiguring)
	}
	if e.onServices {
		read(c.NodeLost.Enabled, inputSchedulable, &names.GPUNodeSchedulable)
		// An end of the one without a value of the other says that the service is gone.
		read(c.ServicePartial.Enabled || c.ServiceNoData.Enabled || c.IdleHeld.Enabled, inputServiceRule, &names.ServicePartial, &names.ServicePods)
		read(c.IdleHeld.Enabled, inputServiceRule, &names.ServiceIdleDevices)
	}
}

// reading is what is known while the points of one resource are read.
type reading struct {
	attrs   pcommon.Map
	id      deviceID
	facts   facts
	notGPU  bool // hw.type says another kind of hardware
	replica bool
	last    *device // of the last point
	lastID  string
	at      pcommon.Timestamp // of the points that are read; 0: of all
	live    bool              // there was a point with a value
	valued  bool              // and one of what is measured on a device
}

// consume reads one batch.
func (e *engine) consume(md pmetric.Metrics, now time.Time) {
	e.advance(now)
	for _, rm := range md.ResourceMetrics().All() {
		r := reading{attrs: rm.Resource().Attributes()}
		r.describe()
		times := e.timesOf(rm)
		if len(times) <= 1 {
			e.readResource(&r, rm)
			continue
		}
		// Points of several times: one time after the other.
		for _, at := range times {
			r.at, r.live, r.valued, r.last, r.lastID = at, false, false, nil, ""
			e.readResource(&r, rm)
		}
	}
	if len(e.serviceBatch.evaluations) > 0 {
		e.judgeServices(md)
	}
}

// timesOf are the times of the resource's points, in order: nearly always one.
// Without rules about devices only points that a rule reads have an order.
func (e *engine) timesOf(rm pmetric.ResourceMetrics) []pcommon.Timestamp {
	e.times = e.times[:0]
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			if !e.onDevices && e.inputs.Get(m.Name()) == inputNone {
				continue
			}
			points, ok := numberPoints(m)
			if !ok {
				continue
			}
			for _, p := range points.All() {
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

// describe reads the resource's attributes.
func (r *reading) describe() {
	r.facts.index = -1
	for k, v := range r.attrs.All() {
		if v.Type() == pcommon.ValueTypeInt && k == names.GPUIndex {
			r.facts.index = v.Int()
		}
		if v.Type() != pcommon.ValueTypeStr {
			continue
		}
		to := (*string)(nil)
		switch k {
		case names.HwID:
			to = &r.id.id
		case names.K8sClusterName:
			to = &r.id.cluster
		case names.K8sNodeName:
			to = &r.facts.node
		case names.HostName:
			to = &r.facts.host
		case names.HwParent:
			to = &r.facts.parent
		case names.HwModel:
			to = &r.facts.model
		case names.GPUPCIAddress:
			to = &r.facts.pci
		case names.K8sNamespaceName:
			to = &r.facts.holder.namespace
		case names.K8sPodName:
			to = &r.facts.holder.pod
		case names.K8sContainerName:
			to = &r.facts.holder.container
		case names.ServiceName:
			to = &r.facts.holder.service
		case names.HwType:
			r.notGPU = v.Str() != names.HwTypeGPU && v.Str() != ""
		}
		if to != nil {
			*to = bounded(v.Str())
		}
	}
	_, replica := deviceid.CutReplica(r.id.id)
	r.replica = replica != ""
}

func (e *engine) readResource(r *reading, rm pmetric.ResourceMetrics) {
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			in := e.inputs.Get(m.Name())
			measure := e.onDevices && !r.valued && isMeasured(m.Name())
			if in == inputNone && r.live && !measure {
				continue
			}
			points, ok := numberPoints(m)
			if !ok {
				continue
			}
			for _, p := range points.All() {
				if r.at != 0 && p.Timestamp() != r.at {
					continue
				}
				if !r.live && !p.Flags().NoRecordedValue() {
					r.live = true
					e.alive(r, m.Name(), p.Timestamp())
				}
				if measure && !p.Flags().NoRecordedValue() && r.last != nil && r.last.snapshot == p.Timestamp() {
					measure, r.valued, r.last.now.measured = false, true, true
				}
				if in != inputNone {
					e.read(r, in, m, p)
				} else if r.live {
					break
				}
			}
		}
	}
}

// isMeasured tells what is read from a device from what an exporter prints of it whether
// or not it can be read: a count of its own that is 0, a health status.
func isMeasured(metric string) bool {
	if strings.HasPrefix(metric, "hw.") {
		return true
	}
	switch metric {
	case names.GPUSMActive.Name, names.GPUSMOccupancy.Name, names.GPUPipeActive.Name, names.GPUDRAMActive.Name, names.GPUEngineActive.Name,
		names.GPUClockFrequency.Name:
		return true
	}
	return false
}

// alive notes that there is telemetry of the resource.
func (e *engine) alive(r *reading, metric string, at pcommon.Timestamp) {
	if e.onDevices && r.id.id != "" && !r.notGPU && !r.replica && metric != names.GPUAllocation.Name {
		e.deviceAt(r, r.id.id, at)
	}
	if e.onServices {
		e.hearNode(r, metric, at)
	}
}

// deviceAt opens the device's snapshot of that time; nil where the point cannot
// be used.
func (e *engine) deviceAt(r *reading, id string, at pcommon.Timestamp) *device {
	if r.last == nil || r.lastID != id {
		d := e.device(deviceID{r.id.cluster, id})
		if d == nil {
			return nil
		}
		r.last, r.lastID = d, id
	}
	begun := r.last.snapshot != at
	if !e.openDevice(r.last, at) {
		return nil
	}
	if r.id.id == id || begun {
		e.present(r.last, &r.facts, begun)
	}
	return r.last
}

// read takes one point of a metric that a rule reads.
func (e *engine) read(r *reading, in input, m pmetric.Metric, p pmetric.NumberDataPoint) {
	metric := m.Name()
	if in == inputServiceRule {
		e.readService(r, metric, p)
		return
	}
	if p.Flags().NoRecordedValue() {
		return // an end: absent input leaves a state unchanged
	}
	v := number(p)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		e.invalid(metric)
		return
	}
	switch {
	case in < lastDeviceInput:
		if r.notGPU || r.replica {
			return
		}
		if t := str(p.Attributes(), names.HwType); t != "" && t != names.HwTypeGPU {
			return
		}
		id := r.id.id
		if id == "" {
			if id = bounded(str(p.Attributes(), names.HwID)); id == "" {
				e.invalid(metric)
				return
			}
		}
		if d := e.deviceAt(r, id, p.Timestamp()); d != nil {
			d.now.measured = d.now.measured || isMeasured(metric)
			e.readDevice(&d.now, in, p, v, isDelta(m))
		}
	case in == inputReconfiguring:
		e.reconfiguring(r.place(p), p.Timestamp(), v > 0)
	case in == inputSchedulable:
		e.schedulable(r.place(p), p.Timestamp(), v > 0)
	default:
		e.readExporter(r, in, p, v)
	}
}

func (e *engine) invalid(metric string) {
	e.counts.invalid++
	e.counts.example = metric
}

// place is the node that a point is about.
func (r *reading) place(p pmetric.NumberDataPoint) place {
	node := r.facts.node
	if node == "" {
		node = bounded(str(p.Attributes(), names.K8sNodeName))
	}
	return place{r.id.cluster, node}
}

func str(attrs pcommon.Map, key string) string {
	if v, ok := attrs.Get(key); ok && v.Type() == pcommon.ValueTypeStr {
		return v.Str()
	}
	return ""
}
