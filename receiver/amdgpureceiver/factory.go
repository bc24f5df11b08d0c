// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amdgpureceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/amdgpureceiver/internal/amd"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/amdgpureceiver/internal/metadata"
)

// NewFactory returns the factory of the amd_gpu receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithMetrics(createMetrics, metadata.MetricsStability),
	)
}

// exporter is AMD's Device Metrics Exporter. Its chart and AMD's GPU operator give its
// pods the label app.kubernetes.io/name=metrics-exporter.
func (c *SourceConfig) exporter(vendor *devicemap.Vendor) *scrape.Exporter {
	e := scrape.Exporter{
		Exporter: amd.Exporter, Vendor: vendor, OwnNames: scrape.NamesExporter,
		IntervalOption: "for how long the exporter caches its readings", Pods: amd.Pods,
	}
	if c.Source == SourceSysfs {
		e.Exporter, e.Local = driver(e.Exporter), &scrape.Local{}
	}
	return &e
}

func createMetrics(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	own, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	c := cfg.(*Config)
	host := gpusysfs.New(c.SysfsRoot)
	e := c.exporter(amd.NewVendor(host.Snapshot))
	if e.Local != nil {
		e.Local = local(host, set.Logger, own.AmdGpuReceiverFilesUnread)
	}
	r, err := scrape.NewReceiver(e, set, &c.Config, scrape.Telemetry{
		Devices: own.AmdGpuReceiverDevices, RowsRefused: own.AmdGpuReceiverRowsRefused, Scrapes: own.AmdGpuReceiverScrapes,
		Unknown: own.AmdGpuReceiverUnknownFields, Shutdown: own.Shutdown,
	}, metadata.ScopeName, next)
	if err != nil {
		return nil, err
	}
	return &withHost{Receiver: r, host: host}, nil
}
