// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

// A source on this machine is scraped as an exporter is, and says nothing where there is
// nothing.
func TestLocal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var there atomic.Bool
		local := acme
		local.Local = &Local{Name: "sysfs", Page: func(_ context.Context, memory []byte) ([]byte, error) {
			if !there.Load() {
				return memory, ErrAbsent
			}
			return append(memory[:0], goodPage...), nil
		}}
		telemetry := componenttest.NewTelemetry()
		cfg := defaultConfig()
		require.NoError(t, cfg.Check(&local))
		var sink consumertest.MetricsSink
		r, err := NewReceiver(&local, receivertest.NewNopSettings(receivertest.NopType), &cfg, own(t, telemetry), "scope", &sink)
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Empty(t, sink.AllMetrics())
		_, err = telemetry.GetMetric("acme_scrapes")
		require.Error(t, err)

		there.Store(true)
		time.Sleep(cfg.CollectionInterval)
		synctest.Wait()
		require.Len(t, sink.AllMetrics(), 1)
		exporter := sink.AllMetrics()[0].ResourceMetrics().At(0).Resource().Attributes().AsRaw()
		assert.Equal(t, map[string]any{"server.address": "sysfs"}, exporter)
		assert.Equal(t, 2, sink.AllMetrics()[0].ResourceMetrics().Len())
		require.NoError(t, r.Shutdown(t.Context()))
	})
}
