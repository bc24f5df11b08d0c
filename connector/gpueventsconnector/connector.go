// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/engine"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/healthmetrics"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/state"
	"github.com/otelcol-gpu/otelcol-gpu/internal/durable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/forward"
	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
)

// tickEvery is the interval between checks for what is due.
const tickEvery = time.Second

// gpuEvents is the connector. Metrics are judged as they arrive; a goroutine forwards
// the events, so that no metric waits for them. The lock covers the engine and is never
// held while something is forwarded or stored.
type gpuEvents struct {
	cfg       *Config
	id        component.ID
	next      consumer.Logs // nil: no pipeline takes events
	health    *publisher    // nil: none takes the health of boards
	version   string
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger // passes each message once in logonce.Every
	store     *store      // nil: the state is in memory alone

	stateLogger *zap.Logger // passes everything

	feeders [inputs]*output // those that read

	mu     sync.Mutex
	engine *engine.Engine

	wake           chan struct{} // holds one: there are events to forward
	stop           chan struct{}
	forwarding     context.Context // canceled by Shutdown
	stopForwarding context.CancelFunc
	done           chan struct{} // nil: not started
	last           error         // of the attempt at the shutdown; set when done is closed
	sending        []event.Event // taken from the engine and not accepted yet; under mu
}

var (
	_ connector.Metrics = (*gpuEvents)(nil)
	_ connector.Logs    = (*gpuEvents)(nil)
)

func newConnector(cfg *Config, set connector.Settings) (*gpuEvents, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	forwarding, stopForwarding := context.WithCancel(context.Background())
	return &gpuEvents{
		forwarding:     forwarding,
		stopForwarding: stopForwarding,
		cfg:            cfg,
		id:             set.ID,
		version:        set.BuildInfo.Version,
		telemetry:      telemetry,
		logger:         logonce.Logger(set.Logger),
		stateLogger:    set.Logger,

		engine: newEngine(cfg),
		wake:   make(chan struct{}, 1),
		stop:   make(chan struct{}),
	}, nil
}

// newEngine returns the engine of a configuration.
func newEngine(cfg *Config) *engine.Engine {
	return engine.New(engine.Options{
		Devices: slices.Contains(cfg.Rules, RuleSetDevice), Services: slices.Contains(cfg.Rules, RuleSetService),
		Rules: cfg.Events, MaxSubjects: cfg.MaxSubjects,
		Staleness: cfg.Staleness, SubjectTTL: cfg.SubjectTTL, RestoredTTL: cfg.RestoredTTL,
		MaxReasons: cfg.Health.MaxReasons, Expected: cfg.Health.Expected, Cleared: cfg.Health.Cleared,
	})
}

// Start reads what was raised before a restart, and registers the metrics about the
// connector.
func (c *gpuEvents) Start(ctx context.Context, host component.Host) error {
	if c.feeders[fromLogs] != nil {
		c.engine.ExpectLines()
	}
	if c.cfg.Storage != nil {
		client, damaged, err := durable.Open(ctx, host, component.KindConnector, *c.cfg.Storage, c.id)
		if err != nil {
			return err
		}
		if damaged != nil {
			c.telemetry.GpuEventsStateFailures.Add(ctx, 1)
			c.logger.Error("storage file is damaged, using a second one: active events may be raised again; "+
				"remove the damaged file", zap.Error(damaged))
		}
		var restored *state.State
		if c.store, restored, err = newStore(ctx, client, c.cfg.MaxSubjects, c.telemetry, c.stateLogger); err != nil {
			return err
		}
		c.engine.Restore(restored, time.Now())
		c.store.Start(c.snapshot)
	}
	c.done = make(chan struct{})
	go c.run()
	if c.health != nil {
		go c.health.run(c.forwarding)
	}
	return c.observe()
}

// drainTime is how long Shutdown waits for the next component at most.
const drainTime = 10 * time.Second

// Shutdown forwards the remaining events and stores the state. Events that the next
// component does not take in time are no part of the stored state, so that they are
// reported after the next start.
func (c *gpuEvents) Shutdown(ctx context.Context) (err error) {
	defer c.stopForwarding()
	if c.done != nil {
		close(c.stop)
		drain, cancel := context.WithTimeout(ctx, drainTime)
		defer cancel()
		context.AfterFunc(drain, c.stopForwarding)
		if err = c.lastErr(drain); err != nil {
			c.mu.Lock()
			left := len(c.sending) + c.engine.Waiting()
			c.mu.Unlock()
			err = fmt.Errorf("the next component did not take %d events: with a storage they are reported after the next start: %w", left, err)
		}
		if c.health != nil {
			close(c.health.stop) // everything is judged now
			err = errors.Join(err, forward.Ended(drain, c.health.done))
		}
	}
	if c.store != nil {
		err = errors.Join(err, c.store.Close(ctx))
	}
	c.telemetry.Shutdown()
	return err
}

// lastErr waits for run and its last attempt.
func (c *gpuEvents) lastErr(ctx context.Context) error {
	if err := forward.Ended(ctx, c.done); err != nil {
		return err
	}
	return c.last
}

// Capabilities implements connector.Metrics and connector.Logs: they are only read.
func (*gpuEvents) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeMetrics reads md. Senders of metrics cannot fix event delivery, so it never
// returns an error.
func (c *gpuEvents) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	c.read(ctx, func(now time.Time) { c.engine.Consume(md, now) })
	return nil
}

// ConsumeLogs reads lines of the kernel log among logs. It returns no error either.
func (c *gpuEvents) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	c.read(ctx, func(now time.Time) { c.engine.ReadLog(logs, now) })
	return nil
}

// read has the engine read something, and wakes what forwards the results.
func (c *gpuEvents) read(ctx context.Context, f func(now time.Time)) {
	c.mu.Lock()
	f(time.Now())
	counts, busy, judged := c.engine.TakeCounts(), c.busy(), c.engine.Judged()
	c.mu.Unlock()
	c.report(ctx, &counts)
	if busy {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	if judged && c.health != nil {
		c.health.notify()
	}
}

// busy reports whether there is something to forward or to store. Every batch that
// arrives meanwhile wakes run.
func (c *gpuEvents) busy() bool {
	return c.engine.Waiting() > 0 || c.store != nil && c.engine.Changed()
}

// run forwards events until stop, and then the remaining ones.
func (c *gpuEvents) run() {
	defer close(c.done)
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	var attempts retry
	for {
		select {
		case <-c.stop:
			c.mu.Lock()
			c.engine.Finish(time.Now())
			c.mu.Unlock()
			c.last = c.forward(c.forwarding)
			return
		case <-c.wake:
		case <-ticker.C:
			c.mu.Lock()
			c.engine.Tick(time.Now())
			counts := c.engine.TakeCounts()
			c.mu.Unlock()
			c.report(context.Background(), &counts)
		}
		if attempts.due() {
			attempts.made(c.forward(c.forwarding))
		}
	}
}

// maxBackoff is the longest time between two attempts to forward events.
const maxBackoff = 30 * time.Second

// forward forwards all events in one call. Events that the next component refuses wait
// again, in their order; those that it refuses for good are dropped.
func (c *gpuEvents) forward(ctx context.Context) error {
	c.mu.Lock()
	c.sending = c.engine.Take(c.sending)
	sending, changed := c.sending, c.engine.Changed()
	c.mu.Unlock()
	if len(sending) > 0 && c.next != nil {
		if err := c.emit(ctx, sending); err != nil {
			c.telemetry.GpuEventsFailures.Add(ctx, 1)
			if !forward.Permanent(err) {
				c.logger.Warn("next component refused events, retrying", zap.Error(err))
				c.putBack()
				return err
			}
			c.logger.Error("events dropped: an exporter of the pipeline refused them permanently, see its own log", zap.Int("events", len(sending)), zap.Error(err))
		} else {
			for i := range sending {
				c.telemetry.GpuEventsEmitted.Add(ctx, 1, metric.WithAttributes(
					attribute.String("event", sending[i].Name), attribute.String("state", sending[i].State)))
			}
		}
		c.mu.Lock()
		c.sending = nil
		c.mu.Unlock()
	}
	if c.store != nil && changed {
		c.store.Wake()
	}
	return nil
}

// publishTo makes next the consumer of the health of boards.
func (c *gpuEvents) publishTo(next consumer.Metrics) {
	p := newPublisher(next, c.cfg.MaxSubjects*maxSeries)
	p.collect = func() (pmetric.Metrics, bool) {
		w := healthmetrics.Writer{Scope: metadata.ScopeName, Version: c.version, Score: c.cfg.Health.Score}
		c.mu.Lock()
		c.engine.Health(&w)
		c.mu.Unlock()
		return w.Metrics()
	}
	p.again = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.engine.HealthAgain()
	}
	p.refused = func(ctx context.Context, err error) {
		c.telemetry.GpuEventsHealthFailures.Add(ctx, 1)
		if forward.Permanent(err) {
			c.logger.Error("health of GPUs dropped: an exporter of the pipeline refused it permanently, see its own log", zap.Error(err))
		} else {
			c.logger.Warn("next component refused the health of GPUs, retrying", zap.Error(err))
		}
	}
	c.health = p
}

// maxSeries is of how many series of a board, on average, the ends are kept while the next
// component refuses them.
const maxSeries = 16

// putBack returns refused events to the engine, which limits their number.
func (c *gpuEvents) putBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.engine.PutBack(c.sending)
	c.sending = nil
}

// snapshot is the state to store; nil where it has not changed, or where there are
// events that were not accepted yet: after a kill before that they are reported twice
// rather than never.
func (c *gpuEvents) snapshot() *state.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.engine.Changed() || len(c.sending) > 0 || c.engine.Waiting() > 0 {
		return nil
	}
	return c.engine.Save()
}

func (c *gpuEvents) emit(ctx context.Context, events []event.Event) error {
	logs := plog.NewLogs()
	now := pcommon.NewTimestampFromTime(time.Now())
	for i := range events {
		if err := events[i].Write(logs, now, metadata.ScopeName, c.version); err != nil {
			return err
		}
	}
	return c.next.ConsumeLogs(ctx, logs)
}
