// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ncclconnector

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/forward"
	"github.com/otelcol-gpu/otelcol-gpu/internal/lapse"
	"github.com/otelcol-gpu/otelcol-gpu/internal/seriesends"
)

// worker is what a scope does. It is given the time, and is not safe for concurrent use.
type worker interface {
	logs(ctx context.Context, logs plog.Logs, now time.Time)
	metrics(md pmetric.Metrics, now time.Time)
	// resume takes that this process did not run for a while until now.
	resume(now time.Time, away time.Duration)
	// evaluate returns what there is to send.
	evaluate(ctx context.Context, now time.Time) (pmetric.Metrics, plog.Logs)
	communicators() int
}

// nccl is the connector. What arrives is read at once; a goroutine sends the results.
type nccl struct {
	cfg *Config
	tel *telemetry

	toMetrics *seriesends.Sender // nil: no pipeline takes metrics
	toLogs    consumer.Logs      // nil: none takes logs
	feeders   [inputs]*output    // those that read

	// mu guards worker and watch. It is held while that works, and never while something is sent.
	mu     sync.Mutex
	worker worker
	watch  lapse.Watch
	began  time.Time

	// unsent are events that the next component refused. Samples are not kept: newer ones follow.
	unsent plog.Logs

	stop           chan struct{}
	done           chan struct{}   // nil: not started
	sending        context.Context // canceled by Shutdown
	stopForwarding context.CancelFunc
}

func newConnector(cfg *Config, set connector.Settings) (*nccl, error) {
	c := &nccl{cfg: cfg, stop: make(chan struct{}), unsent: plog.NewLogs(), began: time.Now()}
	var err error
	c.tel, err = newTelemetry(set.TelemetrySettings, func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.worker.communicators()
	})
	if err != nil {
		return nil, err
	}
	if c.worker, err = newWorker(cfg, set, c.tel); err != nil {
		c.tel.shutdown()
		return nil, err
	}
	c.sending, c.stopForwarding = context.WithCancel(context.Background())
	return c, nil
}

// publishTo has metrics sent to next.
func (c *nccl) publishTo(next consumer.Metrics) {
	c.toMetrics = seriesends.New(next, c.cfg.MaxSeries, nil)
}

// Start begins the evaluations.
func (c *nccl) Start(context.Context, component.Host) error {
	c.done = make(chan struct{})
	go c.run()
	return nil
}

// drainTime is how long Shutdown waits for the next components at most.
const drainTime = 10 * time.Second

// Shutdown sends what was read. It ends no series: a restart is no gap.
func (c *nccl) Shutdown(ctx context.Context) (err error) {
	defer c.stopForwarding()
	if c.done != nil {
		close(c.stop)
		drain, cancel := context.WithTimeout(ctx, drainTime)
		defer cancel()
		context.AfterFunc(drain, c.stopForwarding)
		err = forward.Ended(drain, c.done)
	}
	c.tel.shutdown()
	return err
}

// Capabilities reports that what arrives is only read.
func (*nccl) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// lapseAfter is for how long this process is away until what is silent may not be.
const lapseAfter = time.Minute

// tick returns the time, after the worker has followed a time for which this process did not run. The
// caller holds mu.
func (c *nccl) tick() time.Time {
	now := time.Now()
	if passed := c.watch.Take(now.Round(0), now.Sub(c.began)); passed.Lapsed(max(lapseAfter, 2*c.cfg.Interval)) {
		c.worker.resume(now, passed.Since)
	}
	return now
}

// readLogs reads lines, or samples. A sender cannot mend them, so there is no error.
func (c *nccl) readLogs(ctx context.Context, logs plog.Logs) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.worker.logs(ctx, logs, c.tick())
}

func (c *nccl) readMetrics(md pmetric.Metrics) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.worker.metrics(md, c.tick())
}

// run evaluates every interval, whether or not something arrives.
func (c *nccl) run() {
	defer close(c.done)
	ticker := time.NewTicker(c.cfg.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-c.stop:
			c.send(c.sending)
			return
		case <-ticker.C:
			c.send(c.sending)
		}
	}
}

// send evaluates, and sends the results on.
func (c *nccl) send(ctx context.Context) {
	c.mu.Lock()
	now := c.tick()
	md, logs := c.worker.evaluate(ctx, now)
	c.mu.Unlock()
	if c.toMetrics != nil && md.ResourceMetrics().Len() > 0 {
		if err := c.toMetrics.ConsumeMetrics(ctx, md); err != nil {
			c.tel.failed(ctx, now, err)
		}
	}
	if c.toLogs == nil {
		return
	}
	if c.cfg.Scope == ScopeCommunicator {
		c.sendEvents(ctx, logs, now)
	} else if logs.ResourceLogs().Len() > 0 {
		if err := c.toLogs.ConsumeLogs(ctx, logs); err != nil {
			c.tel.failed(ctx, now, err)
		}
	}
}

// maxUnsent is how many events wait for the next component; of more, the oldest are dropped.
const maxUnsent = 1000

// sendEvents sends events behind those that were refused, and keeps them where the next component
// refuses them for now: an event is sent once.
func (c *nccl) sendEvents(ctx context.Context, events plog.Logs, now time.Time) {
	events.ResourceLogs().MoveAndAppendTo(c.unsent.ResourceLogs())
	if c.unsent.ResourceLogs().Len() == 0 {
		return
	}
	sent := plog.NewLogs()
	c.unsent.CopyTo(sent)
	err := c.toLogs.ConsumeLogs(ctx, sent)
	if err == nil || forward.Permanent(err) {
		c.unsent = plog.NewLogs()
	}
	if err == nil {
		return
	}
	c.tel.failed(ctx, now, err)
	over := c.unsent.ResourceLogs().Len() - maxUnsent
	c.unsent.ResourceLogs().RemoveIf(func(plog.ResourceLogs) bool { over--; return over >= 0 })
}
