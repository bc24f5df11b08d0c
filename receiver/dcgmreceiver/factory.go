// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/dcgm"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/metadata"
)

// NewFactory returns the factory of the dcgm receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithMetrics(createMetrics, metadata.MetricsStability),
	)
}

// exporter is dcgm-exporter. Its pods have its name, with more or less around it, as
// those of gpu-operator, NVIDIA's chart and GKE do.
var exporter = scrape.Exporter{
	Exporter: dcgm.Exporter, Vendor: &dcgm.Vendor, OwnNames: NamesDCGM,
	IntervalOption: "the exporter's --collect-interval", Pods: ".*dcgm-exporter.*",
}

func createMetrics(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	own, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return scrape.NewReceiver(&exporter, set, &cfg.(*Config).Config, scrape.Telemetry{
		Devices: own.DcgmReceiverDevices, RowsRefused: own.DcgmReceiverRowsRefused, Scrapes: own.DcgmReceiverScrapes,
		Shutdown: own.Shutdown,
	}, metadata.ScopeName, next)
}
