// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/metadata"
)

// nvml is a receiver of this host's boards.
type nvml struct {
	cfg  *Config
	set  receiver.Settings
	own  *metadata.TelemetryBuilder
	next consumer.Metrics
}

func newReceiver(set receiver.Settings, cfg *Config, own *metadata.TelemetryBuilder, next consumer.Metrics) (*nvml, error) {
	return &nvml{cfg: cfg, set: set, own: own, next: next}, nil
}

// Start implements component.Component.
func (r *nvml) Start(context.Context, component.Host) error { return nil }

// Shutdown implements component.Component.
func (r *nvml) Shutdown(context.Context) error {
	r.own.Shutdown()
	return nil
}
