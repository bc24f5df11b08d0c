// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// device is a physical GPU or a MIG instance of one target.
type device struct {
	id        string
	parent    *device            // of a MIG instance
	instances map[string]*device // of a GPU in MIG mode, by GPU_I_ID
	instance  string             // GPU_I_ID of a MIG instance
	facts     facts
	holders   []held
	whole     []*Family // those with shares that have a row without holder
	of        *Target   // that knows it, nil once forgotten

	seen       uint64            // number of the last page that had the device,
	lastSeen   pcommon.Timestamp // its time,
	seenBefore pcommon.Timestamp // and the time of the page before that one

	// Of the current page:
	learned  *Labels // whose facts were added last
	values   []value // by devicetable.ID
	labelled labelled
	raw      []rawPoint

	// From page to page:
	starts           []counter // by place in devicetable.Table
	xid              xidState
	clockEventTotals map[string]float64
}

// facts are the labels that describe a device. Rows may differ in which they
// have; where they contradict each other the greater text wins, so that the
// order of rows does not matter.
type facts struct {
	index, pci, model, host, driver, serial, firmware string
	profile, migUUID                                  string            // of a MIG instance
	other                                             map[string]string // label-type fields without a convention
}

func keep(dst *string, v string) {
	if v > *dst {
		*dst = v
	}
}

// device finds the device that rows with the labels are about, nil when there
// are too many.
func (t *Target) device(l *Labels) *device {
	d := l.device
	if d == nil || d.of != t {
		if d = t.find(&l.row); d == nil {
			return nil
		}
		l.device = d
	}
	if d.parent != nil {
		t.see(d.parent, l)
	}
	t.see(d, l)
	return d
}

func (t *Target) find(r *row) *device {
	gpu := t.gpus[r.uuid]
	if gpu == nil {
		if gpu = t.newDevice(r.uuid, nil); gpu == nil {
			return nil
		}
		t.gpus[gpu.id] = gpu
	}
	if r.instance == "" {
		return gpu
	}
	instance := gpu.instances[r.instance]
	if instance == nil {
		if instance = t.newDevice(deviceid.MIG(r.uuid, r.instance), gpu); instance == nil {
			return nil
		}
		if gpu.instances == nil {
			gpu.instances = map[string]*device{}
		}
		instance.instance = strings.Clone(r.instance)
		gpu.instances[instance.instance] = instance
	}
	return instance
}

func (t *Target) newDevice(id string, parent *device) *device {
	if t.devices >= maxDevices {
		return nil
	}
	t.devices++
	return &device{
		id:     strings.Clone(id), // not a substring that pins the row's labels
		of:     t,
		parent: parent,
		values: make([]value, len(devicetable.All)),
		starts: make([]counter, len(devicetable.Table)),
	}
}

func (t *Target) see(d *device, l *Labels) {
	if d.seen != t.page.number {
		d.startPage(t.page.number, t.page.time)
		t.page.order = append(t.page.order, d)
	}
	if d.learned != l {
		d.learn(&l.row)
		d.learned = l
	}
}

// startPage forgets what the page before said.
func (d *device) startPage(number uint64, time pcommon.Timestamp) {
	d.seenBefore, d.seen, d.lastSeen = d.lastSeen, number, time
	clear(d.values)
	d.raw = d.raw[:0]
	clear(d.labelled)
	d.facts, d.holders, d.whole, d.learned = facts{}, d.holders[:0], d.whole[:0], nil
}

func (d *device) learn(r *row) {
	f := &d.facts
	keep(&f.index, r.facts.index)
	keep(&f.pci, r.facts.pci)
	keep(&f.model, r.facts.model)
	keep(&f.host, r.facts.host)
	keep(&f.driver, r.facts.driver)
	keep(&f.serial, r.facts.serial)
	keep(&f.firmware, r.facts.firmware)
	if d.parent != nil {
		keep(&f.profile, r.facts.profile)
		keep(&f.migUUID, r.facts.migUUID)
	}
	for k, v := range r.facts.other {
		if f.other == nil {
			f.other = map[string]string{}
		}
		if v > f.other[k] {
			f.other[k] = v
		}
	}
}

// putResource writes the identity of the device, and nothing about the exporter.
func (d *device) putResource(attrs pcommon.Map, opts *Options, node, exporterPod string) {
	attrs.EnsureCapacity(16)
	attrs.PutStr(names.HwID, d.id)
	attrs.PutStr(names.HwType, names.HwTypeGPU)
	attrs.PutStr(names.HwVendor, names.HwVendorNVIDIA)
	put := func(key, v string) {
		if v != "" {
			attrs.PutStr(key, v)
		}
	}
	putNumber := func(key, v string) {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			attrs.PutInt(key, n)
		}
	}
	f := &d.facts
	put(names.HwModel, f.model)
	put(names.HwDriverVersion, f.driver)
	put(names.HwSerialNumber, f.serial)
	put(names.HwFirmware, f.firmware)
	putNumber(names.GPUIndex, f.index)
	if f.pci != "" {
		attrs.PutStr(names.GPUPCIAddress, deviceid.PCIAddress(f.pci))
	}
	if d.parent != nil {
		attrs.PutStr(names.HwParent, d.parent.id)
		put(names.GPUMIGProfile, f.profile)
		putNumber(names.GPUMIGInstanceID, d.instance)
		put(names.GPUMIGUUID, f.migUUID)
	}
	for _, k := range slices.Sorted(maps.Keys(f.other)) {
		attrs.PutStr(k, f.other[k])
	}
	if f.host != exporterPod { // what a pod without NODE_NAME takes for its host
		put(names.HostName, f.host)
	}
	put(names.K8sNodeName, node)
	put(names.K8sClusterName, opts.ClusterName)
	d.putHolder(attrs, opts.OTel)
}
