// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/engine"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/kernellog"
)

// observe registers the metrics that are observed on demand.
func (c *gpuEvents) observe() error {
	if err := c.telemetry.RegisterGpuEventsRaisedCallback(func(_ context.Context, o metric.Int64Observer) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		o.Observe(int64(c.engine.Raised()))
		return nil
	}); err != nil {
		return err
	}
	if err := c.telemetry.RegisterGpuEventsHealthEndsDroppedCallback(func(_ context.Context, o metric.Int64Observer) error {
		if c.health != nil {
			_, dropped := c.health.next.Kept()
			o.Observe(dropped)
		}
		return nil
	}); err != nil {
		return err
	}
	return c.telemetry.RegisterGpuEventsSubjectsCallback(func(_ context.Context, o metric.Int64Observer) error {
		c.mu.Lock()
		sizes := c.engine.Subjects()
		c.mu.Unlock()
		for kind, n := range sizes {
			o.Observe(int64(n), metric.WithAttributes(attribute.String("kind", kind)))
		}
		return nil
	})
}

// report counts and logs what was left out.
func (c *gpuEvents) report(ctx context.Context, n *engine.Counts) {
	for event, refused := range n.Refused {
		c.telemetry.GpuEventsRefused.Add(ctx, refused, metric.WithAttributes(attribute.String("event", event)))
		c.logger.Warn("events not raised: max_subjects conditions are raised already, or the next component accepts no events; raise the limit, or check that component",
			zap.String("event", event), zap.Int64("refused", refused))
	}
	for kind, refused := range n.Subjects {
		c.telemetry.GpuEventsSubjectsRefused.Add(ctx, refused, metric.WithAttributes(attribute.String("kind", kind)))
		c.logger.Warn("limit of watched subjects reached, there are no events about the rest: raise max_subjects", zap.String("kind", kind))
	}
	if n.Invalid > 0 {
		c.telemetry.GpuEventsInputInvalid.Add(ctx, n.Invalid)
		c.logger.Warn("skipping invalid points: they have no service.name, hw.id or node, or a value that is no number or that the metric cannot have",
			zap.String("metric", n.InvalidExample), zap.Int64("points", n.Invalid))
	}
	if n.Duplicate > 0 {
		c.telemetry.GpuEventsInputDuplicate.Add(ctx, n.Duplicate)
		c.logger.Warn("two exporters count the XIDs of one device, following one of them: scrape one exporter for each GPU",
			zap.String("hw.id", n.DuplicateOn.ID))
	}
	if x := n.HeldOnly; x.Withheld > 0 {
		c.logger.Warn("GPUs without an owner are not on the exporter's page, and are not lost: dcgm-exporter from 4.1.3 to 4.7.0 leaves them out with --kubernetes-virtual-gpus or --kubernetes-enable-dra: run it without these flags",
			zap.String("node", x.Exporter.Node), zap.String("address", x.Exporter.Address), zap.Int64("port", x.Exporter.Port), zap.Int64("gpus", x.Withheld))
	}
	if n.LeftOut > 0 {
		c.telemetry.GpuEventsHealthReasonsLeftOut.Add(ctx, n.LeftOut)
		c.logger.Warn("reasons against a GPU are not listed: raise health::max_reasons", zap.String("hw.id", n.LeftOutOf.ID))
	}
	for outcome, lines := range n.Lines {
		c.telemetry.GpuEventsKernelLines.Add(ctx, lines, metric.WithAttributes(attribute.String("outcome", string(outcome))))
	}
	if l := &n.UnknownGPU; n.Lines[kernellog.UnknownGPU] > 0 {
		c.logger.Warn("skipping lines of the kernel log about GPUs that no exporter of their node has: "+
			"check gpu.pci.address, and k8s.node.name or host.name of the log records",
			zap.String("gpu.pci.address", l.PCI), zap.String("node", l.Node), zap.Int("gpu.xid.code", l.Code))
	}
	if n.Lines[kernellog.Refused] > 0 {
		c.logger.Warn("skipping lines of the kernel log, there are too many in one second", zap.Int("limit", kernellog.MaxPerSecond))
	}
	if n.Apart > 0 {
		c.logger.Warn("clocks of GPUs are not compared: pages are more than 30s apart; collect more often, or switch gpu.straggler off", zap.Duration("apart", n.Apart))
	}
	if n.Late > 0 {
		c.telemetry.GpuEventsInputLate.Add(ctx, n.Late)
		c.logger.Debug("skipping late points", zap.Int64("points", n.Late))
	}
}
