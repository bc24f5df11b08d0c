// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ncclconnector

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
// nccl, which reads it once.
var shared sharedcomponent.Map[*nccl]

// input is what an output gets.
type input uint8

const (
	fromLogs input = iota
	fromMetrics
	inputs
)

// output is the connector from the pipelines of one kind of input to those of one kind of
// output.
type output struct {
	*nccl
	shared *sharedcomponent.Shared[*nccl]
	from   input
}

func newOutput(cfg *Config, set connector.Settings, from input) (*output, error) {
	s, err := shared.Get(cfg, func() (*nccl, error) { return newConnector(cfg, set) })
	if err != nil {
		return nil, err
	}
	o := &output{s.Component, s, from}
	if o.feeders[from] == nil {
		o.feeders[from] = o
	}
	return o, nil
}

func newToLogs(cfg *Config, set connector.Settings, next consumer.Logs, from input) (*output, error) {
	o, err := newOutput(cfg, set, from)
	if err != nil {
		return nil, err
	}
	o.toLogs = next
	return o, nil
}

func newToMetrics(cfg *Config, set connector.Settings, next consumer.Metrics, from input) (*output, error) {
	o, err := newOutput(cfg, set, from)
	if err != nil {
		return nil, err
	}
	o.publishTo(next)
	return o, nil
}

// Start starts what the outputs share, with the first of them.
func (o *output) Start(ctx context.Context, host component.Host) error {
	return o.shared.Start(ctx, host)
}

// Shutdown ends what the outputs share with the first of them that gets logs: then what
// follows each of them still runs, and all lines were read.
func (o *output) Shutdown(ctx context.Context) error {
	if o.from != fromLogs && o.feeders[fromLogs] != nil {
		return nil
	}
	return o.shared.Shutdown(ctx)
}

// ConsumeMetrics reads md, if it is this output that does.
func (o *output) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	if o.feeders[fromMetrics] == o {
		o.readMetrics(md)
	}
	return nil
}

// ConsumeLogs reads logs, if it is this output that does.
func (o *output) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	if o.feeders[fromLogs] == o {
		o.readLogs(ctx, logs)
	}
	return nil
}
