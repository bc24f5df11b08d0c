// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
	"github.com/otelcol-gpu/otelcol-gpu/internal/lapse"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/oneinstance"
	"github.com/otelcol-gpu/otelcol-gpu/internal/seriesends"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/cluster"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/firstuse"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

// summaryProcessor passes metrics on and adds the summary to them on a timer.
type summaryProcessor struct {
	cfg     *Config
	next    consumer.Metrics
	sender  *seriesends.Sender // of evaluations
	version string
	one     oneinstance.Instance
	tel     *telemetry

	// pods is where expected pods are known from beside what arrives; nil: there
	// is no other. set is the last snapshot passed to state; it is passed again when a limit refused some.
	pods *gpupods.Member
	set  *gpupods.Snapshot
	seen *seenPods         // nil: no storage
	uses *firstuse.Tracker // nil: not measured
	// silent are the nodes that the last evaluation named, leftOut how many pods are on
	// nodes where no agent can run.
	silent  []string
	leftOut int

	// mu guards clock, watch, state, set and uses. It is held while the state machine runs, and
	// never while next is called.
	mu    sync.Mutex
	clock clock
	watch lapse.Watch
	state *summary.Summary

	claimed bool
	cancel  context.CancelFunc
	done    chan struct{}
}

var _ processor.Metrics = (*summaryProcessor)(nil)

func newProcessor(set processor.Settings, cfg *Config, next consumer.Metrics) (*summaryProcessor, error) {
	p := &summaryProcessor{
		cfg:     cfg,
		next:    next,
		sender:  seriesends.New(next, cfg.MaxPods, leftState),
		version: set.BuildInfo.Version,
		one:     oneinstance.Instance{Config: cfg, ID: set.ID},
		clock:   systemClock(),
	}
	now, _ := p.clock()
	p.state = summary.New(cfg.summary(), now)

	var err error
	if p.tel, err = newTelemetry(set.TelemetrySettings, p.tracked, p.unobserved); err != nil {
		return nil, err
	}
	if cfg.ExpectedPods == expectedKubernetes {
		p.pods, err = gpupods.Join(gpupods.Config{Client: cfg.Config, Keys: cfg.Keys}, gpupods.Settings{
			Need: gpupods.Need{MaxPods: cfg.MaxPods, Scheduling: cfg.FirstUseThreshold > 0}, Telemetry: p.tel, Logger: p.tel.logger,
			UserAgent: "otelcol-gpu/" + p.version + " " + set.ID.String(),
		})
	}
	return p, err
}

// Start begins the evaluations. It fails if another instance of the same component
// runs in this Collector.
func (p *summaryProcessor) Start(startCtx context.Context, host component.Host) error {
	if err := p.one.Claim("a service"); err != nil {
		return err
	}
	p.claimed = true
	if p.pods != nil {
		if err := p.pods.Start(); err != nil {
			return err
		}
	}

	var pods []summary.SeenPod
	known := false
	if p.cfg.Storage != nil {
		var err error
		if p.seen, pods, known, err = openSeen(startCtx, host, *p.cfg.Storage, p.one.ID, p.tel); err != nil {
			return err
		}
	}

	p.mu.Lock()
	now, _ := p.tick()
	p.state, p.set = summary.New(p.cfg.summary(), now), nil
	if p.cfg.FirstUseThreshold > 0 {
		p.uses = firstuse.New(p.cfg.ClusterName, p.cfg.FirstUseThreshold, now)
	}
	if known {
		if n := p.state.Restore(pods); n > 0 {
			p.tel.warn(now, "restored", "more pods are stored than max_pods and max_services allow: raise them", zap.Int("forgotten", n))
		}
	}
	p.mu.Unlock()
	if p.seen != nil {
		p.seen.Start(p.seenPods)
	}

	// The context given to Start ends with it.
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.done = cancel, make(chan struct{})
	go p.run(ctx)
	return nil
}

// Shutdown ends the evaluations. It ends no series: a restart is no gap.
func (p *summaryProcessor) Shutdown(ctx context.Context) error {
	if p.cancel != nil {
		p.cancel()
		<-p.done
	}
	p.pods.Shutdown()
	var err error
	if p.seen != nil {
		err = p.seen.Close(ctx)
	}
	p.tel.shutdown()
	if p.claimed {
		p.claimed = false
		p.one.Release()
	}
	return err
}

// seenPods are the pods for the next start to know.
func (p *summaryProcessor) seenPods() *seenState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &seenState{1, p.state.Seen()}
}

// leftState reports whether a point states once that a pod is not in a state.
func leftState(metric string, dp pmetric.NumberDataPoint) bool {
	return metric == names.PodState.Name && dp.IntValue() == 0
}

// Capabilities reports that what passes through is not changed.
func (p *summaryProcessor) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeMetrics takes the input points of md in and passes md on.
func (p *summaryProcessor) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	p.mu.Lock()
	now, passed := p.tick()
	t := p.state.Observe(md, now)
	if p.uses != nil {
		p.uses.Observe(md, now)
	}
	p.mu.Unlock()

	p.passed(ctx, now, passed)
	p.tel.observed(ctx, now, &t)
	return p.next.ConsumeMetrics(ctx, md)
}

// tick returns the time, after the state has followed a step of the wall clock, and a time for
// which this process did not run. The caller holds mu, so times that reach the state never go back.
func (p *summaryProcessor) tick() (now time.Time, passed lapse.Tick) {
	wall, monotonic := p.clock()
	passed = p.watch.Take(wall, monotonic)
	if passed.Step != 0 {
		p.state.Shift(passed.Step)
		if p.uses != nil {
			p.uses.Shift(passed.Step)
		}
	}
	if passed.Lapsed(p.cfg.lapse()) {
		p.state.Resume(wall)
	}
	return wall, passed
}

// passed reports what tick has found.
func (p *summaryProcessor) passed(ctx context.Context, now time.Time, passed lapse.Tick) {
	if passed.Step != 0 {
		p.tel.clockStepped(ctx, now, passed.Step)
	}
	if passed.Lapsed(p.cfg.lapse()) {
		p.tel.lapsed(now, passed)
	}
}

// run evaluates every interval, whether or not data arrives.
func (p *summaryProcessor) run(ctx context.Context) {
	defer close(p.done)
	ticker := time.NewTicker(p.cfg.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.pods.Changed():
			p.setPods(ctx)
		case <-ticker.C:
			p.setPods(ctx)
			p.evaluate(ctx)
		}
	}
}

// setPods passes the pods of the Kubernetes API to the state, where they changed.
func (p *summaryProcessor) setPods(ctx context.Context) {
	if p.pods == nil {
		return
	}
	is := p.pods.Snapshot()
	p.mu.Lock()
	known := p.set
	p.mu.Unlock()
	if is == known {
		return
	}
	expected := cluster.Config{Cluster: p.cfg.ClusterName, Unobserved: p.cfg.UnobservedNodes}
	pods := expected.Pods(is)
	p.mu.Lock()
	now, passed := p.tick()
	t := p.state.SetPods(pods, now)
	if p.uses != nil {
		p.uses.SetPods(is, now)
	}
	p.leftOut = pods.Unobserved
	if p.set = is; t.Any() {
		p.set = nil // there may be room later
	}
	p.mu.Unlock()
	p.passed(ctx, now, passed)
	p.tel.expected(ctx, now, &t)
}

// evaluate sends the summary of this moment on, in one call, behind the ends of series
// that the next component refused before.
func (p *summaryProcessor) evaluate(ctx context.Context) {
	began := time.Now()
	p.mu.Lock()
	now, passed := p.tick()
	e := p.state.Evaluate(now)
	p.silent = e.SilentNodes
	p.mu.Unlock()
	p.passed(ctx, now, passed)

	p.tel.flapping(now, p.cfg.Staleness, e.Flapping)
	p.tel.silentNodes(now, e.SilentNodes)
	md := e.Metrics(p.version)
	p.tel.evaluated(ctx, time.Since(began))
	if md.ResourceMetrics().Len() > 0 {
		p.putThresholds(md, now)
	}
	p.putFirstUses(ctx, md, now)
	if md.ResourceMetrics().Len() == 0 {
		return
	}
	if err := p.sender.ConsumeMetrics(ctx, md); err != nil && ctx.Err() == nil {
		p.tel.evaluationFailed(ctx, now, err)
	}
}

// putFirstUses adds how soon pods used their devices, where that is measured.
func (p *summaryProcessor) putFirstUses(ctx context.Context, md pmetric.Metrics, now time.Time) {
	if p.uses == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tel.firstUses(ctx, now, p.uses.Refused())
	p.uses.Write(md, func(scope pcommon.InstrumentationScope) {
		scope.SetName(metadata.ScopeName)
		scope.SetVersion(p.version)
	}, now)
}

// tracked returns how many pods and services are in memory, and how many pods the
// last evaluation expected.
func (p *summaryProcessor) tracked() (pods, services, expected int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pods, services = p.state.Tracked()
	return pods, services, p.state.Expected()
}

// unobserved returns how many pods are on nodes where no agent can run, and the nodes
// on which none seems to.
func (p *summaryProcessor) unobserved() (pods int, nodes []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leftOut, p.silent
}
