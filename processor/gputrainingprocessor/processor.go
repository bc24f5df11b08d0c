// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gputrainingprocessor

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-gpu/otelcol-gpu/internal/oneinstance"
	"github.com/otelcol-gpu/otelcol-gpu/internal/seriesends"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gputrainingprocessor/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gputrainingprocessor/internal/training"
)

// trainingProcessor passes metrics on and adds figures of runs to them on a timer.
type trainingProcessor struct {
	cfg     *Config
	next    consumer.Metrics
	sender  *seriesends.Sender // of evaluations
	version string
	one     oneinstance.Instance
	tel     *telemetry

	// mu guards state. It is held while the state works, and never while next is called.
	mu    sync.Mutex
	state *training.State

	cancel context.CancelFunc
	done   chan struct{}
}

var _ processor.Metrics = (*trainingProcessor)(nil)

func newProcessor(set processor.Settings, cfg *Config, next consumer.Metrics) (*trainingProcessor, error) {
	p := &trainingProcessor{
		cfg: cfg, next: next, version: set.BuildInfo.Version, state: training.New(cfg.training()),
		one:    oneinstance.Instance{Config: cfg, ID: set.ID},
		sender: seriesends.New(next, cfg.MaxRuns, func(string, pmetric.NumberDataPoint) bool { return false }),
	}
	var err error
	p.tel, err = newTelemetry(set.TelemetrySettings, func() (runs, devices int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.state.Tracked()
	})
	return p, err
}

// Start begins the evaluations. It fails if another instance of the same component
// runs in this Collector.
func (p *trainingProcessor) Start(context.Context, component.Host) error {
	if err := p.one.Claim("a run and its devices"); err != nil {
		return err
	}
	// The context given to Start ends with it.
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.done = cancel, make(chan struct{})
	go p.run(ctx)
	return nil
}

// Shutdown ends the evaluations. It ends no series: a restart is no gap.
func (p *trainingProcessor) Shutdown(context.Context) error {
	if p.cancel != nil {
		p.cancel()
		<-p.done
		p.cancel = nil
		p.one.Release()
	}
	p.tel.shutdown()
	return nil
}

// Capabilities reports that what passes through is not changed.
func (p *trainingProcessor) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeMetrics takes in what md has of training and of devices, and passes md on.
func (p *trainingProcessor) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	now := time.Now()
	p.mu.Lock()
	t := p.state.Observe(md, now)
	p.mu.Unlock()
	p.tel.observed(ctx, now, &t)
	return p.next.ConsumeMetrics(ctx, md)
}

// run evaluates every interval, whether or not data arrives.
func (p *trainingProcessor) run(ctx context.Context) {
	defer close(p.done)
	ticker := time.NewTicker(p.cfg.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.evaluate(ctx)
		}
	}
}

// evaluate sends the figures of this moment on, in one call.
func (p *trainingProcessor) evaluate(ctx context.Context) {
	now := time.Now()
	p.mu.Lock()
	all := p.state.Evaluate(now)
	md := training.Metrics(all, now, func(scope pcommon.InstrumentationScope) {
		scope.SetName(metadata.ScopeName)
		scope.SetVersion(p.version)
	})
	p.mu.Unlock()
	p.tel.evaluated(ctx, now, all)
	if md.ResourceMetrics().Len() == 0 {
		return
	}
	if err := p.sender.ConsumeMetrics(ctx, md); err != nil && ctx.Err() == nil {
		p.tel.failed(ctx, now, err)
	}
}
