// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/metadata"
)

// NewFactory returns the factory of the gpu_events connector.
func NewFactory() connector.Factory {
	return connector.NewFactory(
		metadata.Type,
		createDefaultConfig,
		connector.WithMetricsToLogs(createMetricsToLogs, metadata.MetricsToLogsStability),
		connector.WithMetricsToMetrics(createMetricsToMetrics, metadata.MetricsToMetricsStability),
	)
}

func createMetricsToLogs(
	_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs,
) (connector.Metrics, error) {
	return newToLogs(cfg.(*Config), set, next)
}

func createMetricsToMetrics(
	_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics,
) (connector.Metrics, error) {
	return newToMetrics(cfg.(*Config), set, next)
}
