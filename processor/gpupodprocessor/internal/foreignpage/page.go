// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package foreignpage

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/migprofile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
)

// page is what another program scraped from one target: the devices that its
// points are about, and what each point states of its device's owner. It is
// filled by read and then has, in the same order, where points go.
type page struct {
	target  target
	devices []pageDevice
	byKey   map[deviceKey]int
	byID    map[string]int // by hw.id
	points  []pagePoint    // every point of the page, in order
	markers bool           // there are some
	refused int            // devices that there is no room to remember
}

// deviceKey identifies a device before its hw.id is put together.
type deviceKey struct{ id, migInstance string }

type pageDevice struct {
	id      string // hw.id
	claims  []claim
	further map[identity.Labels]int // claims behind the first few, by their labels
	group   int                     // 1 + the index in split.groups of its live points; 0: no group

	// Who holds the device: decided over all live points of the page.
	owner        owner.Owner
	source       identity.Source
	uid, service string
	fact         *ownership.Fact // by gpu.allocation; nil where it has none
}

// claim is one set of labels found on points of a device.
type claim struct {
	labels identity.Labels
	attrs  pcommon.Map // of the first such point, for its pod labels
	live   bool        // on a live point

	owner        owner.Owner
	source       identity.Source
	uid, service string
}

// pagePoint is the device and the claim of one point; device -1 is none.
type pagePoint struct {
	device, claim int
	marker        bool
}

// read fills p with rm, and reports whether any point is about a device.
func (p *page) read(rm pmetric.ResourceMetrics, by *identity.Join, now time.Time) bool {
	p.reset(rm.Resource().Attributes())
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			// gpu.allocation is about a device and has its owner itself.
			allocation := m.Name() == names.GPUAllocation.Name
			points.Each(m, func(attrs pcommon.Map, _ pcommon.Timestamp, marker bool) {
				at := pagePoint{device: -1}
				if !allocation {
					at = p.add(attrs, marker)
				}
				p.points = append(p.points, at)
			})
		}
	}
	node := ownership.NodeOf(rm.Resource().Attributes())
	for i := range p.devices {
		p.devices[i].decide(&p.target, by.Policy)
		if !by.Memory.See(p.devices[i].describe(node, by.Policy), now) {
			p.refused++
		}
	}
	// Only now is every device of the page known.
	for i := range p.devices {
		p.devices[i].ask(by, node, now)
	}
	return len(p.devices) > 0
}

func (p *page) reset(resource pcommon.Map) {
	if p.byKey == nil {
		p.byKey, p.byID = map[deviceKey]int{}, map[string]int{}
	}
	clear(p.byKey)
	clear(p.byID)
	clear(p.devices) // lets go of the last page's data
	p.target.reset(resource)
	p.devices, p.points, p.markers, p.refused = p.devices[:0], p.points[:0], false, 0
}

func (p *page) add(attrs pcommon.Map, marker bool) pagePoint {
	l := identity.ReadLabels(attrs)
	key := deviceKey{id: l.UUID, migInstance: l.MIGInstance}
	if l.HwID != "" {
		key = deviceKey{id: l.HwID}
	}
	if l.HwID == "" && !deviceid.Known(l.UUID) || l.HwType != "" && l.HwType != names.HwTypeGPU {
		return pagePoint{device: -1}
	}
	p.target.learn(&l)
	p.markers = p.markers || marker

	i, ok := p.byKey[key]
	if !ok {
		i = p.device(key)
		p.byKey[key] = i
	}
	return pagePoint{device: i, claim: p.devices[i].claim(l, attrs, !marker), marker: marker}
}

// device is the index of the device that key means. A page may name it in two
// ways: by hw.id, and by UUID and MIG instance.
func (p *page) device(key deviceKey) int {
	id := key.id
	if key.migInstance != "" {
		id = deviceid.MIG(key.id, key.migInstance)
	}
	i, ok := p.byID[id]
	if !ok {
		i = len(p.devices)
		p.devices = append(p.devices, pageDevice{id: id})
		p.byID[id] = i
	}
	return i
}

// fewClaims is how many claims of a device are looked through one by one. A
// device has one or two; a page that makes up more costs no more for each point.
const fewClaims = 8

func (d *pageDevice) claim(l identity.Labels, attrs pcommon.Map, live bool) int {
	i, ok := d.known(l)
	if !ok {
		i = len(d.claims)
		d.claims = append(d.claims, claim{labels: l, attrs: attrs})
		if i >= fewClaims {
			if d.further == nil {
				d.further = map[identity.Labels]int{}
			}
			d.further[l] = i
		}
	}
	d.claims[i].live = d.claims[i].live || live
	return i
}

func (d *pageDevice) known(l identity.Labels) (int, bool) {
	for i := range min(len(d.claims), fewClaims) {
		if d.claims[i].labels == l {
			return i, true
		}
	}
	i, ok := d.further[l]
	return i, ok
}

// decide finds the one owner that the live points of the device name. Points
// without labels of an owner (of links, for example) do not contradict; two owners share
// the device, and then its series belong to neither.
func (d *pageDevice) decide(t *target, policy identity.Policy) {
	for i := range d.claims {
		c := &d.claims[i]
		c.read(d.id, t, policy)
		if !c.live {
			continue
		}
		switch {
		case c.source == identity.SourceLabels && d.source == identity.SourceLabels && c.owner != d.owner:
			d.owner, d.source = owner.Owner{}, identity.SourceShared
		case c.source == identity.SourceShared:
			d.owner, d.source = owner.Owner{}, identity.SourceShared
		case c.source > d.source && d.source != identity.SourceShared:
			d.owner, d.source = c.owner, c.source
		}
	}
}

// ask gives the device the owner that gpu.allocation has, if it has one, and
// takes the pod's uid and service from the rows that name the same pod.
func (d *pageDevice) ask(by *identity.Join, node ownership.Node, now time.Time) {
	f := by.Memory.Lookup(d.id, now)
	switch from := identity.SourceOf(f); {
	case from != identity.SourceNone:
		if job := d.job(); from != identity.SourceFree || job.IsZero() || by.Memory.Checked(&ownership.Device{ID: d.id, Node: node}, job, now).IsZero() {
			d.owner, d.source, d.fact = f.Owner, from, f
		}
	case !d.job().IsZero():
		d.owner, d.source = by.Checked(&ownership.Device{ID: d.id, Node: node}, d.owner, now)
	case d.source == identity.SourceNone && by.Memory.Unjoined(node, now):
		d.source = identity.SourceUnresolved
	}
	if !d.source.Owned() {
		return
	}
	if by.Policy.ServiceFromLabels {
		// The pod's name is what is left where no label has more.
		d.service = d.owner.Pod
	}
	for i := range d.claims {
		c := &d.claims[i]
		if !c.owner.SamePod(d.owner) {
			continue
		}
		if d.uid == "" {
			d.uid = c.uid
		}
		if d.service == d.owner.Pod && c.service != "" {
			d.service = c.service
		}
	}
}

// job is the job that the labels name, if they name one and no pod.
func (d *pageDevice) job() owner.Owner {
	if d.source == identity.SourceLabels && d.owner.Pod == "" {
		return d.owner
	}
	return owner.Owner{}
}

// labelledJob is the id of the one job that the live points name, "" where there is none.
func (d *pageDevice) labelledJob() (id string) {
	for i := range d.claims {
		c := &d.claims[i]
		switch job := c.labels.Job(d.id); {
		case !c.live, job == "", job == id:
		case id != "":
			return ""
		default:
			id = job
		}
	}
	return id
}

// describe is what the labels of the device have that an allocation may be
// joined by.
func (d *pageDevice) describe(node ownership.Node, policy identity.Policy) *ownership.Device {
	out := &ownership.Device{ID: d.id, Node: node, Parent: deviceid.Parent(d.id)}
	if d.source == identity.SourceLabels {
		out.Label = d.owner
	}
	if job := d.labelledJob(); job != "" && !policy.IgnoreLabels {
		out.Label.Job = owner.OfJob(owner.Job{ID: job}).Job
	}
	if len(d.claims) == 0 {
		return out
	}
	for key, value := range d.claims[0].attrs.All() {
		switch exporterlabels.Classify(key) {
		case exporterlabels.Index:
			out.Index = value.AsString()
		case exporterlabels.MIGInstance:
			out.Instance = value.AsString()
		case exporterlabels.MIGProfile:
			out.Profile = migprofile.Normal(value.AsString())
		case exporterlabels.Model:
			out.Model = value.AsString()
		}
	}
	return out
}

func (c *claim) read(id string, t *target, policy identity.Policy) {
	if policy.IgnoreLabels || !c.labels.Renamed() && t.is(c.labels.Plain) {
		return
	}
	c.owner, c.source = c.labels.OwnerOn(id, policy)
	if c.source != identity.SourceLabels {
		return
	}
	c.uid = c.labels.PodUID()
	if policy.ServiceFromLabels && c.owner.Pod != "" {
		c.service = identity.ServiceName(c.owner.Pod, c.attrs)
	}
}

// keepMarkers leaves the points that are still there once the live points of
// devices have been moved away.
func (p *page) keepMarkers() {
	p.points = slices.DeleteFunc(p.points, func(at pagePoint) bool {
		return at.device >= 0 && !at.marker
	})
}
