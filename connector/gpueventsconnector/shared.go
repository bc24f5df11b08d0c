// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/sharedcomponent"
)

// The collector makes one connector for each kind of input and output, of one
// configuration, and gives each of them all that there is of its input. They share one
// gpuEvents, which reads it once.
var shared sharedcomponent.Map[*gpuEvents]

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
	shared *sharedcomponent.Shared[*gpuEvents]
	from   input
}

func newOutput(cfg *Config, set connector.Settings, from input) (*output, error) {
	s, err := shared.Get(cfg, func() (*gpuEvents, error) { return newConnector(cfg, set) })
	if err != nil {
		return nil, err
	}
	return &output{s.Component, s, from}, nil
}

func newToLogs(cfg *Config, set connector.Settings, next consumer.Logs, from input) (*output, error) {
	o, err := newOutput(cfg, set, from)
	if err != nil {
		return nil, err
	}
	o.next, o.feeders[from] = next, o
	return o, nil
}

func newToMetrics(cfg *Config, set connector.Settings, next consumer.Metrics, from input) (*output, error) {
	o, err := newOutput(cfg, set, from)
	if err != nil {
		return nil, err
	}
	o.publishTo(next)
	if o.feeders[from] == nil {
		o.feeders[from] = o
	}
	return o, nil
}

// Start starts what the outputs share, with the first of them.
func (o *output) Start(ctx context.Context, host component.Host) error {
	return o.shared.Start(ctx, host)
}

// Shutdown ends what the outputs share with the first of them that gets metrics: then what
// follows each of them still runs, and all metrics were read.
func (o *output) Shutdown(ctx context.Context) error {
	if o.from != fromMetrics && o.feeders[fromMetrics] != nil {
		return nil
	}
	return o.shared.Shutdown(ctx)
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
