// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// deviceID is the identity of a device: never its holder or its index.
type deviceID struct{ cluster, id string }

// place is a node in a cluster; telemetry from outside of Kubernetes has neither.
type place struct{ cluster, node string }

// holder is who holds a device.
type holder struct{ namespace, pod, container, service string }

func (h holder) compare(o holder) int {
	for _, c := range [...]int{
		strings.Compare(h.namespace, o.namespace), strings.Compare(h.pod, o.pod),
		strings.Compare(h.container, o.container), strings.Compare(h.service, o.service),
	} {
		if c != 0 {
			return c
		}
	}
	return 0
}

// facts describe a device for people.
type facts struct {
	node, host, parent, model, pci string
	index                          int64 // -1: unknown
	holder                         holder
}

// device is a physical GPU or a MIG instance.
type device struct {
	id       deviceID
	facts    facts
	heard    time.Duration // when the first point of the newest time arrived
	opened   bool          // it is in engine.open
	snapshot pcommon.Timestamp
	now      readings // of snapshot, as far as they have arrived
	at       pcommon.Timestamp
	was      readings // of the time at, which is judged
	known    bool     // there was a time before at, or a stored state
	conds    []condition
	xid      xidState
	ecc      counter
	eccTold  notice

	// For gpu.device.lost.
	exporter exporterID        // that has it on its pages; zero: not known yet
	missed   int               // scrapes of exporter without it since it was last there
	valued   bool              // its exporter did read it
	measured pcommon.Timestamp // when it last did, after a restart at the latest; 0: before it
	blank    int               // times since at which there was the device, and no value of it
	gaps     [2]time.Duration  // between the last points in time at which it was told of; 0: not known
	lost     condition
}

// deviceRule is a rule about devices that is judged from one snapshot.
type deviceRule struct {
	rule
	// judge says which levels the readings meet, and whether nothing is left of
	// the condition. Where known is false, they say nothing.
	judge func(*engine, *device) (met uint8, over, known bool)
	// describe completes an event with its sentence and its attributes.
	describe func(*device, *event)
}

// deviceRules are those that are enabled.
func deviceRules(cfg *Events) (rules []deviceRule) {
	if c := &cfg.Temperature; c.Enabled {
		rules = append(rules, temperatureRule(c, 0), temperatureRule(c, 1))
	}
	if c := &cfg.MemoryPressure; c.Enabled {
		rules = append(rules, memoryRule(c))
	}
	if c := &cfg.Throttle; c.Enabled {
		rules = append(rules, throttleRule(c))
	}
	if cfg.RowRemapFailure.Enabled {
		rules = append(rules, rowRemapRule())
	}
	return rules
}

// device finds or makes a device; nil when there is no room.
func (e *engine) device(id deviceID) *device {
	d := e.devices[id]
	if d != nil {
		return d
	}
	if len(e.devices) >= e.cfg.MaxSubjects {
		e.unwatched("device")
		return nil
	}
	d = &device{
		id:    deviceID{strings.Clone(id.cluster), strings.Clone(id.id)},
		facts: facts{index: -1}, conds: make([]condition, len(e.deviceRules)), xid: xidState{last: -1},
	}
	d.now.clear()
	d.was.clear()
	e.devices[d.id] = d
	e.site(place{d.id.cluster, ""}).devices[d] = struct{}{}
	e.changed = true
	return d
}

// openDevice reports whether a point of the time at belongs to the device's snapshot,
// and begins a new one where it is later.
func (e *engine) openDevice(d *device, at pcommon.Timestamp) bool {
	switch {
	case at == d.snapshot:
		return true
	case at < d.snapshot, at <= d.at:
		if e.now-d.heard < clockSet {
			e.counts.late++
			return false
		}
	}
	if last := d.latest(); last != 0 && at > last {
		d.gaps = [2]time.Duration{time.Duration(at - last), d.gaps[0]}
	}
	if d.snapshot != 0 {
		e.judgeDevice(d)
	}
	d.snapshot, d.heard = at, e.now
	d.now.clear()
	if !d.opened {
		d.opened = true
		e.open = append(e.open, d)
	}
	return true
}

// present notes that there is a point of the device, and what its resource says.
func (e *engine) present(d *device, f *facts, begun bool) {
	if !begun && f.holder.compare(d.facts.holder) < 0 {
		return // of several resources at one time the same one wins in any order
	}
	if f.node != d.facts.node {
		e.leave(d)
		e.site(place{d.id.cluster, f.node}).devices[d] = struct{}{}
		e.changed = true
	}
	d.facts = *f
}

// judgeDevice judges the snapshot of a device, which is complete.
func (e *engine) judgeDevice(d *device) {
	at := d.snapshot
	d.snapshot = 0
	d.was, d.now = d.now, d.was
	d.at = at
	if !d.known {
		e.changed = true
	}
	waits := false
	for i := range e.deviceRules {
		r, c := &e.deviceRules[i], &d.conds[i]
		met, over, known := r.judge(e, d)
		if !known {
			continue
		}
		c.take(at, met, over)
		e.moveDevice(d, r, c, at)
		waits = waits || c.due(&r.rule) != 0
	}
	waits = e.judgeNotices(d) || waits
	d.known, d.missed = true, 0
	e.judgeValues(d)
	if waits {
		e.pending[d] = struct{}{}
	} else {
		delete(e.pending, d)
	}
}

// latest is the newest time at which there was a point of the device.
func (d *device) latest() pcommon.Timestamp {
	if d.snapshot != 0 {
		return d.snapshot
	}
	return d.at
}

// elapseDevice raises and clears what became due since the newest snapshot, and
// reports whether nothing more will.
func (e *engine) elapseDevice(d *device) (done bool) {
	done = true
	for i := range e.deviceRules {
		r, c := &e.deviceRules[i], &d.conds[i]
		due := c.due(&r.rule)
		if due == 0 || c.at != d.at {
			continue // absent from the newest snapshot: it says nothing
		}
		come, fresh := e.due(due, d.at, d.heard)
		if !fresh {
			continue
		}
		if come {
			e.moveDevice(d, r, c, due)
		}
		done = done && c.due(&r.rule) == 0
	}
	return e.elapseNotices(d) && done
}

func (e *engine) moveDevice(d *device, r *deviceRule, c *condition, at pcommon.Timestamp) {
	next := c.next(&r.rule, at)
	if next == c.level {
		return
	}
	e.move(c, &r.rule, next, at, func(ev *event) {
		d.subject(ev, r.part)
		r.describe(d, ev)
	})
}

// subject makes the device what the event is about. Its holder is said, and is
// no part of the key.
func (d *device) subject(ev *event, parts ...string) {
	key := []string{d.id.cluster, d.id.id}
	for _, p := range parts {
		if p != "" {
			key = append(key, p)
		}
	}
	ev.key = eventKey(ev.name, key...)
	id, f := d.id, d.facts
	ev.resource = func(attrs pcommon.Map) {
		putTexts(attrs,
			names.K8sClusterName, id.cluster, names.K8sNodeName, f.node, names.HostName, f.host,
			names.HwID, id.id, names.HwType, names.HwTypeGPU, names.HwParent, f.parent, names.HwModel, f.model,
			names.GPUPCIAddress, f.pci)
		if f.index >= 0 {
			attrs.PutInt(names.GPUIndex, f.index)
		}
	}
	ev.details = append(ev.details, func(attrs pcommon.Map) {
		putTexts(attrs, names.K8sNamespaceName, f.holder.namespace, names.K8sPodName, f.holder.pod,
			names.K8sContainerName, f.holder.container, names.ServiceName, f.holder.service)
	})
}

// putTexts writes pairs of key and value; what is empty is absent.
func putTexts(attrs pcommon.Map, pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			attrs.PutStr(pairs[i], pairs[i+1])
		}
	}
}

// String names the device in a sentence: by its index and where it is, which is what
// people look for, and by its id, which is what stays the same.
func (d *device) String() string {
	id, at := clean(d.id.id), ""
	if where := cmp.Or(d.facts.node, d.facts.host); where != "" {
		at = " on " + clean(where)
	}
	_, instance, _ := strings.Cut(id, "/")
	switch gpu := fmt.Sprintf("GPU %d%s", d.facts.index, at); {
	case d.facts.index >= 0 && d.facts.parent == "":
		return gpu + " (" + id + ")"
	case d.facts.index >= 0 && instance != "":
		return "MIG instance " + instance + " of " + gpu + " (" + id + ")"
	case d.facts.parent != "":
		return "MIG instance " + id + at
	case !strings.HasPrefix(id, "GPU-"):
		return "GPU " + id + at
	}
	return id + at
}

// owned ends a sentence of an event about the device with who owned it then: it may be
// read when another does.
func (d *device) owned(ev *event) string {
	h := d.facts.holder
	if h.pod == "" {
		return "."
	}
	out := ". It was owned by pod " + clean(h.pod)
	if h.service != "" && h.service != h.pod {
		out += " of service " + clean(h.service)
	}
	if h.namespace != "" {
		out += " in namespace " + clean(h.namespace)
	}
	if ev.state == names.EventCleared {
		return out + " when this was cleared."
	}
	return out + " when this was raised."
}

// dropDevice forgets a device and clears what is raised about it.
func (e *engine) dropDevice(d *device, why string) {
	at := pcommon.NewTimestampFromTime(e.wall)
	gone := func(part string) func(*event) {
		return func(ev *event) {
			d.subject(ev, part)
			ev.body = d.String() + " " + why + ", and what was raised about it is over."
		}
	}
	left := false
	for i := range e.deviceRules {
		e.move(&d.conds[i], &e.deviceRules[i].rule, 0, at, gone(e.deviceRules[i].part))
		left = left || d.conds[i].level > 0
	}
	e.move(&d.lost, &lostRule, 0, at, gone(""))
	if left || d.lost.level > 0 {
		return // no room for the events: again with the next round
	}
	delete(e.devices, d.id)
	delete(e.pending, d)
	e.leave(d)
	e.changed = true
}

// names50 are the first fifty of the names, in order and fit to be read.
func names50(all []string) []string {
	slices.Sort(all)
	all = all[:min(len(all), maxNamed)]
	for i := range all {
		all[i] = clean(all[i])
	}
	return all
}

func putList(attrs pcommon.Map, key string, all []string) {
	if len(all) == 0 {
		return
	}
	list := attrs.PutEmptySlice(key)
	list.EnsureCapacity(len(all))
	for _, s := range all {
		list.AppendEmpty().SetStr(s)
	}
}
