// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// The collector makes one connector for each kind of output of one configuration, and
// gives each of them all metrics. They share one gpuCost, which reads them once.
var shared = struct {
	mu  sync.Mutex
	all map[*Config]*gpuCost
}{all: map[*Config]*gpuCost{}}

// port is the connector to the pipelines of one kind of output.
type port struct {
	*gpuCost
	cfg *Config
}

func newPort(cfg *Config, set connector.Settings) (*port, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	c := shared.all[cfg]
	if c == nil {
		var err error
		if c, err = newConnector(cfg, set); err != nil {
			return nil, err
		}
		shared.all[cfg] = c
	}
	p := &port{c, cfg}
	if c.feeder == nil {
		c.feeder = p
	}
	return p, nil
}

// Start starts what the outputs share, with the first of them.
func (p *port) Start(ctx context.Context, host component.Host) error {
	p.started.Do(func() { p.startErr = p.gpuCost.Start(ctx, host) })
	return p.startErr
}

// Shutdown ends what the outputs share with the first of them: all metrics were read then,
// and what follows each of them still runs.
func (p *port) Shutdown(ctx context.Context) (err error) {
	shared.mu.Lock()
	if shared.all[p.cfg] == p.gpuCost {
		delete(shared.all, p.cfg)
	}
	shared.mu.Unlock()
	p.stopped.Do(func() { err = p.gpuCost.Shutdown(ctx) })
	return err
}

// ConsumeMetrics reads md, if it is this output that does.
func (p *port) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	if p.feeder != p {
		return nil
	}
	return p.gpuCost.ConsumeMetrics(ctx, md)
}
