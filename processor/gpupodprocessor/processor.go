// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"context"
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
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/metadata"
)

// logEvery is the time between two log lines about the same cause.
const logEvery = 10 * time.Minute

// gpuPod is the processor. Batches may arrive concurrently; the lock covers the
// work on one batch in memory, never the call of the next consumer.
type gpuPod struct {
	cfg       *Config
	next      consumer.Metrics
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger // passes each message once in logEvery

	mu      sync.Mutex
	tracker *tracker
	page    page  // scratch, kept between batches
	split   split // scratch, kept between batches
}

var _ processor.Metrics = (*gpuPod)(nil)

func newProcessor(cfg *Config, set processor.Settings, next consumer.Metrics) (*gpuPod, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &gpuPod{
		cfg: cfg, next: next, telemetry: telemetry, tracker: newTracker(cfg.MaxSeries),
		logger: set.Logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
			return zapcore.NewSamplerWithOptions(core, logEvery, 1, 0)
		})),
	}, nil
}

// Start registers what is observed on demand.
func (p *gpuPod) Start(context.Context, component.Host) error {
	err := p.telemetry.RegisterGpuPodDevicesCallback(func(_ context.Context, o metric.Int64Observer) error {
		p.mu.Lock()
		sources := p.tracker.sources
		p.mu.Unlock()
		for s, n := range sources {
			o.Observe(int64(n), metric.WithAttributes(attribute.String("source", sourceNames[s])))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.telemetry.RegisterGpuPodSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		o.Observe(int64(p.tracker.tracked))
		return nil
	})
}

// Shutdown forgets everything.
func (p *gpuPod) Shutdown(context.Context) error {
	p.telemetry.Shutdown()
	return nil
}

// Capabilities says that batches are changed in place.
func (p *gpuPod) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// ConsumeMetrics attributes the devices in md and passes md on.
func (p *gpuPod) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	ended, untracked := p.process(md, time.Now())
	if ended > 0 {
		p.telemetry.GpuPodSeriesEnded.Add(ctx, int64(ended))
	}
	if untracked > 0 {
		p.telemetry.GpuPodPointsUntracked.Add(ctx, int64(untracked))
		p.logger.Warn("Series will age, not end, when their device changes hands: max_series is reached: raise it",
			zap.Int("max_series", p.cfg.MaxSeries), zap.Int("points", untracked))
	}
	return p.next.ConsumeMetrics(ctx, md)
}

// process attributes the devices in md, and returns how many series it ended and
// how many points it could not track.
func (p *gpuPod) process(md pmetric.Metrics, now time.Time) (ended, untracked int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tracker.sweep(now)

	all := md.ResourceMetrics()
	n := all.Len() // what is appended is done already
	changed := p.placeMarkers(all)
	observe := func(id string, who holder, from source, rm pmetric.ResourceMetrics) {
		e, u := p.tracker.observe(id, who, from, rm, now, all)
		ended, untracked = ended+e, untracked+u
	}
	for i := range n {
		rm := all.At(i)
		attrs := rm.Resource().Attributes()
		if !aboutGPUs(attrs) {
			continue
		}
		if id := str(attrs, names.HwID); id != "" {
			who, from := attributeDevice(attrs, p.cfg)
			observe(id, who, from, rm)
			continue
		}
		if !p.page.read(rm, p.cfg) {
			continue
		}
		changed = true
		p.split.run(&p.page, p.tracker, rm, all)
		for _, g := range p.split.groups {
			d := &p.page.devices[g.device]
			observe(d.id, g.holder, d.source, g.rm)
		}
	}
	if changed {
		all.RemoveIf(func(rm pmetric.ResourceMetrics) bool { return rm.ScopeMetrics().Len() == 0 })
	}
	return ended, untracked
}

// placeMarkers places the markers on resources of devices, before anything else
// in the batch: what they end is not ended once more when a device changes
// hands. It reports whether there were any.
func (p *gpuPod) placeMarkers(all pmetric.ResourceMetricsSlice) (any bool) {
	for i := range all.Len() {
		rm := all.At(i)
		attrs := rm.Resource().Attributes()
		id := str(attrs, names.HwID)
		if id == "" || !aboutGPUs(attrs) || !hasMarkers(rm) {
			continue
		}
		l := readLabels(attrs)
		who, _ := identify(attrs, &l, p.cfg)
		placeMarkers(p.tracker, id, who, rm, all)
		any = true
	}
	return any
}

// aboutGPUs reports whether a resource does not say that it is other hardware.
func aboutGPUs(attrs pcommon.Map) bool {
	t := str(attrs, names.HwType)
	return t == "" || t == names.HwTypeGPU
}
