// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/output"
	"github.com/otelcol-gpu/otelcol-gpu/internal/forward"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// retryEvery is the time after which a flush is repeated of which something failed.
const retryEvery = 10 * time.Second

// errUnanswered is the error of rows of hours whose consumer has not returned.
var errUnanswered = fmt.Errorf("the next component does not answer for %s: see that the disk of the store does", answerWithin)

// run flushes at every flush_interval, and once more when it is stopped.
func (c *gpuCost) run() {
	defer close(c.done)
	timer := time.NewTimer(c.cfg.FlushInterval)
	defer timer.Stop()
	for {
		select {
		case <-c.stop:
			c.last = c.flush(c.forwarding, true)
			return
		case <-timer.C:
		}
		wait := c.cfg.FlushInterval
		if c.flush(c.forwarding, false) != nil {
			wait = min(wait, retryEvery)
		}
		timer.Reset(wait)
	}
}

// books are what a flush stores and emits.
type books struct {
	output.Books
	rows  []usage.Row // of hours
	state []byte
	// readings are what gauges reported; nil: none is read.
	readings []byte
	until    int64 // all boards with points are accounted until then; 0: no board has
}

// flush stores the state and then emits what it contains: after a crash between the two no
// time counts twice, and no counter falls. While nothing can be stored, what was stored last
// is emitted, so that series stand still and do not end.
func (c *gpuCost) flush(ctx context.Context, last bool) error {
	now := time.Now()
	b := c.settle(now)
	c.warn(now)
	var failed error
	if c.store != nil {
		failed = c.write(ctx, b)
	}
	if failed == nil {
		c.stored = b.Books
		c.statistics.set(b, c.prices != nil)
	}
	return errors.Join(failed, c.emitMetrics(ctx, now, last), c.emitHours(ctx, now, b, failed == nil))
}

// settle returns what the accounts contain at a time.
func (c *gpuCost) settle(now time.Time) *books {
	c.mu.Lock()
	defer c.mu.Unlock()
	ms := now.UnixMilli()
	c.intake.Expire(now)
	c.ledger.Expire(ms)
	b := &books{rows: c.hours.Rows(c.ledger.Hours(ms)), until: c.ledger.Behind()}
	b.Books = output.Books{Start: c.ledger.Start(), Totals: c.ledger.Totals(), Prices: c.currentPrices(ms), Budgets: c.ledger.Budgets(ms)}
	if c.store != nil {
		b.state, b.readings = c.ledger.Encode(), c.pricing.Readings(now)
	}
	return b
}

// currentPrices are the prices that hold. Where boards that differ in nothing that is shown
// have several, it is the one that most of them have.
func (c *gpuCost) currentPrices(now int64) map[output.Price]float64 {
	if c.prices == nil {
		return nil
	}
	type priced struct {
		output.Price
		value float64
	}
	boards := map[priced]int64{}
	c.ledger.Classes(func(of *ledger.Priced, n int64) {
		if price := c.pricing.Price(of, now); price.Rate.Known() {
			k := output.Price{Cluster: of.Class.Cluster, Region: of.Class.Region, Model: of.Class.Model, HostType: of.Class.HostType, Capacity: of.Class.Capacity}
			boards[priced{k, price.Rate.Hour()}] += n
		}
	})
	all := map[output.Price]float64{}
	for p, n := range boards {
		known, is := all[p.Price]
		if most := boards[priced{p.Price, known}]; !is || n > most || n == most && p.value > known {
			all[p.Price] = p.value
		}
	}
	return all
}

// write stores the state.
func (c *gpuCost) write(ctx context.Context, b *books) error {
	c.health.writing(time.Now())
	err := c.store.write(ctx, b.state, b.readings)
	if err == nil {
		if c.health.written() {
			c.set.Logger.Info("state is written again")
		}
		return nil
	}
	c.telemetry.GpuCostStoreFailures.Add(ctx, 1)
	c.logger.Warn("state cannot be written, retrying every 10 s: what is emitted stands still until it is", zap.Error(err))
	return fmt.Errorf("the state is not stored, and what it contains since the last write is not emitted: %w", err)
}

func (c *gpuCost) emitMetrics(ctx context.Context, now time.Time, last bool) error {
	if c.metrics == nil {
		return nil
	}
	md := c.written.Write(&c.stored, pcommon.NewTimestampFromTime(now), last)
	if md.ResourceMetrics().Len() == 0 {
		return nil
	}
	if err := c.metrics.ConsumeMetrics(ctx, md); err != nil {
		c.telemetry.GpuCostFailures.Add(ctx, 1)
		c.logger.Warn("next component refused metrics, retrying", zap.Error(err))
		return err
	}
	c.written.Accepted()
	return nil
}

// emitHours emits the rows of hours. Those that are refused come again with the next flush,
// also after a restart; those that are refused for good are dropped.
func (c *gpuCost) emitHours(ctx context.Context, now time.Time, b *books, stored bool) error {
	if !stored {
		return nil
	}
	if c.logs != nil && len(b.rows) > 0 {
		logs := c.hours.Write(b.rows, pcommon.NewTimestampFromTime(now))
		if err := c.emission.run(ctx, errUnanswered, func() error { return c.logs.ConsumeLogs(ctx, logs) }); err != nil {
			c.telemetry.GpuCostFailures.Add(ctx, 1)
			if !forward.Permanent(err) {
				c.logger.Warn("next component refused rows of hours, retrying", zap.Error(err))
				return err
			}
			c.logger.Error("rows of hours dropped: an exporter of the pipeline refused them permanently, see its own log", zap.Int("rows", len(b.rows)), zap.Error(err))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ledger.HoursEmitted()
	return nil
}
