// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gputrainingprocessor

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gputrainingprocessor/internal/metadata"
)

// NewFactory returns the factory of the gpu_training processor.
func NewFactory() processor.Factory {
	return processor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		processor.WithMetrics(createMetrics, metadata.MetricsStability),
	)
}

func createMetrics(_ context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
	c, ok := cfg.(*Config)
	if !ok {
		return nil, fmt.Errorf("%s: configuration is a %T, not a *Config", set.ID, cfg)
	}
	return newProcessor(set, c, next)
}
