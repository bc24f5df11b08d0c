// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// The collector makes one connector for each kind of input and output, of one
// configuration, and gives each of them all that there is of its input. They share one
// gpuEvents, which reads it once.
var shared = struct {
	mu  sync.Mutex
	all map[*Config]*gpuEvents
}{all: map[*Config]*gpuEvents{}}

// input is what an output gets.
type input uint8

const (
	fromMetrics input = iota
	fromLogs
	inputs
)

// output is the connector from the pipelines of one kind of input to those of one kind of
// output.
type output struct {
	*gpuEvents
	cfg  *Config
	from input
}

// share returns the gpuEvents of a configuration.
func share(cfg *Config, set connector.Settings) (*gpuEvents, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if c := shared.all[cfg]; c != nil {
		return c, nil
	}
	c, err := newConnector(cfg, set)
	if err == nil {
		shared.all[cfg] = c
	}
	return c, err
}

func newToLogs(cfg *Config, set connector.Settings, next consumer.Logs, from input) (*output, error) {
	c, err := share(cfg, set)
	if err != nil {
		return nil, err
	}
	o := &output{c, cfg, from}
	c.next, c.feeders[from] = next, o
	return o, nil
}

func newToMetrics(cfg *Config, set connector.Settings, next consumer.Metrics, from input) (*output, error) {
	c, err := share(cfg, set)
	if err != nil {
		return nil, err
	}
	o := &output{c, cfg, from}
	c.publishTo(next)
	if c.feeders[from] == nil {
		c.feeders[from] = o
	}
	return o, nil
}

// Start starts what the outputs share, with the first of them.
func (o *output) Start(ctx context.Context, host component.Host) error {
	o.started.Do(func() { o.startErr = o.gpuEvents.Start(ctx, host) })
	return o.startErr
}

// Shutdown ends what the outputs share with the first of them that gets metrics: then what
// follows each of them still runs, and all metrics were read.
func (o *output) Shutdown(ctx context.Context) (err error) {
	if o.from != fromMetrics && o.feeders[fromMetrics] != nil {
		return nil
	}
	shared.mu.Lock()
	if shared.all[o.cfg] == o.gpuEvents {
		delete(shared.all, o.cfg)
	}
	shared.mu.Unlock()
	o.stopped.Do(func() { err = o.gpuEvents.Shutdown(ctx) })
	return err
}

// ConsumeMetrics reads md, if it is this output that does.
func (o *output) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	if o.feeders[fromMetrics] != o {
		return nil
	}
	return o.gpuEvents.ConsumeMetrics(ctx, md)
}

// ConsumeLogs reads logs, if it is this output that does.
func (o *output) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	if o.feeders[fromLogs] != o {
		return nil
	}
	return o.gpuEvents.ConsumeLogs(ctx, logs)
}
