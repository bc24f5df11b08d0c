// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape"
	"github.com/otelcol-gpu/otelcol-gpu/internal/seendevices"
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
	settings := &cfg.(*Config).Config
	if next, err = noting(next, 3*settings.CollectionInterval); err != nil {
		return nil, err
	}
	return scrape.NewReceiver(&exporter, set, settings, scrape.Telemetry{
		Devices: own.DcgmReceiverDevices, RowsRefused: own.DcgmReceiverRowsRefused, Scrapes: own.DcgmReceiverScrapes,
		Unknown: own.DcgmReceiverUnknownFields, Shutdown: own.Shutdown,
	}, metadata.ScopeName, next)
}

// noting passes metrics on once the nvml receiver of this process, if there is one, can leave
// out what they contain.
func noting(next consumer.Metrics, lasts time.Duration) (consumer.Metrics, error) {
	return consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
		seendevices.Process.Emitted(md, time.Now(), lasts)
		return next.ConsumeMetrics(ctx, md)
	}, consumer.WithCapabilities(next.Capabilities()))
}
