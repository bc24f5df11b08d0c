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
		connector.WithLogsToLogs(createLogsToLogs, metadata.LogsToLogsStability),
		connector.WithLogsToMetrics(createLogsToMetrics, metadata.LogsToMetricsStability),
	)
}

func createMetricsToLogs(
	_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs,
) (connector.Metrics, error) {
	return newToLogs(cfg.(*Config), set, next, fromMetrics)
}

func createMetricsToMetrics(
	_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics,
) (connector.Metrics, error) {
	return newToMetrics(cfg.(*Config), set, next, fromMetrics)
}

func createLogsToLogs(
	_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs,
) (connector.Logs, error) {
	return newToLogs(cfg.(*Config), set, next, fromLogs)
}

func createLogsToMetrics(
	_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics,
) (connector.Logs, error) {
	return newToMetrics(cfg.(*Config), set, next, fromLogs)
}
