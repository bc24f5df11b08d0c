// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/metadata"
)

// gpuCost is the connector.
type gpuCost struct {
	metrics   consumer.Metrics // nil: no pipeline takes metrics
	logs      consumer.Logs    // nil: none takes the rows of hours
	telemetry *metadata.TelemetryBuilder

	feeder   *output // the one that reads
	started  sync.Once
	startErr error
	stopped  sync.Once
}

var _ connector.Metrics = (*gpuCost)(nil)

func newConnector(_ *Config, set connector.Settings) (*gpuCost, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &gpuCost{telemetry: telemetry}, nil
}

// Start implements component.Component.
func (c *gpuCost) Start(context.Context, component.Host) error { return nil }

// Shutdown implements component.Component.
func (c *gpuCost) Shutdown(context.Context) error {
	c.telemetry.Shutdown()
	return nil
}

// Capabilities implements connector.Metrics: they are only read.
func (*gpuCost) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeMetrics reads md.
func (c *gpuCost) ConsumeMetrics(context.Context, pmetric.Metrics) error { return nil }
