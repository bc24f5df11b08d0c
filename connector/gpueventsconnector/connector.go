// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/durable"
)

// logEvery is the time between two log lines about the same cause.
const logEvery = 10 * time.Minute

// tickEvery is how often is looked for what is due.
const tickEvery = time.Second

// gpuEvents is the connector. Metrics are judged as they arrive; a goroutine
// hands the events on, so that no metric waits for them. The lock covers the
// engine and is never held while something is handed on or stored.
type gpuEvents struct {
	cfg       *Config
	id        component.ID
	next      consumer.Logs
	version   string
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger // passes each message once in logEvery
	store     *store      // nil: nothing is kept over a restart

	stateLogger *zap.Logger // passes everything

	mu     sync.Mutex
	engine *engine

	wake    chan struct{} // holds one: there are events to hand on
	stop    chan struct{}
	handing context.Context // of what is handed on; Shutdown breaks it off
	breakUp context.CancelFunc
	done    chan struct{} // nil: not started
	last    error         // of the attempt at the shutdown; set when done is closed
	sending []event       // taken from the engine and not handed on yet; under mu
	rest    time.Duration // until the next attempt after one that failed
}

var _ connector.Metrics = (*gpuEvents)(nil)

func newConnector(cfg *Config, set connector.Settings, next consumer.Logs) (*gpuEvents, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	handing, breakUp := context.WithCancel(context.Background())
	return &gpuEvents{
		handing:   handing,
		breakUp:   breakUp,
		cfg:       cfg,
		id:        set.ID,
		next:      next,
		version:   set.BuildInfo.Version,
		telemetry: telemetry,
		logger: set.Logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
			return zapcore.NewSamplerWithOptions(core, logEvery, 1, 0)
		})),
		stateLogger: set.Logger,

		engine: newEngine(cfg),
		wake:   make(chan struct{}, 1),
		stop:   make(chan struct{}),
	}, nil
}

// Start reads what was raised before a restart, and registers what is observed
// on demand.
func (c *gpuEvents) Start(ctx context.Context, host component.Host) error {
	if c.cfg.Storage != nil {
		client, damaged, err := durable.Open(ctx, host, component.KindConnector, *c.cfg.Storage, c.id)
		if err != nil {
			return err
		}
		if damaged != nil {
			c.telemetry.GpuEventsStateFailures.Add(ctx, 1)
			c.logger.Error("the storage's file is damaged, a second one is used: what is raised may be raised a second time; "+
				"remove the damaged file", zap.Error(damaged))
		}
		var state *savedState
		if c.store, state, err = newStore(ctx, client, c.cfg.MaxSubjects, c.telemetry, c.stateLogger); err != nil {
			return err
		}
		c.engine.restore(state, time.Now())
		c.store.start(c.snapshot)
	}
	c.done = make(chan struct{})
	go c.run()
	return c.observe()
}

// drainTime is how long Shutdown waits for the next component at most.
const drainTime = 10 * time.Second

// Shutdown hands on what is left, and stores what is left to store. What the next
// component does not take in time stays out of the stored state, so that it is reported
// after the next start.
func (c *gpuEvents) Shutdown(ctx context.Context) (err error) {
	defer c.breakUp()
	if c.done != nil {
		close(c.stop)
		drain, cancel := context.WithTimeout(ctx, drainTime)
		defer cancel()
		context.AfterFunc(drain, c.breakUp)
		if err = c.lastErr(drain); err != nil {
			c.mu.Lock()
			left := len(c.sending) + len(c.engine.waiting)
			c.mu.Unlock()
			err = fmt.Errorf("the next component did not take %d events: with a storage they are reported after the next start: %w", left, err)
		}
	}
	if c.store != nil {
		err = errors.Join(err, c.store.close(ctx))
	}
	c.telemetry.Shutdown()
	return err
}

// lastErr waits for run and its last attempt: until ctx ends, and then for a moment more, in
// which the call under way is broken off.
func (c *gpuEvents) lastErr(ctx context.Context) error {
	select {
	case <-c.done:
		return c.last
	case <-ctx.Done():
	}
	select {
	case <-c.done:
		return c.last
	case <-time.After(time.Second):
		return ctx.Err()
	}
}

// Capabilities says that metrics are only read.
func (*gpuEvents) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeMetrics reads md and never fails: who sends metrics cannot mend what is
// wrong with events.
func (c *gpuEvents) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	c.mu.Lock()
	c.engine.consume(md, time.Now())
	counted, busy := c.engine.counts, c.busy()
	c.engine.counts = counts{}
	c.mu.Unlock()
	c.tell(ctx, &counted)
	if busy {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	return nil
}

// busy reports whether there is something to hand on or to store. It holds for
// moments: each batch that comes meanwhile wakes run.
func (c *gpuEvents) busy() bool {
	return len(c.engine.waiting) > 0 || c.store != nil && c.engine.changed
}

// run hands events on until stop, and then what is left.
func (c *gpuEvents) run() {
	defer close(c.done)
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	var failed time.Time
	for {
		select {
		case <-c.stop:
			c.mu.Lock()
			c.engine.advance(time.Now())
			c.engine.judgeOpen(0)
			c.mu.Unlock()
			c.last = c.handOn(c.handing)
			return
		case <-c.wake:
		case <-ticker.C:
			c.mu.Lock()
			c.engine.tick(time.Now())
			counted := c.engine.counts
			c.engine.counts = counts{}
			c.mu.Unlock()
			c.tell(context.Background(), &counted)
		}
		if !failed.IsZero() && time.Since(failed) < c.rest {
			continue
		}
		if err := c.handOn(c.handing); err != nil {
			failed, c.rest = time.Now(), min(max(2*c.rest, time.Second), maxRest)
			continue
		}
		failed, c.rest = time.Time{}, 0
	}
}

// maxRest is the longest time between two attempts to hand events on.
const maxRest = 30 * time.Second

// handOn hands on all events there are, in one call. What the next component
// refuses stays, in its order; what it will never take is left out.
func (c *gpuEvents) handOn(ctx context.Context) error {
	c.mu.Lock()
	c.sending = append(c.sending, c.engine.waiting...)
	clear(c.engine.waiting)
	c.engine.waiting = c.engine.waiting[:0]
	sending, changed := c.sending, c.engine.changed
	c.mu.Unlock()
	if len(sending) > 0 {
		if err := c.emit(ctx, sending); err != nil {
			c.telemetry.GpuEventsFailures.Add(ctx, 1)
			if !forGood(err) {
				c.logger.Warn("The next component does not take events, they are tried again", zap.Error(err))
				c.keep()
				return err
			}
			c.logger.Error("an exporter of the pipeline refuses events for good and does not get them again: its own log says why", zap.Int("events", len(sending)), zap.Error(err))
		} else {
			for i := range sending {
				c.telemetry.GpuEventsEmitted.Add(ctx, 1, metric.WithAttributes(
					attribute.String("event", sending[i].name), attribute.String("state", sending[i].state)))
			}
		}
		c.mu.Lock()
		c.sending = nil
		c.mu.Unlock()
	}
	if c.store != nil && changed {
		c.store.wake()
	}
	return nil
}

// forGood reports whether nobody will ever take what err refused. Where several
// take events, each must have said so: what one refuses for good the other may
// only refuse for now.
func forGood(err error) bool {
	all, several := err.(interface{ Unwrap() []error })
	if !several {
		return consumererror.IsPermanent(err)
	}
	for _, one := range all.Unwrap() {
		if !forGood(one) {
			return false
		}
	}
	return true
}

// keep puts events that were refused back where their number is limited.
func (c *gpuEvents) keep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.engine.waiting = append(c.sending, c.engine.waiting...)
	c.sending = nil
}

// snapshot is the state to store; nil where nothing has changed, or where events
// were not handed on yet: killed before that, they are told twice rather than
// never.
func (c *gpuEvents) snapshot() *savedState {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.engine.changed || len(c.sending) > 0 || len(c.engine.waiting) > 0 {
		return nil
	}
	c.engine.changed = false
	return c.engine.save()
}

func (c *gpuEvents) emit(ctx context.Context, events []event) error {
	logs := plog.NewLogs()
	now := pcommon.NewTimestampFromTime(time.Now())
	for i := range events {
		if err := events[i].write(logs, now, metadata.ScopeName, c.version); err != nil {
			return err
		}
	}
	return c.next.ConsumeLogs(ctx, logs)
}
