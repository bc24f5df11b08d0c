// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gaudireceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gaudireceiver/internal/gaudi"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gaudireceiver/internal/metadata"
)

// NewFactory returns the factory of the gaudi receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithMetrics(createMetrics, metadata.MetricsStability),
	)
}

// exporter is Intel's Gaudi metric exporter. Its pods have the label
// app.kubernetes.io/name=metric-exporter-ds, or habana-ai, as all pods of the operator
// that runs it.
var exporter = scrape.Exporter{
	Exporter: gaudi.Exporter, Vendor: &gaudi.Vendor, OwnNames: scrape.NamesExporter,
	IntervalOption: "how often the exporter answers", MinInterval: 10 * time.Second,
	Pods: gaudi.Pods, SharedPods: gaudi.SharedPods,
}

func createMetrics(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	own, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return scrape.NewReceiver(&exporter, set, &cfg.(*Config).Config, scrape.Telemetry{
		Devices: own.GaudiReceiverDevices, RowsRefused: own.GaudiReceiverRowsRefused, Scrapes: own.GaudiReceiverScrapes,
		Unknown: own.GaudiReceiverUnknownFields, Shutdown: own.Shutdown,
	}, metadata.ScopeName, next)
}
