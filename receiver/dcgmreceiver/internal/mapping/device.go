// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/fields"
)

// device is a physical GPU or a MIG instance of one target.
type device struct {
	id        string
	parent    *device            // of a MIG instance
	instances map[string]*device // of a GPU in MIG mode, by GPU_I_ID
	instance  string             // GPU_I_ID of a MIG instance
	facts     facts
	holders   []holder

	seen       uint64            // number of the last page that had the device,
	lastSeen   pcommon.Timestamp // its time,
	seenBefore pcommon.Timestamp // and the time of the page before that one

	// Of the current page:
	values   []value // by fields.ID
	labelled labelled
	raw      []rawPoint

	// From page to page:
	starts           []counter // by place in fields.Table
	xid              xidState
	clockEventTotals map[string]float64
}

// facts are the labels that describe a device. Rows may differ in which they
// have; where they contradict each other the greater text wins, so that the
// order of rows (a map's order in prometheusreceiver) does not matter.
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

// holder is who the exporter says holds the device.
type holder struct {
	namespace, pod, container, podUID string
	// vgpu, hpc_job, dra_* and pod_label_*, sorted by key.
	more []label
}

type label struct{ key, value string }

func (h *holder) empty() bool {
	return h.pod == "" && h.namespace == "" && h.container == "" && h.podUID == "" && len(h.more) == 0
}

func (h *holder) same(o *holder) bool {
	return h.pod == o.pod && h.namespace == o.namespace && h.container == o.container &&
		h.label("vgpu") == o.label("vgpu") && h.label("hpc_job") == o.label("hpc_job")
}

// merge adds what another row says about the same holder.
func (h *holder) merge(o *holder) {
	keep(&h.podUID, o.podUID)
	if slices.Equal(h.more, o.more) {
		return
	}
	for _, l := range o.more {
		i, found := slices.BinarySearchFunc(h.more, l.key, func(a label, key string) int { return strings.Compare(a.key, key) })
		if !found {
			h.more = slices.Insert(h.more, i, l)
		}
		keep(&h.more[i].value, l.value)
	}
}

// shared reports whether the exporter says that the device has replicas.
func (h *holder) shared() bool { return h.label("vgpu") != "" }

func (h *holder) label(key string) string {
	for i := range h.more {
		if h.more[i].key == key {
			return h.more[i].value
		}
	}
	return ""
}

// row is what the labels of one row say. It is reused for every row of a page.
type row struct {
	uuid, instance string
	facts          facts
	holder         holder
}

// read sorts the labels of one row. Empty values and the sentinels of DCGM's
// STRING fields count as absent.
func (r *row) read(attrs pcommon.Map) {
	more := r.holder.more[:0]
	*r = row{}
	r.holder.more = more
	var exported bool
	for key, v := range attrs.All() {
		text := v.Str()
		if text == "" || stringSentinel(text) {
			continue
		}
		switch kind := exporterlabels.Classify(key); kind {
		case exporterlabels.UUID:
			r.uuid = text
		case exporterlabels.MIGInstance:
			r.instance = text
		case exporterlabels.MIGProfile:
			r.facts.profile = text
		case exporterlabels.Index:
			r.facts.index = text
		case exporterlabels.PCIAddress:
			r.facts.pci = text
		case exporterlabels.Model:
			r.facts.model = text
		case exporterlabels.Host:
			r.facts.host = text
		case exporterlabels.Field:
			r.readField(key, text)
		case exporterlabels.Pod, exporterlabels.Namespace, exporterlabels.Container, exporterlabels.PodUID:
			exported = exported || exporterlabels.Exported(key)
			r.readHolder(kind, text)
		case exporterlabels.Other:
			if unprefixedPodLabel(key) {
				r.holder.more = append(r.holder.more, label{names.ExporterPodLabel + key, text})
			}
		case exporterlabels.PodLabel, exporterlabels.VGPU, exporterlabels.HPCJob, exporterlabels.DRA:
			r.holder.more = append(r.holder.more, label{key, text})
			if key == "dra_mig_device_uuid" {
				r.facts.migUUID = text
			}
		}
	}
	if exported {
		r.readExported(attrs)
	}
	if len(r.holder.more) > 1 {
		slices.SortFunc(r.holder.more, func(a, b label) int { return strings.Compare(a.key, b.key) })
	}
}

func (r *row) readHolder(kind exporterlabels.Label, text string) {
	switch kind {
	case exporterlabels.Pod:
		r.holder.pod = text
	case exporterlabels.Namespace:
		r.holder.namespace = text
	case exporterlabels.Container:
		r.holder.container = text
	case exporterlabels.PodUID:
		r.holder.podUID = text
	}
}

// unprefixedPodLabel knows the labels of a pod that can name its service, as
// exporters before 4.8.3 print them: without pod_label_. Only on pages that we
// scraped ourselves: elsewhere such a label may be the exporter pod's own.
func unprefixedPodLabel(key string) bool {
	switch key {
	case "app", "app_kubernetes_io_name", "app_kubernetes_io_instance":
		return true
	default:
		return false
	}
}

// readExported reads the holder from the exported_* labels alone: where a
// scraper renamed any of them, the plain ones name the exporter's own pod.
func (r *row) readExported(attrs pcommon.Map) {
	r.holder.pod, r.holder.namespace, r.holder.container, r.holder.podUID = "", "", "", ""
	for key, v := range attrs.All() {
		if text := v.Str(); exporterlabels.Exported(key) && text != "" && !stringSentinel(text) {
			r.readHolder(exporterlabels.Classify(key), text)
		}
	}
}

// readField reads a field of type label.
func (r *row) readField(key, text string) {
	switch key {
	case "DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION":
		r.facts.driver = text
	case "DCGM_FI_DEV_SERIAL", "DCGM_FI_DEV_BOARD_SERIAL":
		r.facts.serial = text
	case "DCGM_FI_DEV_VBIOS_VERSION":
		r.facts.firmware = text
	default:
		if r.facts.other == nil {
			r.facts.other = map[string]string{}
		}
		r.facts.other[unmappedName(key)] = text
	}
}

// stringSentinel tells <<<NULL>>>, <<<NOT_SUPPORTED>>> and their like, as
// dcgm_fields.h does. s is not empty.
func stringSentinel(s string) bool {
	return s[0] == '<' && strings.HasPrefix(s, "<<<") && strings.Contains(s, ">>>")
}

// device finds the device that the row is about, nil when there are too many.
func (t *Target) device(r *row) *device {
	gpu := t.gpus[r.uuid]
	if gpu == nil {
		if gpu = t.newDevice(r.uuid, nil); gpu == nil {
			return nil
		}
		t.gpus[gpu.id] = gpu
	}
	t.see(gpu, r)
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
	t.see(instance, r)
	return instance
}

func (t *Target) newDevice(id string, parent *device) *device {
	if t.devices >= maxDevices {
		return nil
	}
	t.devices++
	return &device{
		id:     strings.Clone(id), // not a substring that pins the page's memory
		parent: parent,
		values: make([]value, len(fields.All)),
		starts: make([]counter, len(fields.Table)),
	}
}

func (t *Target) see(d *device, r *row) {
	if d.seen != t.page.number {
		d.startPage(t.page.number, t.page.time)
		t.page.order = append(t.page.order, d)
	}
	d.learn(r)
}

// startPage forgets what the page before said.
func (d *device) startPage(number uint64, time pcommon.Timestamp) {
	d.seenBefore, d.seen, d.lastSeen = d.lastSeen, number, time
	clear(d.values)
	d.raw = d.raw[:0]
	clear(d.labelled)
	d.facts, d.holders = facts{}, d.holders[:0]
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

// heldBy remembers a holder that a row of the device names, and reports whether
// there was room for it.
func (d *device) heldBy(h *holder) bool {
	if h.empty() {
		return true
	}
	for i := range d.holders {
		if d.holders[i].same(h) {
			d.holders[i].merge(h)
			return true
		}
	}
	if len(d.holders) >= maxHolders {
		return false
	}
	own := *h
	own.more = slices.Clone(h.more)
	d.holders = append(d.holders, own)
	return true
}

// putResource writes the identity of the device: built from nothing, since what
// prometheusreceiver knows describes the exporter.
func (d *device) putResource(attrs pcommon.Map, opts *Options, node string) {
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
	put(names.HostName, f.host)
	put(names.K8sNodeName, node)
	put(names.K8sClusterName, opts.ClusterName)
	d.putHolder(attrs)
}

// putHolder hands the exporter's word on who holds the device to gpu_pod. One
// holder goes onto the resource; the holders of a shared device into a list,
// since the device's series belong to none of them.
func (d *device) putHolder(attrs pcommon.Map) {
	switch {
	case len(d.holders) == 0:
	case len(d.holders) == 1 && !d.holders[0].shared():
		d.holders[0].put(attrs)
	default:
		slices.SortFunc(d.holders, func(a, b holder) int {
			return strings.Compare(a.sortKey(), b.sortKey())
		})
		list := attrs.PutEmptySlice(names.ExporterHolders)
		for i := range d.holders {
			d.holders[i].put(list.AppendEmpty().SetEmptyMap())
		}
	}
}

func (h *holder) sortKey() string {
	return strings.Join([]string{h.namespace, h.pod, h.container, h.label("vgpu"), h.label("hpc_job")}, "\x00")
}

func (h *holder) put(attrs pcommon.Map) {
	for _, l := range [...]label{
		{names.ExporterNamespace, h.namespace},
		{names.ExporterPod, h.pod},
		{names.ExporterContainer, h.container},
		{names.ExporterPodUID, h.podUID},
	} {
		if l.value != "" {
			attrs.PutStr(l.key, l.value)
		}
	}
	for _, l := range h.more {
		attrs.PutStr(l.key, l.value)
	}
}
