// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package reloadonchangeextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/reloadonchangeextension"

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/otelcol-gpu/otelcol-gpu/extension/reloadonchangeextension/internal/metadata"
)

// NewFactory creates the factory of the reload_on_change extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(metadata.Type, createDefaultConfig, create, metadata.ExtensionStability)
}

func create(_ context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &watcher{config: *cfg.(*Config), logger: set.Logger, telemetry: telemetry, reload: hangUp}, nil
}
