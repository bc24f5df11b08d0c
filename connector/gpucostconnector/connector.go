// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/intake"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/output"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/pricing"
	"github.com/otelcol-gpu/otelcol-gpu/internal/forward"
	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// gpuCost is the connector. Metrics are accounted for as they arrive; a goroutine stores and
// emits the results, so that no metric waits for that. The lock covers what is read into,
// and is never held while something is stored or forwarded.
type gpuCost struct {
	cfg       *Config
	set       connector.Settings
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger // passes each message once in logonce.Every

	metrics consumer.Metrics // nil: no pipeline takes metrics
	logs    consumer.Logs    // nil: none takes the rows of hours

	feeder *port // the one that reads

	mu      sync.Mutex
	ledger  *ledger.Ledger
	intake  *intake.Intake
	pricing *pricing.Pricing

	prices *prices.Book // nil: there are no prices
	carbon *prices.Carbon
	store  *store // nil: the state is in memory alone
	health health

	written  *output.Metrics // these and those below are of flush
	hours    output.Hours
	emission lone            // of rows of hours, which a store puts on its disk meanwhile
	stored   output.Books    // what may be emitted
	old      map[string]bool // sources of prices that were reported as old

	statistics statistics

	stop           chan struct{}
	forwarding     context.Context // canceled by Shutdown
	stopForwarding context.CancelFunc
	done           chan struct{} // nil: not started
	last           error         // of the last flush; set when done is closed
}

var _ connector.Metrics = (*gpuCost)(nil)

func newConnector(cfg *Config, set connector.Settings) (*gpuCost, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	forwarding, stopForwarding := context.WithCancel(context.Background())
	return &gpuCost{
		cfg: cfg, set: set, telemetry: telemetry,
		logger:     logonce.Logger(set.Logger),
		forwarding: forwarding, stopForwarding: stopForwarding,
		old:  map[string]bool{},
		stop: make(chan struct{}),
	}, nil
}

// Start reads the price list and the state of before.
func (c *gpuCost) Start(ctx context.Context, host component.Host) error {
	if err := c.open(ctx, host, time.Now()); err != nil {
		return err
	}
	c.health.start(host, c.set.Logger)
	c.done = make(chan struct{})
	go c.run()
	return c.observe()
}

// open makes the accounts, or continues those that are stored.
func (c *gpuCost) open(ctx context.Context, host component.Host, now time.Time) error {
	var err error
	if c.prices, c.carbon, err = c.cfg.book(); err != nil {
		return err
	}
	c.pricing = pricing.New(c.prices, c.carbon)
	accounting, err := c.accounting()
	if err != nil {
		return err
	}
	accounting.PricedFrom = now.UnixMilli()
	c.ledger = ledger.New(accounting, now.UnixMilli())
	var restored []ledger.Total
	if c.cfg.Storage == nil {
		c.set.Logger.Warn("no storage is set: after a restart time, cost and energy are counted from 0 again, and time that passed meanwhile is in none of them")
	} else if restored, err = c.restore(ctx, host, accounting, now); err != nil {
		return err
	}
	c.intake = intake.New(c.reading(), c.ledger, now)
	c.stored = output.Books{Start: c.ledger.Start(), Totals: restored}
	c.written = output.New(metadata.ScopeName, c.set.BuildInfo.Version, c.cfg.Currency, restored)
	c.hours = output.Hours{Scope: metadata.ScopeName, Version: c.set.BuildInfo.Version, Currency: c.cfg.Currency}
	if c.carbon != nil {
		c.hours.Carbon = c.carbon.At
	}
	return nil
}

// restore continues with what is stored. What is invalid is logged and replaced.
func (c *gpuCost) restore(ctx context.Context, host component.Host, accounting ledger.Config, now time.Time) ([]ledger.Total, error) {
	s, state, damaged, err := openStore(ctx, host, c.cfg, c.set.ID)
	if damaged != nil {
		c.telemetry.GpuCostStoreFailures.Add(ctx, 1)
		c.set.Logger.Error("storage file is damaged, using a second one: counters may begin again at 0; remove the damaged file", zap.Error(damaged))
	}
	if err != nil {
		c.telemetry.GpuCostStoreFailures.Add(ctx, 1)
		return nil, err
	}
	c.store = s
	readings, err := s.readings(ctx)
	if err != nil {
		c.telemetry.GpuCostStoreFailures.Add(ctx, 1)
		return nil, err
	}
	if err := c.pricing.Restore(readings, now); err != nil {
		c.telemetry.GpuCostStoreFailures.Add(ctx, 1)
		c.set.Logger.Error("stored values of price_metric or carbon::from_metric cannot be used: what they are of has no price until they are reported again", zap.Error(err))
	}
	if len(state) == 0 {
		return nil, nil
	}
	l, err := s.decode(state, accounting)
	if err != nil {
		c.telemetry.GpuCostStoreFailures.Add(ctx, 1)
		c.set.Logger.Error("stored state cannot be used, starting with an empty one: counters begin again at 0, with a new start time", zap.Error(err))
		return nil, nil
	}
	c.ledger = l
	return l.Totals(), nil
}

// accounting is how the ledger accounts.
func (c *gpuCost) accounting() (ledger.Config, error) {
	budgets, err := prices.NewBudgets(c.cfg.Budgets)
	if err != nil {
		return ledger.Config{}, err
	}
	cfg := ledger.Config{
		AllocationTTL: c.cfg.AllocationTTL.Milliseconds(),
		Bridge:        c.cfg.Bridge.Milliseconds(),
		CloseAfter:    closeAfter.Milliseconds(), UnavailableFor: unavailableFor.Milliseconds(),
		Staleness:     c.cfg.Staleness.Milliseconds(),
		IdleThreshold: int64(c.cfg.IdleThreshold*1e6 + 0.5),
		IdleFor:       c.cfg.IdleFor.Milliseconds(),
		MaxRows:       c.cfg.MaxRows,
		MaxBoards:     c.cfg.MaxDevices,
		PerPod:        c.cfg.Per == PerPod,
		Budgets:       budgets,
		IdleWatts:     c.cfg.idleWatts(),
	}
	if c.prices != nil {
		cfg.Price = c.pricing.Price
	}
	if c.carbon != nil {
		cfg.Carbon = c.pricing.Carbon
	}
	return cfg, nil
}

// reading is how points are read.
func (c *gpuCost) reading() intake.Config {
	cfg := intake.Config{
		Tenant:   c.cfg.Tenant.From,
		MIGShare: c.cfg.MIGShare, MIGSlices: intake.ModelSlices(c.cfg.MIGSlices), VGPUShare: c.cfg.VGPUShare,
		MaxDevices: c.cfg.MaxDevices,
		Gauges:     c.pricing.Gauges(),
	}
	if c.prices != nil {
		cfg.NodeLabels = c.prices.Labels()
	}
	return cfg
}

// drainTime is how long Shutdown waits for the next components at most.
const drainTime = 10 * time.Second

// Shutdown stores and emits what was read.
func (c *gpuCost) Shutdown(ctx context.Context) (err error) {
	defer c.stopForwarding()
	if c.done != nil {
		close(c.stop)
		drain, cancel := context.WithTimeout(ctx, drainTime)
		defer cancel()
		context.AfterFunc(drain, c.stopForwarding)
		if err = forward.Ended(drain, c.done); err == nil {
			err = c.last
			if c.store != nil {
				err = errors.Join(err, c.store.close(ctx))
			}
		}
		c.health.stop()
	}
	c.telemetry.Shutdown()
	return err
}

// Capabilities implements connector.Metrics: they are only read.
func (*gpuCost) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeMetrics reads md. Senders of metrics cannot fix accounting, so it never returns an
// error.
func (c *gpuCost) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.intake.Read(md, time.Now())
	return nil
}
