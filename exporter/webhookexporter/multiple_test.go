// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Two exporters of one Collector may have a receiver of the same name, and all
// have the same audit metrics: each figure is that of all of them together, not
// of whichever was asked last.
func TestFiguresOfTwoExportersAddUp(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	for range 2 {
		cfg := createDefaultConfig().(*Config)
		cfg.Receivers = only(to("https://hooks.example.com"))
		set := exportertest.NewNopSettings(metadata.Type)
		set.TelemetrySettings = tel.NewTelemetrySettings()
		e, err := newExporter(set, cfg, environment{transport: stuck{}})
		require.NoError(t, err)
		now, cancel := context.WithCancel(context.Background())
		cancel()
		t.Cleanup(func() { require.NoError(t, e.Shutdown(now)) })
		require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
		for range 3 { // of one key: the first is on its way, the others wait
			require.NoError(t, e.ConsumeLogs(t.Context(), partial(eventrecord.NewID(), names.EventRaised)))
		}
	}
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		m, err := tel.GetMetric("otelcol_exporter_webhook_queue_length")
		require.NoError(t, err)
		data, ok := m.Data.(metricdata.Sum[int64])
		require.True(t, ok, "%T", m.Data)
		require.Len(t, data.DataPoints, 1)
		assert.EqualValues(t, 4, data.DataPoints[0].Value)
		assert.False(t, data.IsMonotonic)
	}, patience, 5*time.Millisecond)
}
