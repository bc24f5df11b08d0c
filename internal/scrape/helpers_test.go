// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap/devicemaptest"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

// acme is an invented exporter.
var acme = Exporter{
	Exporter: fetch.Exporter{Type: "acme", Program: "acme-exporter", Port: 5000},
	Vendor:   &devicemaptest.Acme, OwnNames: "exporter", IntervalOption: "its option -interval", Pods: ".*acme-exporter.*",
}

func defaultConfig() Config {
	return Config{
		CollectionInterval: 15 * time.Second, Names: NamesOTel, Unmapped: UnmappedKeep, FrozenAfter: 5, ExporterInterval: 30 * time.Second,
		MaxLabels: fetch.DefaultMaxLabels, MaxLabelBytes: fetch.DefaultMaxLabelBytes,
	}
}

const goodPage = `# TYPE acme_load gauge
acme_load{gpu="0",UUID="A-0",modelName="Acme 1"} 50
`

// own are a receiver's own metrics.
func own(t *testing.T, telemetry *componenttest.Telemetry) Telemetry {
	t.Helper()
	meter := telemetry.NewTelemetrySettings().MeterProvider.Meter("acme")
	var own Telemetry
	var err error
	own.Devices, err = meter.Int64UpDownCounter("acme_devices")
	require.NoError(t, err)
	own.RowsRefused, err = meter.Int64Counter("acme_rows_refused")
	require.NoError(t, err)
	own.Scrapes, err = meter.Int64Counter("acme_scrapes")
	require.NoError(t, err)
	own.Unknown, err = meter.Int64UpDownCounter("acme_unknown_fields")
	require.NoError(t, err)
	own.Shutdown = func() {}
	return own
}

func serveFunc(t *testing.T, f http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return server
}
