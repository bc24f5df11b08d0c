// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-gpu/otelcol-gpu/internal/seriesends"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/attribution"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
)

// gpuPod is the processor of metrics. Batches may arrive concurrently; the lock covers
// the work on one batch in memory, never the call of the next consumer.
type gpuPod struct {
	cfg  *Config
	next *seriesends.Sender
	tel  *ownTelemetry

	mu       sync.Mutex
	pipeline *attribution.Pipeline // nil until Start
	release  func()                // nil where nothing is shared
}

var _ processor.Metrics = (*gpuPod)(nil)

func newProcessor(cfg *Config, set processor.Settings, next consumer.Metrics) (*gpuPod, error) {
	tel, err := newTelemetry(cfg, set)
	if err != nil {
		return nil, err
	}
	return &gpuPod{cfg: cfg, next: seriesends.New(next, cfg.MaxSeries, nil), tel: tel}, nil
}

// Start takes what the instances of this component ID share, and registers what is
// observed on demand.
func (p *gpuPod) Start(context.Context, component.Host) error {
	if p.cfg.OnlyEndSeries {
		p.pipeline = newPipeline(p.cfg, nil)
	} else {
		p.pipeline = newPipeline(p.cfg, shared.take(p.cfg))
		p.release = sync.OnceFunc(func() { shared.release(p.cfg) })
	}
	return p.tel.register(p)
}

func newPipeline(cfg *Config, m *ownership.Memory) *attribution.Pipeline {
	limits := attribution.Limits{MaxSeries: cfg.MaxSeries, MaxAge: cfg.MaxAge, Renames: cfg.OnlyEndSeries}
	return attribution.New(limits, m, cfg.policy())
}

// Shutdown lets go of what is shared.
func (p *gpuPod) Shutdown(context.Context) error {
	p.tel.builder.Shutdown()
	if p.release != nil {
		p.release()
	}
	return nil
}

// Capabilities states that batches are changed in place.
func (p *gpuPod) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// ConsumeMetrics attributes the devices in md and passes md on. The ends of series in
// a batch that is refused stand in front of the next one.
func (p *gpuPod) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	p.tel.account(ctx, p.process(md, time.Now()))
	return p.next.ConsumeMetrics(ctx, md)
}

func (p *gpuPod) process(md pmetric.Metrics, now time.Time) attribution.Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cfg.OnlyEndSeries {
		return p.pipeline.EndRenamed(md, now)
	}
	return p.pipeline.Process(md, now)
}

// counts are the series that are remembered, and the devices by the source of their
// owner.
func (p *gpuPod) counts() (series int, devices [identity.SourceCount]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pipeline.Tracker.Series(), p.pipeline.Tracker.Devices()
}
