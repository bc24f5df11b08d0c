// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amdgpureceiver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/amdgpureceiver/internal/amd"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/amdgpureceiver/internal/metadata"
)

func TestConfig(t *testing.T) {
	for name, c := range map[string]struct {
		keys map[string]any
		err  string
	}{
		"endpoint":   {map[string]any{"endpoints": []any{"http://localhost:5000/metrics"}}, ""},
		"own names":  {map[string]any{"endpoints": []any{"http://a:5000"}, "names": "exporter"}, ""},
		"both":       {map[string]any{"endpoints": []any{"http://a:5000"}, "names": "both", "unmapped": "drop"}, ""},
		"kubernetes": {map[string]any{"kubernetes": map[string]any{"node_name": "n"}}, ""},
		"names of dcgm": {
			map[string]any{"endpoints": []any{"http://a:5000"}, "names": "dcgm"},
			`names: is "dcgm": use otel, exporter or both`,
		},
		"nothing": {map[string]any{}, "endpoints: is empty and kubernetes is not set: name the exporter (http://localhost:5000/metrics) or set kubernetes::node_name"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			require.NoError(t, cfg.Unmarshal(confmap.NewFromStringMap(c.keys)))
			if err := cfg.Validate(); c.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.err)
			}
		})
	}
}

// TestOwnMetrics: the attributes of the receiver's own metrics can be what the shared
// machinery counts under.
func TestOwnMetrics(t *testing.T) {
	text, err := os.ReadFile("metadata.yaml")
	require.NoError(t, err)
	var own struct {
		Attributes map[string]struct{ Enum []string }
	}
	require.NoError(t, yaml.Unmarshal(text, &own))
	reasons := []string{}
	for reason := range (devicemap.Refused{}) {
		switch devicemap.Reason(reason) {
		case devicemap.Sentinel, devicemap.Ambiguous: // the exporter has no such values and names
		default:
			reasons = append(reasons, amd.NewVendor(nil).Reason(devicemap.Reason(reason)))
		}
	}
	assert.ElementsMatch(t, reasons, own.Attributes["reason"].Enum)
	assert.Contains(t, own.Attributes["outcome"].Enum, string(amd.Exporter.Other()))
}

// run serves a page to a receiver until it has scraped it, and returns the ids of the
// devices, gpu.exporter.up, and what was logged.
func run(t *testing.T, page []byte, change ...func(*Config)) (ids []string, up int64, logs *observer.ObservedLogs) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) }))
	defer server.Close()
	cfg := createDefaultConfig().(*Config)
	cfg.Endpoints, cfg.CollectionInterval, cfg.SysfsRoot = []string{server.URL + "/metrics"}, time.Second, t.TempDir()
	for _, f := range change {
		f(cfg)
	}
	require.NoError(t, cfg.Validate())
	scrapes := make(chan pmetric.Metrics, 1)
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		select {
		case scrapes <- md:
		default:
		}
		return nil
	})
	require.NoError(t, err)
	core, logs := observer.New(zap.InfoLevel)
	set := receivertest.NewNopSettings(metadata.Type)
	set.Logger = zap.New(core)
	r, err := NewFactory().CreateMetrics(t.Context(), set, cfg, next)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	md := <-scrapes
	require.NoError(t, r.Shutdown(context.Background()))
	for _, rm := range md.ResourceMetrics().All() {
		if id, ok := rm.Resource().Attributes().Get(names.HwID); ok {
			ids = append(ids, id.Str())
			continue
		}
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			if m.Name() == names.ExporterUp.Name {
				up = m.Sum().DataPoints().At(0).IntValue()
			}
		}
	}
	return ids, up, logs
}

// remedies are those of all messages that were logged.
func remedies(logs *observer.ObservedLogs) (all []string) {
	for _, entry := range logs.All() {
		if remedy, ok := entry.ContextMap()["remedy"].(string); ok {
			all = append(all, remedy)
		}
	}
	return all
}

// TestReceiver sends pages through the whole receiver over HTTP.
func TestReceiver(t *testing.T) {
	read := func(name string) []byte {
		page, err := os.ReadFile("testdata/pages/" + name + ".prom")
		require.NoError(t, err)
		return page
	}
	ids, up, logs := run(t, read("exporter-1.5-mi300x"))
	assert.Equal(t, []string{"GPU-a1b2c3d4e5f60718", "GPU-a2b2c3d4e5f60718"}, ids)
	assert.EqualValues(t, 1, up)
	assert.Empty(t, remedies(logs))

	// The exporter counts 16 devices, and has no row of one of them.
	ids, up, logs = run(t, read("exporter-1.4-cpx"))
	assert.Len(t, ids, 17)
	assert.EqualValues(t, 1, up)
	assert.Equal(t, []string{amd.Exporter.Missing}, remedies(logs))

	ids, up, logs = run(t, read("exporter-1.3-guest"))
	assert.Empty(t, ids)
	assert.Zero(t, up)
	require.Len(t, remedies(logs), 1)
	assert.Contains(t, remedies(logs)[0], "add GPU_UUID to GPUConfig.Labels")

	// One board has a uuid, and another one nothing.
	some := append(read("exporter-1.5-mi300x"), `gpu_average_package_power{gpu_id="7"} 90`+"\n"...)
	ids, up, logs = run(t, some)
	assert.Len(t, ids, 2)
	assert.EqualValues(t, 1, up)
	assert.Equal(t, []string{amd.Exporter.NoIdentity}, remedies(logs))

	// What the exporter prints while its agent does not answer.
	_, up, logs = run(t, []byte("# TYPE promhttp_metric_handler_requests_total counter\npromhttp_metric_handler_requests_total{code=\"200\"} 7\n"))
	assert.Zero(t, up)
	require.Len(t, remedies(logs), 1)
	assert.Contains(t, remedies(logs)[0], "its agent")

	_, up, logs = run(t, []byte("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 7\n"))
	assert.Zero(t, up)
	assert.Contains(t, strings.Join(remedies(logs), ""), "this is the page of another program")
}

// TestOwnNames: with names: exporter, families, values and labels are the exporter's own.
func TestOwnNames(t *testing.T) {
	page := []byte(`gpu_package_power{gpu_uuid="ccff74a1-0000-1000-80e0-c6d49f5b0d86",team="search"} 412` + "\n")
	ids, _, _ := run(t, page, func(c *Config) { c.Names = "exporter" })
	assert.Equal(t, []string{"GPU-cce0c6d49f5b0d86"}, ids)
}
