// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"context"
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
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// logEvery is the time between two log lines about the same cause.
const logEvery = 10 * time.Minute

// gpuEvents is the connector. The lock covers the rules' state and is never held
// while events are handed on.
type gpuEvents struct {
	cfg       *Config
	id        component.ID
	next      consumer.Logs
	version   string
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger // passes each message once in logEvery
	store     *store      // nil: nothing is kept over a restart

	mu      sync.Mutex
	partial *partialRule
}

var _ connector.Metrics = (*gpuEvents)(nil)

func newConnector(cfg *Config, set connector.Settings, next consumer.Logs) (*gpuEvents, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &gpuEvents{
		cfg:       cfg,
		id:        set.ID,
		next:      next,
		version:   set.BuildInfo.Version,
		telemetry: telemetry,
		logger: set.Logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
			return zapcore.NewSamplerWithOptions(core, logEvery, 1, 0)
		})),
		partial: newPartialRule(cfg.MaxSubjects, cfg.RestoredTTL),
	}, nil
}

// Start reads what was raised before a restart, and registers what is observed
// on demand.
func (c *gpuEvents) Start(ctx context.Context, host component.Host) error {
	if c.cfg.Storage != nil {
		client, damaged, err := openStorage(ctx, host, *c.cfg.Storage, c.id)
		if err != nil {
			return err
		}
		if damaged != nil {
			c.telemetry.GpuEventsStateFailures.Add(ctx, 1)
			c.logger.Error("The storage cannot be opened, a second one is used: what is raised may be raised a second time. "+
				"Remove what is damaged", zap.Error(damaged))
		}
		c.store = newStore(ctx, client, c.cfg.MaxSubjects, c.telemetry, c.logger)
		c.partial.restore(c.store.snapshot())
		c.store.start()
	}
	return c.telemetry.RegisterGpuEventsRaisedCallback(func(_ context.Context, o metric.Int64Observer) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		o.Observe(int64(len(c.partial.raised)))
		return nil
	})
}

// Shutdown writes what is left to write.
func (c *gpuEvents) Shutdown(ctx context.Context) (err error) {
	if c.store != nil {
		err = c.store.close(ctx)
	}
	c.telemetry.Shutdown()
	return err
}

// Capabilities says that metrics are only read.
func (*gpuEvents) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeMetrics hands on the events of md, all of them in one call. If they are
// refused, the conditions are as they were before: the next metrics raise or
// clear them again.
func (c *gpuEvents) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	c.mu.Lock()
	changes, refused, invalid := c.partial.take(md, time.Now())
	c.mu.Unlock()

	if refused > 0 {
		c.telemetry.GpuEventsRefused.Add(ctx, int64(refused),
			metric.WithAttributes(attribute.String("event", names.ServicePartial.Name)))
		c.logger.Warn("Events are not raised: max_subjects conditions are raised already: raise it",
			zap.String("event", names.ServicePartial.Name), zap.Int("refused", refused))
	}
	if invalid > 0 {
		c.telemetry.GpuEventsInputInvalid.Add(ctx, int64(invalid))
		c.logger.Warn("Points say nothing: they have no service.name, or their value is not a number",
			zap.String("metric", names.ServicePartial.Name), zap.Int("points", invalid))
	}
	if len(changes) == 0 {
		return nil
	}
	events := c.partial.events(changes, md)
	if err := c.emit(ctx, events); err != nil {
		c.mu.Lock()
		c.partial.undo(changes)
		c.mu.Unlock()
		return err
	}
	// Only now: killed in between, the event is told twice rather than never.
	if c.store != nil {
		c.store.note(changes)
	}
	for _, e := range events {
		c.telemetry.GpuEventsEmitted.Add(ctx, 1, metric.WithAttributes(
			attribute.String("event", e.name), attribute.String("state", e.state)))
	}
	return nil
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
