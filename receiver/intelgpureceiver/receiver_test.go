// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intelgpureceiver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/intelgpureceiver/internal/metadata"
)

// scrapeOnce runs the receiver against an exporter until it has emitted something, and
// returns that and the log.
func scrapeOnce(t *testing.T, status int, body string, change func(*Config)) (pmetric.Metrics, *observer.ObservedLogs) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8") // as 1.x does
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	cfg := createDefaultConfig().(*Config)
	cfg.Endpoints, cfg.CollectionInterval, cfg.NodeName = []string{server.URL + "/metrics"}, time.Second, "node-a"
	if change != nil {
		change(cfg)
	}
	require.NoError(t, cfg.Validate())
	set := receivertest.NewNopSettings(metadata.Type)
	core, logs := observer.New(zap.InfoLevel)
	set.Logger = zap.New(core)
	first := make(chan pmetric.Metrics, 1)
	sink, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		select {
		case first <- md:
		default:
		}
		return nil
	})
	require.NoError(t, err)
	r, err := NewFactory().CreateMetrics(t.Context(), set, cfg, sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, r.Shutdown(context.Background())) }()
	select {
	case md := <-first:
		return md, logs
	case <-time.After(30 * time.Second):
		t.Fatal("no scrape within 30 s")
		return pmetric.Metrics{}, nil
	}
}

func ids(md pmetric.Metrics) (all []string) {
	for _, rm := range md.ResourceMetrics().All() {
		if id, ok := rm.Resource().Attributes().Get(names.HwID); ok {
			all = append(all, id.Str())
		}
	}
	return all
}

func TestScrape(t *testing.T) {
	page, err := os.ReadFile("testdata/pages/xpum1-flex140.prom")
	require.NoError(t, err)
	md, _ := scrapeOnce(t, http.StatusOK, string(page), nil)
	assert.Equal(t, []string{"PCI-node-a@0000:4d:00.0", "PCI-node-a@0000:51:00.0"}, ids(md))

	raw, _ := scrapeOnce(t, http.StatusOK, string(page), func(c *Config) { c.Names = "exporter" })
	found := false
	for _, rm := range raw.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			found = found || m.Name() == "xpum_engine_ratio"
			assert.NotEqual(t, names.HwPower.Name, m.Name())
		}
	}
	assert.True(t, found)
}

// TestStarting: 1.x answers 500 with a comment while it starts.
func TestStarting(t *testing.T) {
	md, logs := scrapeOnce(t, http.StatusInternalServerError, "#nodata: failed to get devices (1)", nil)
	assert.Empty(t, ids(md))
	assert.NotEmpty(t, logs.FilterField(zap.String("remedy", exporter.Remedies["http_status"])).All())
}
