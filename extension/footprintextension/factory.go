// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package footprintextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/footprintextension"

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/otelcol-gpu/otelcol-gpu/extension/footprintextension/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/extension/footprintextension/internal/pages"
)

// NewFactory creates the factory of the footprint extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(metadata.Type, createDefaultConfig, create, metadata.ExtensionStability)
}

func create(_ context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
	return &footprint{config: *cfg.(*Config), logger: set.Logger, release: pages.Release}, nil
}
