// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// gate lets a benchmark wait for what it sent.
type gate chan struct{}

func (g gate) Write(*audit.Record) { g <- struct{}{} }

// BenchmarkDelivery measures the way of a delivery through the exporter, storage
// included; the network is a server on loopback, or none. The heap has the size of
// a collector's, so that the result does not depend on what else is in this package:
// the small heap of a test would be collected far more often.
func BenchmarkDelivery(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(100 << 20))
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	for _, receivers := range []int{1, 10, 100} {
		for _, stored := range []bool{false, true} {
			for _, network := range []bool{false, true} {
				b.Run(fmt.Sprintf("receivers=%d/storage=%t/network=%t", receivers, stored, network), func(b *testing.B) {
					benchmarkDelivery(b, server.URL, receivers, stored, network)
				})
			}
		}
	}
}

func benchmarkDelivery(b *testing.B, url string, receivers int, stored, network bool) {
	cfg := createDefaultConfig().(*Config)
	cfg.AllowCIDRs = []string{"127.0.0.0/8"}
	cfg.Receivers = map[string]endpoint.Config{}
	for i := range receivers {
		cfg.Receivers[fmt.Sprint("r", i)] = to(url)
	}
	h := host{}
	if stored {
		disk := fileStorage(b, b.TempDir())
		defer func() { require.NoError(b, disk.Extension.Shutdown(context.Background())) }()
		cfg.Storage = &diskID
		h[diskID] = disk
	}
	set := exportertest.NewNopSettings(metadata.Type)
	set.ID = component.NewID(metadata.Type)
	set.TelemetrySettings = componenttest.NewNopTelemetrySettings()
	done := make(gate, 1000)
	env := environment{sinks: []audit.Sink{done}}
	if !network {
		env.transport = &nowhere{}
	}
	e, err := newExporter(set, cfg, env)
	require.NoError(b, err)
	require.NoError(b, e.Start(context.Background(), h))
	b.ReportAllocs()
	b.ResetTimer()
	for sent, id := 0, 0; sent < b.N; {
		const batch = 10
		for range batch {
			id++ // an event that came before would have no delivery
			if err := e.ConsumeLogs(context.Background(), keyed(fmt.Sprint(id))); err != nil {
				b.Fatal(err)
			}
		}
		for range batch * receivers {
			<-done
			sent++
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
	require.NoError(b, e.Shutdown(context.Background()))
}

// nowhere takes everything at once.
type nowhere struct{ stuck }

func (nowhere) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}, nil
}
