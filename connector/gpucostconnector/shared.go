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

// output is the connector to the pipelines of one kind of output.
type output struct {
	*gpuCost
	cfg *Config
}

func newOutput(cfg *Config, set connector.Settings) (*output, error) {
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
	o := &output{c, cfg}
	if c.feeder == nil {
		c.feeder = o
	}
	return o, nil
}

// Start starts what the outputs share, with the first of them.
func (o *output) Start(ctx context.Context, host component.Host) error {
	o.started.Do(func() { o.startErr = o.gpuCost.Start(ctx, host) })
	return o.startErr
}

// Shutdown ends what the outputs share with the first of them: all metrics were read then,
// and what follows each of them still runs.
func (o *output) Shutdown(ctx context.Context) (err error) {
	shared.mu.Lock()
	if shared.all[o.cfg] == o.gpuCost {
		delete(shared.all, o.cfg)
	}
	shared.mu.Unlock()
	o.stopped.Do(func() { err = o.gpuCost.Shutdown(ctx) })
	return err
}

// ConsumeMetrics reads md, if it is this output that does.
func (o *output) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	if o.feeder != o {
		return nil
	}
	return o.gpuCost.ConsumeMetrics(ctx, md)
}
