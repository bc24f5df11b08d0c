// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intelgpureceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/intelgpureceiver/internal/intel"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/intelgpureceiver/internal/metadata"
)

// NewFactory returns the factory of the intel_gpu receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithMetrics(createMetrics, metadata.MetricsStability),
	)
}

// exporter is XPU Manager. Its pods have the label app=intel-xpumanager (1.x) or
// app.kubernetes.io/name=xpumd (2.x).
var exporter = scrape.Exporter{
	Exporter: intel.Exporter, OwnNames: scrape.NamesExporter,
	IntervalOption: "how often XPU Manager reads its GPUs", Pods: intel.Pods,
	OtherPorts: []int{intel.Port1},
}

func createMetrics(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	own, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	c := cfg.(*Config)
	e := exporter
	e.Vendor = intel.NewVendor(c.node(), c.host())
	return scrape.NewReceiver(&e, set, &c.Config, scrape.Telemetry{
		Devices: own.IntelGpuReceiverDevices, RowsRefused: own.IntelGpuReceiverRowsRefused, Scrapes: own.IntelGpuReceiverScrapes,
		Unknown: own.IntelGpuReceiverUnknownFields, Shutdown: own.Shutdown,
	}, metadata.ScopeName, next)
}
