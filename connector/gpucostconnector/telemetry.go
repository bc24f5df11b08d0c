// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/intake"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/pricing"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// statistics are what was stored last.
type statistics struct {
	mu       sync.Mutex
	until    int64 // as in books
	rows     int64
	unpriced map[string]int64 // ms by model; nil: there are no prices
}

func (s *statistics) set(b *books, priced bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until, s.rows = b.until, int64(len(b.Totals))
	if priced {
		s.unpriced = pricing.Unpriced(b.Totals)
	}
}

// observe registers the metrics that are observed on demand.
func (c *gpuCost) observe() error {
	counts := func() (ledger.Counts, intake.Counts) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.ledger.Counts(), c.intake.Counts()
	}
	for _, o := range []struct {
		register func(metric.Float64Callback) error
		of       func(*ledger.Counts) int64
	}{
		{c.telemetry.RegisterGpuCostBridgedCallback, func(n *ledger.Counts) int64 { return n.Bridged }},
		{c.telemetry.RegisterGpuCostEnergyGapCallback, func(n *ledger.Counts) int64 { return n.EnergyGap }},
		{c.telemetry.RegisterGpuCostEnergyLostCallback, func(n *ledger.Counts) int64 { return n.EnergyLost }},
	} {
		if err := o.register(func(_ context.Context, to metric.Float64Observer) error {
			n, _ := counts()
			to.Observe(float64(o.of(&n)) / 1000)
			return nil
		}); err != nil {
			return err
		}
	}
	for _, o := range []struct {
		register func(metric.Int64Callback) error
		of       func(accounted *ledger.Counts, read *intake.Counts) int64
	}{
		{c.telemetry.RegisterGpuCostLatePointsCallback, func(n *ledger.Counts, read *intake.Counts) int64 { return n.Late + read.Old }},
		{c.telemetry.RegisterGpuCostOversubscribedCallback, func(n *ledger.Counts, _ *intake.Counts) int64 { return n.Oversubscribed }},
		{c.telemetry.RegisterGpuCostRowsOverflowedCallback, func(n *ledger.Counts, _ *intake.Counts) int64 { return n.Overflowed }},
		{c.telemetry.RegisterGpuCostUnresolvedPointsCallback, func(_ *ledger.Counts, read *intake.Counts) int64 { return read.Unresolved }},
	} {
		if err := o.register(func(_ context.Context, to metric.Int64Observer) error {
			n, read := counts()
			to.Observe(o.of(&n, &read))
			return nil
		}); err != nil {
			return err
		}
	}
	if err := c.telemetry.RegisterGpuCostRefusedPointsCallback(func(_ context.Context, to metric.Int64Observer) error {
		n, read := counts()
		for reason, points := range map[string]int64{"limit": n.Refused + read.Refused, "future": read.Future, "invalid": read.Invalid} {
			to.Observe(points, metric.WithAttributes(attribute.String("reason", reason)))
		}
		return nil
	}); err != nil {
		return err
	}
	return c.observeStored()
}

// observeStored registers those about what was stored last.
func (c *gpuCost) observeStored() error {
	if err := c.telemetry.RegisterGpuCostRowsCallback(func(_ context.Context, to metric.Int64Observer) error {
		c.statistics.mu.Lock()
		defer c.statistics.mu.Unlock()
		to.Observe(c.statistics.rows)
		return nil
	}); err != nil {
		return err
	}
	if err := c.telemetry.RegisterGpuCostUnpricedCallback(func(_ context.Context, to metric.Float64Observer) error {
		c.statistics.mu.Lock()
		defer c.statistics.mu.Unlock()
		for model, ms := range c.statistics.unpriced {
			to.Observe(float64(ms)/1000, metric.WithAttributes(attribute.String(names.HwModel, model)))
		}
		return nil
	}); err != nil {
		return err
	}
	return c.telemetry.RegisterGpuCostLagCallback(func(_ context.Context, to metric.Float64Observer) error {
		c.statistics.mu.Lock()
		defer c.statistics.mu.Unlock()
		if c.statistics.until != 0 {
			to.Observe(max(0, time.Since(time.UnixMilli(c.statistics.until)).Seconds())) // a clock of an agent may be ahead
		}
		return nil
	})
}

// warn logs what makes prices and tenants wrong or absent, each once.
func (c *gpuCost) warn(now time.Time) {
	if c.prices != nil {
		for source, from := range c.prices.Stale(now) {
			if !c.old[source] {
				c.old[source] = true
				c.set.Logger.Warn("price list is older than 180 days: check whether its prices still hold",
					zap.String("source", source), zap.String("valid_from", from.Format(time.DateOnly)))
			}
		}
	}
	c.mu.Lock()
	mismatches, unused := c.pricing.Mismatches(), c.intake.UnusedTenantKeys(now)
	c.mu.Unlock()
	for _, m := range mismatches {
		c.set.Logger.Warn("node has another number of GPUs than the price of its machine is for, it has no price: check gpus of the rule",
			zap.String("k8s.cluster.name", m.Cluster), zap.String("node", m.Node), zap.String("host.type", m.HostType), zap.Int64("gpus", m.Boards))
	}
	for _, key := range unused {
		c.set.Logger.Warn("no device has this key of tenant::from: check that k8s_attributes extracts it", zap.String("key", key))
	}
}
