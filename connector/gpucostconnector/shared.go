// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/sharedcomponent"
)

// The collector makes one connector for each kind of output of one configuration, and
// gives each of them all metrics. They share one gpuCost, which reads them once.
var shared sharedcomponent.Map[*gpuCost]

// port is the connector to the pipelines of one kind of output.
type port struct {
	*gpuCost
	shared *sharedcomponent.Shared[*gpuCost]
}

func newPort(cfg *Config, set connector.Settings) (*port, error) {
	s, err := shared.Get(cfg, func() (*gpuCost, error) { return newConnector(cfg, set) })
	if err != nil {
		return nil, err
	}
	p := &port{s.Component, s}
	if p.feeder == nil {
		p.feeder = p
	}
	return p, nil
}

// Start starts what the outputs share, with the first of them.
func (p *port) Start(ctx context.Context, host component.Host) error {
	return p.shared.Start(ctx, host)
}

// Shutdown ends what the outputs share with the first of them: all metrics were read then,
// and what follows each of them still runs.
func (p *port) Shutdown(ctx context.Context) error { return p.shared.Shutdown(ctx) }

// ConsumeMetrics reads md, if it is this output that does.
func (p *port) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	if p.feeder != p {
		return nil
	}
	return p.gpuCost.ConsumeMetrics(ctx, md)
}
