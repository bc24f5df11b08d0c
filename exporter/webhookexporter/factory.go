// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadata"
)

// NewFactory creates the factory of the webhook exporter.
//
// The exporter does not use exporterhelper. Its queue and retry work on whole
// requests: one queue in front of all endpoints would let a slow one delay the
// others, and a retry would send again to endpoints that already accepted. It emits
// exporterhelper's metrics and takes its configuration keys all the same.
func NewFactory() exporter.Factory {
	return exporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		exporter.WithLogs(createLogs, metadata.LogsStability),
	)
}

func createDefaultConfig() component.Config {
	return &Config{AllowPorts: []int{80, 443}, Retry: delivery.DefaultRetry(), ReplayEvents: defaultReplayEvents}
}

func createLogs(_ context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
	return newExporter(set, cfg.(*Config), environment{})
}
