// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/seriesends"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/holders"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/metadata"
)

// logEvery is the time between two log lines about the same cause.
const logEvery = 10 * time.Minute

// gpuPod is the processor. Batches may arrive concurrently; the lock covers the
// work on one batch in memory, never the call of the next consumer.
type gpuPod struct {
	cfg       *Config
	next      *seriesends.Sender
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger // passes each message once in logEvery
	told      *zap.Logger // passes all: for what is logged once a cause

	// What the instances of one component ID share. It has no part in the lock.
	know    *holders.Knowledge
	started bool

	mu          sync.Mutex
	tracker     *tracker
	allocations allocations
	handovers   handovers
	slow        bool // the log knows that gpu.allocation comes seldom
	exporters   *exporters.Set
	exporter    *exporters.Exporter // of the batch, nil where it is not known
	page        page                // scratch, kept between batches
	split       split               // scratch, kept between batches
	readings    []reading           // scratch, of the resources of a batch
}

var _ processor.Metrics = (*gpuPod)(nil)

func newProcessor(cfg *Config, set processor.Settings, next consumer.Metrics) (*gpuPod, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	t := newTracker(cfg)
	return &gpuPod{
		cfg: cfg, next: seriesends.New(next, cfg.MaxSeries, nil), telemetry: telemetry, tracker: t,
		allocations: allocations{tracker: t, maxAge: cfg.MaxAge, nodes: map[holders.Node]*nodeAllocations{}},
		handovers:   handovers{},
		exporters:   exporters.NewSet(cfg.MaxAge),
		told:        set.Logger,
		logger: set.Logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
			return zapcore.NewSamplerWithOptions(core, logEvery, 1, 0)
		})),
	}, nil
}

// Start takes hold of what the instances of this component ID share, and
// registers what is observed on demand.
func (p *gpuPod) Start(context.Context, component.Host) error {
	err := errors.Join(
		p.telemetry.RegisterGpuPodSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			o.Observe(int64(p.tracker.tracked))
			return nil
		}),
		p.telemetry.RegisterGpuPodSeriesEndsDroppedCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, dropped := p.next.Kept()
			o.Observe(dropped)
			return nil
		}),
	)
	if p.cfg.OnlyEndSeries {
		return err // it knows no owner, and counts no device a second time
	}
	p.know, p.started = shared.take(p.cfg), true
	devices := func(observe func(s source, n int64)) {
		p.mu.Lock()
		sources := p.tracker.sources
		p.mu.Unlock()
		for s, n := range sources {
			observe(source(s), int64(n))
		}
	}
	return errors.Join(
		err,
		p.telemetry.RegisterGpuPodDevicesCallback(func(_ context.Context, o metric.Int64Observer) error {
			devices(func(s source, n int64) {
				o.Observe(n, metric.WithAttributes(attribute.String("source", sourceNames[s])))
			})
			return nil
		}),
		p.telemetry.RegisterGpuPodDevicesUnattributedCallback(func(_ context.Context, o metric.Int64Observer) error {
			total := int64(0)
			devices(func(s source, n int64) {
				if s.unattributed() {
					total += n
				}
			})
			o.Observe(total)
			return nil
		}),
		p.telemetry.RegisterGpuPodAllocationAgeCallback(func(_ context.Context, o metric.Float64Observer) error {
			if age, known := p.know.Age(time.Now()); known {
				o.Observe(age.Seconds())
			}
			return nil
		}),
	)
}

// Shutdown forgets everything.
func (p *gpuPod) Shutdown(context.Context) error {
	p.telemetry.Shutdown()
	if p.started {
		shared.release(p.cfg)
		p.started = false
	}
	return nil
}

// Capabilities says that batches are changed in place.
func (p *gpuPod) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// ConsumeMetrics attributes the devices in md and passes md on. The ends of series in
// a batch that is refused stand in front of the next one.
func (p *gpuPod) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	work := p.process
	if p.cfg.OnlyEndSeries {
		work = p.endRenamed
	}
	p.account(ctx, work(md, time.Now()))
	return p.next.ConsumeMetrics(ctx, md)
}

// counts is what happened to one batch.
type counts struct {
	ended, untracked       int // series, points
	late, invalid, refused int // points of gpu.allocation; devices

	slow time.Duration // interval of gpu.allocation, where the log does not know it yet

	duplicate       int                 // points left out, because another exporter
	exporter, owner *exporters.Exporter // than that of the batch prints them
	example         string              // one of the devices
	news            bool                // the log does not know it yet
}

// process attributes the devices in md. All that md says of allocations and of
// devices is taken in before anything is attributed, so that order within a
// batch has no meaning.
func (p *gpuPod) process(md pmetric.Metrics, now time.Time) (c counts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tracker.sweep(now) {
		p.handovers.sweep(p.tracker)
		p.exporters.Sweep(now)
	}
	p.know.Sweep(now)

	all := md.ResourceMetrics()
	n := all.Len() // what is appended is done already
	learned := p.know.Learn(md, now)
	c.late, c.invalid, c.refused = learned.Late, learned.Invalid, learned.Limited
	if learned.Slow > 0 && !p.slow {
		c.slow, p.slow = learned.Slow, true
	}
	p.readDevices(all, now, &c)
	changed := p.placeMarkers(all, now) || c.duplicate > 0

	for i := range n {
		rm := all.At(i)
		r := &p.readings[i]
		switch {
		case r.device.ID != "":
			p.processDevice(r, rm, now, all, &c)
		case aboutGPUs(rm.Resource().Attributes()) && p.page.read(rm, p, now):
			changed = true
			p.processPage(rm, now, all, &c)
		}
	}
	clear(p.readings) // lets go of the batch

	var renamed map[string]bool
	if learned.Any {
		renamed = p.resolve(all)
		c.untracked += p.allocations.observe(all, now)
	}
	c.ended += p.allocations.endGone(renamed, now, all)
	for _, s := range learned.Nodes {
		c.ended += p.handOver(s, now, all)
	}
	if changed {
		all.RemoveIf(func(rm pmetric.ResourceMetrics) bool { return rm.ScopeMetrics().Len() == 0 })
	}
	p.tracker.superseded.putBefore(all)
	return c
}

// readDevices reads the resources that are devices, and leaves out what another
// exporter prints.
func (p *gpuPod) readDevices(all pmetric.ResourceMetricsSlice, now time.Time, c *counts) {
	p.readings = slices.Grow(p.readings[:0], all.Len())[:all.Len()]
	for i := range all.Len() {
		r := &p.readings[i]
		r.read(all.At(i).Resource().Attributes())
		if t := r.labels.hwType; t != "" && t != names.HwTypeGPU {
			r.device.ID = ""
		}
	}
	p.exporter = p.exporters.Learn(all, func(i int) bool { return p.readings[i].device.ID != "" }, now)
	for i := range all.Len() {
		r := &p.readings[i]
		if r.device.ID == "" {
			continue
		}
		if n, owner := p.tracker.leaveOut(r.device.ID, p.exporter, all.At(i), now); n > 0 {
			c.duplicate, c.example = c.duplicate+n, r.device.ID
			c.owner = owner
		}
		// What only ends series describes a device as it was.
		if r.has = contentsOf(all.At(i)); r.has.live && !p.see(r, now) {
			c.refused++
		}
	}
	if c.owner != nil {
		c.exporter, c.news = p.exporter, p.exporter.Duplicates(c.owner, now)
	}
}

// processDevice attributes the resource of one device.
func (p *gpuPod) processDevice(r *reading, rm pmetric.ResourceMetrics, now time.Time, all pmetric.ResourceMetricsSlice, c *counts) {
	attrs := rm.Resource().Attributes()
	if !r.has.live {
		// What ends here was told under the identity that is there, if any: who
		// holds the device now has nothing to do with it.
		who, from := r.there, sourceResource
		if who.Pod == "" {
			who, from = r.said(p.cfg)
		}
		r.write(attrs, who, from, p.cfg)
		return
	}
	who, from, fact := p.identify(r, now)
	var said pcommon.Slice
	if r.shared() && fact != nil && len(fact.Replicas) > 0 {
		said = pcommon.NewSlice()
		r.list.CopyTo(said)
	}
	r.write(attrs, who, from, p.cfg)
	if d := p.tracker.devices[r.device.ID]; d.owned(r, p.exporter, now) {
		who, from = d.holder, d.source
		d.own(attrs)
	}
	c.add(p.tracker.observe(r.device.ID, who, from, p.exporter, rm, r.has, now, all))
	p.tracker.devices[r.device.ID].noteNames(r, p.exporter, now)
	c.add(p.replicate(r.device.ID, fact, said, rm, now, all))
}

// processPage attributes the devices of a page, which is in p.page.
func (p *gpuPod) processPage(rm pmetric.ResourceMetrics, now time.Time, all pmetric.ResourceMetricsSlice, c *counts) {
	c.refused += p.page.refused
	p.split.run(&p.page, p.tracker, rm, all)
	for _, g := range p.split.groups {
		d := &p.page.devices[g.device]
		c.add(p.tracker.observe(d.id, g.holder, d.source, nil, g.rm, contentsOf(g.rm), now, all))
		if g.holder == d.holder {
			c.add(p.replicate(d.id, d.fact, pcommon.Slice{}, g.rm, now, all))
		}
	}
}

func (c *counts) add(ended, untracked int) {
	c.ended, c.untracked = c.ended+ended, c.untracked+untracked
}

// placeMarkers places the markers on resources of devices, before anything else
// is attributed: what they end is not ended once more when a device changes
// hands. It reports whether there were any.
func (p *gpuPod) placeMarkers(all pmetric.ResourceMetricsSlice, now time.Time) (any bool) {
	for i := range len(p.readings) {
		rm, r := all.At(i), &p.readings[i]
		if r.device.ID == "" || !r.has.markers {
			continue
		}
		who, from, _ := p.identify(r, now)
		if from.allocated() {
			// The holder of today; the marker's resource names nobody.
			who = owner.Owner{}
		}
		placeMarkers(p.tracker, r.device.ID, who, rm, all)
		any = true
	}
	return any
}

// aboutGPUs reports whether a resource does not say that it is other hardware.
func aboutGPUs(attrs pcommon.Map) bool {
	t := str(attrs, names.HwType)
	return t == "" || t == names.HwTypeGPU
}
