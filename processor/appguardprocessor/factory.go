// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package appguardprocessor // import "github.com/otelcol-gpu/otelcol-gpu/processor/appguardprocessor"

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-gpu/otelcol-gpu/processor/appguardprocessor/internal/metadata"
)

// NewFactory returns the factory of the app_guard processor.
func NewFactory() processor.Factory {
	return processor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		processor.WithMetrics(createMetrics, metadata.MetricsStability),
		processor.WithLogs(createLogs, metadata.LogsStability),
		processor.WithTraces(createTraces, metadata.TracesStability),
	)
}

func createMetrics(
	_ context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics,
) (processor.Metrics, error) {
	b, err := newBase(cfg.(*Config), set)
	if err != nil {
		return nil, err
	}
	return &metricsProcessor{base: b, next: next}, nil
}

func createLogs(
	_ context.Context, set processor.Settings, cfg component.Config, next consumer.Logs,
) (processor.Logs, error) {
	b, err := newBase(cfg.(*Config), set)
	if err != nil {
		return nil, err
	}
	return &logsProcessor{base: b, next: next}, nil
}

func createTraces(
	_ context.Context, set processor.Settings, cfg component.Config, next consumer.Traces,
) (processor.Traces, error) {
	b, err := newBase(cfg.(*Config), set)
	if err != nil {
		return nil, err
	}
	return &tracesProcessor{base: b, next: next}, nil
}
