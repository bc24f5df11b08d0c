// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package attribution puts the owners of devices on batches of metrics and ends the
// series of former owners. Time is passed in; nothing here waits or does I/O.
package attribution

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/foreignpage"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/replica"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/seriesend"
)

// Pipeline is what one pipeline of metrics has passed on, and the work on its batches.
// It is not safe for concurrent use, but for Join.Memory.
type Pipeline struct {
	Tracker     *seriesend.Tracker
	Allocations *seriesend.Allocations
	Handovers   *seriesend.Handovers
	Exporters   *exporters.Set
	Join        identity.Join

	pages    foreignpage.Processor
	replicas replica.Writer
	slow     bool // Result.Slow was returned before

	exporter    *exporters.Exporter    // of the batch, nil where it is not known
	readings    []identity.Reading     // scratch, of the resources of a batch
	allocations []ownership.Allocation // scratch, of a batch
}

// Limits of a Pipeline.
type Limits struct {
	MaxSeries int
	MaxAge    time.Duration // for how long a snapshot of gpu.allocation counts
	Renames   bool          // service.name may change between data and marker: for EndRenamed
}

// New returns a Pipeline. It knows owners by the Memory, which may be nil where only
// EndRenamed is called.
func New(l Limits, m *ownership.Memory, p identity.Policy) *Pipeline {
	t := seriesend.NewTracker(l.MaxSeries, l.Renames, l.MaxAge)
	out := &Pipeline{
		Tracker:     t,
		Allocations: seriesend.NewAllocations(t, l.MaxAge),
		Handovers:   seriesend.NewHandovers(t, m),
		Exporters:   exporters.NewSet(l.MaxAge),
		Join:        identity.Join{Memory: m, Policy: p},
	}
	out.replicas = replica.Writer{Join: &out.Join, Tracker: t}
	out.pages = foreignpage.Processor{Join: &out.Join, Tracker: t, Replicas: &out.replicas}
	return out
}

// Result is what happened to one batch.
type Result struct {
	seriesend.Counts
	Late, Invalid int // points of gpu.allocation
	Refused       int // devices

	Slow time.Duration // interval of gpu.allocation that is long for max_age, once

	Duplicate       int                 // points left out, because another exporter
	Exporter, First *exporters.Exporter // than that of the batch printed them first
	Example         string              // one of the devices
	New             bool                // this was not returned lately
}

// Process attributes the devices in md. All that md has of allocations and of devices is
// taken in before anything is attributed, so that order within a batch has no meaning.
func (p *Pipeline) Process(md pmetric.Metrics, now time.Time) (r Result) {
	if p.Tracker.Sweep(now) {
		p.Handovers.Sweep()
		p.Exporters.Sweep(now)
	}
	p.Join.Memory.Sweep(now)

	all := md.ResourceMetrics()
	n := all.Len() // what is appended is done already
	p.allocations = ownership.Allocations(p.allocations[:0], all)
	learned := p.Join.Memory.Learn(p.allocations, now)
	r.Late, r.Invalid, r.Refused = learned.Late, learned.Invalid, learned.Limited
	if learned.Slow > 0 && !p.slow {
		r.Slow, p.slow = learned.Slow, true
	}
	p.readDevices(all, now, &r)
	changed := p.placeMarkers(all, now) || r.Duplicate > 0
	for i := range n {
		if p.processResource(&p.readings[i], all.At(i), now, all, &r) {
			changed = true
		}
	}
	clear(p.readings) // lets go of the batch

	var renamed map[string]bool
	if len(p.allocations) > 0 {
		p.allocations = ownership.Allocations(p.allocations[:0], all) // some may have moved
		renamed = p.Join.Memory.Resolve(p.allocations)
	}
	p.endAllocations(renamed, now, all, &r)
	for _, s := range learned.Nodes {
		r.Ended += p.Handovers.Learned(s, now, all)
	}
	p.finish(all, changed)
	return r
}

// endAllocations takes note of the allocations of a batch and ends those that are gone.
func (p *Pipeline) endAllocations(renamed map[string]bool, now time.Time, all pmetric.ResourceMetricsSlice, r *Result) {
	r.Untracked += p.Allocations.Observe(p.allocations, now, all)
	r.Ended += p.Allocations.EndGone(renamed, now, all)
	clear(p.allocations) // lets go of the batch
}

// finish takes out the resources that lost all points, and puts the ends of series in
// front of the data with which they go on.
func (p *Pipeline) finish(all pmetric.ResourceMetricsSlice, changed bool) {
	if changed {
		all.RemoveIf(func(rm pmetric.ResourceMetrics) bool { return rm.ScopeMetrics().Len() == 0 })
	}
	p.Tracker.PutSuperseded(all)
}

// readDevices reads the resources that are devices, and leaves out what another
// exporter prints.
func (p *Pipeline) readDevices(all pmetric.ResourceMetricsSlice, now time.Time, c *Result) {
	p.readings = slices.Grow(p.readings[:0], all.Len())[:all.Len()]
	for i := range all.Len() {
		r := &p.readings[i]
		r.Read(all.At(i).Resource().Attributes())
		if t := r.Labels.HwType; t != "" && t != names.HwTypeGPU {
			r.Device.ID = ""
		}
	}
	p.exporter = p.Exporters.Learn(all, func(i int) bool { return p.readings[i].Device.ID != "" }, now)
	for i := range all.Len() {
		r := &p.readings[i]
		if r.Device.ID == "" {
			continue
		}
		if n, first := p.Tracker.LeaveOut(r.Device.ID, p.exporter, all.At(i), now); n > 0 {
			c.Duplicate, c.Example, c.First = c.Duplicate+n, r.Device.ID, first
		}
		// What only ends series describes a device as it was.
		if r.Has = points.ContentsOf(all.At(i)); r.Has.Live && !p.Join.See(r, now) {
			c.Refused++
		}
	}
	if c.First != nil {
		c.Exporter, c.New = p.exporter, p.exporter.Duplicates(c.First, now)
	}
}

// placeMarkers places the markers on resources of devices, before anything else
// is attributed: what they end is not ended once more when a device changes
// hands. It reports whether there were any.
func (p *Pipeline) placeMarkers(all pmetric.ResourceMetricsSlice, now time.Time) (any bool) {
	for i := range p.readings {
		rm, r := all.At(i), &p.readings[i]
		if r.Device.ID == "" || !r.Has.Markers {
			continue
		}
		who, from, _ := p.Join.Identify(r, now)
		if from.Allocated() {
			// The owner of today; the marker's resource names none.
			who = owner.Owner{}
		}
		seriesend.PlaceMarkers(p.Tracker, r.Device.ID, who, rm, all)
		any = true
	}
	return any
}

// processResource attributes one resource: a device, or a page that another program
// scraped, of which it takes points. It reports whether it took any.
func (p *Pipeline) processResource(r *identity.Reading, rm pmetric.ResourceMetrics, now time.Time, all pmetric.ResourceMetricsSlice, c *Result) (taken bool) {
	if r.Device.ID != "" {
		c.Add(p.processDevice(r, rm, now, all))
		return false
	}
	if !aboutGPUs(rm.Resource().Attributes()) {
		return false
	}
	done, refused, taken := p.pages.Process(rm, now, all)
	c.Add(done)
	c.Refused += refused
	return taken
}

// processDevice attributes the resource of one device.
func (p *Pipeline) processDevice(r *identity.Reading, rm pmetric.ResourceMetrics, now time.Time, all pmetric.ResourceMetricsSlice) (c seriesend.Counts) {
	attrs := rm.Resource().Attributes()
	if !r.Has.Live {
		// What ends here was sent under the identity that is there, if any: the
		// owner of today has nothing to do with it.
		who, from := r.Named, identity.SourceResource
		if !r.NamedAlready() {
			who, from = r.ByLabels(p.Join.Policy)
		}
		r.Write(attrs, who, from, p.Join.Policy)
		return c
	}
	who, from, fact := p.Join.Identify(r, now)
	var list pcommon.Slice
	if r.Shared() && fact != nil && len(fact.Replicas) > 0 {
		list = pcommon.NewSlice()
		r.List.CopyTo(list)
	}
	r.Write(attrs, who, from, p.Join.Policy)
	if before, source, ok := p.Tracker.OwnedAlready(r, p.exporter, attrs, now); ok {
		who, from = before, source
	}
	c = p.Tracker.Observe(r.Device.ID, who, from, p.exporter, rm, r.Has, now, all)
	p.Tracker.NoteNames(r, p.exporter, now)
	c.Add(p.replicas.Write(r.Device.ID, fact, list, rm, now, all))
	return c
}

// aboutGPUs reports whether a resource does not name another type of hardware.
func aboutGPUs(attrs pcommon.Map) bool {
	t := points.Str(attrs, names.HwType)
	return t == "" || t == names.HwTypeGPU
}

// EndRenamed attributes nothing. It ends the series of devices, and of gpu.allocation,
// that go on in md under another identity: what a Pipeline in front of k8s_attributes
// cannot see.
func (p *Pipeline) EndRenamed(md pmetric.Metrics, now time.Time) (c Result) {
	p.Tracker.Sweep(now)
	all := md.ResourceMetrics()
	n := all.Len() // what is appended is done already
	p.readings = slices.Grow(p.readings[:0], n)[:n]
	for i := range n {
		r := &p.readings[i]
		r.Read(all.At(i).Resource().Attributes())
		r.Has = points.ContentsOf(all.At(i))
	}
	changed := false
	for i := range n {
		if r := &p.readings[i]; r.Device.ID != "" && r.Has.Markers {
			seriesend.PlaceMarkers(p.Tracker, r.Device.ID, r.Named, all.At(i), all)
			changed = true
		}
	}
	for i := range n {
		r, from := &p.readings[i], identity.SourceNone
		if r.NamedAlready() {
			from = identity.SourceResource
		}
		if r.Device.ID != "" {
			c.Add(p.Tracker.Observe(r.Device.ID, r.Named, from, nil, all.At(i), r.Has, now, all))
		}
	}
	clear(p.readings) // lets go of the batch
	p.allocations = ownership.Allocations(p.allocations[:0], all)
	p.endAllocations(nil, now, all, &c)
	p.finish(all, changed)
	return c
}
