// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
)

// observe registers what is observed on demand.
func (c *gpuEvents) observe() error {
	if err := c.telemetry.RegisterGpuEventsRaisedCallback(func(_ context.Context, o metric.Int64Observer) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		o.Observe(int64(c.engine.raised))
		return nil
	}); err != nil {
		return err
	}
	return c.telemetry.RegisterGpuEventsSubjectsCallback(func(_ context.Context, o metric.Int64Observer) error {
		c.mu.Lock()
		e := c.engine
		sizes := map[string]int{"device": len(e.devices), "exporter": len(e.exporters), "node": len(e.nodes), "service": len(e.services)}
		c.mu.Unlock()
		for kind, n := range sizes {
			o.Observe(int64(n), metric.WithAttributes(attribute.String("kind", kind)))
		}
		return nil
	})
}

// tell counts and logs what was left out.
func (c *gpuEvents) tell(ctx context.Context, n *counts) {
	for event, refused := range n.refused {
		c.telemetry.GpuEventsRefused.Add(ctx, refused, metric.WithAttributes(attribute.String("event", event)))
		c.logger.Warn("Events are not raised: max_subjects conditions are raised already, or the next component takes none: raise it, or look there",
			zap.String("event", event), zap.Int64("refused", refused))
	}
	for kind, refused := range n.subjects {
		c.telemetry.GpuEventsSubjectsRefused.Add(ctx, refused, metric.WithAttributes(attribute.String("kind", kind)))
		c.logger.Warn("There is more to watch than a limit allows, no event tells of the rest: raise max_subjects", zap.String("kind", kind))
	}
	if n.invalid > 0 {
		c.telemetry.GpuEventsInputInvalid.Add(ctx, n.invalid)
		c.logger.Warn("Points say nothing: they have no service.name, hw.id or node, or their value is not a number",
			zap.String("metric", n.example), zap.Int64("points", n.invalid))
	}
	if n.twice > 0 {
		c.telemetry.GpuEventsInputDuplicate.Add(ctx, n.twice)
		c.logger.Warn("two exporters count the XIDs of one device, the counts of one of them are followed: scrape one exporter a GPU",
			zap.String("hw.id", n.twiceOn.id))
	}
	if n.late > 0 {
		c.telemetry.GpuEventsInputLate.Add(ctx, n.late)
		c.logger.Debug("Points are older than what was judged already", zap.Int64("points", n.late))
	}
}
