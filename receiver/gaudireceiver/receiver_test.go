// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gaudireceiver

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
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gaudireceiver/internal/gaudi"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gaudireceiver/internal/metadata"
)

func TestConfig(t *testing.T) {
	for name, c := range map[string]struct {
		keys map[string]any
		err  string
	}{
		"endpoint":   {map[string]any{"endpoints": []any{"http://localhost:41611/metrics"}}, ""},
		"own names":  {map[string]any{"endpoints": []any{"http://a:41611"}, "names": "exporter"}, ""},
		"kubernetes": {map[string]any{"kubernetes": map[string]any{"node_name": "n"}}, ""},
		"too often": {
			map[string]any{"endpoints": []any{"http://a:41611"}, "collection_interval": "5s"},
			"collection_interval: is 5s: use 10s to 5m0s",
		},
		"names of dcgm": {
			map[string]any{"endpoints": []any{"http://a:41611"}, "names": "dcgm"},
			`names: is "dcgm": use otel, exporter or both`,
		},
		"nothing": {map[string]any{}, "endpoints: is empty and kubernetes is not set: name the exporter (http://localhost:41611/metrics) or set kubernetes::node_name"},
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
	var metadata struct {
		Attributes map[string]struct{ Enum []string }
	}
	require.NoError(t, yaml.Unmarshal(text, &metadata))
	reasons := []string{}
	for reason := range (devicemap.Refused{}) {
		if r := devicemap.Reason(reason); r != devicemap.Sentinel && r != devicemap.Ambiguous { // the exporter has no such values and names
			reasons = append(reasons, gaudi.Vendor.Reason(devicemap.Reason(reason)))
		}
	}
	assert.Equal(t, reasons, metadata.Attributes["reason"].Enum)
	assert.Subset(t, metadata.Attributes["outcome"].Enum, []string{string(fetch.RateLimited), string(gaudi.Exporter.Other())})
}

// TestReceiver sends a page through the whole receiver over HTTP.
func TestReceiver(t *testing.T) {
	page, err := os.ReadFile("testdata/pages/gaudi2.prom")
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) }))
	defer server.Close()
	cfg := createDefaultConfig().(*Config)
	cfg.Endpoints, cfg.NodeName = []string{server.URL + "/metrics"}, "gaudi-7"
	require.NoError(t, cfg.Validate())
	cfg.CollectionInterval = time.Second // a test server has no limit
	scrapes := make(chan pmetric.Metrics, 1)
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		select {
		case scrapes <- md:
		default:
		}
		return nil
	})
	require.NoError(t, err)
	r, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, next)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, r.Shutdown(context.Background())) }()
	got := []any{}
	for _, rm := range (<-scrapes).ResourceMetrics().All() {
		if id, ok := rm.Resource().Attributes().Get(names.HwID); ok {
			node, _ := rm.Resource().Attributes().Get(names.K8sNodeName)
			got = append(got, id.Str()+" on "+node.Str())
		}
	}
	assert.Equal(t, []any{"GAUDI-AN00000001 on gaudi-7", "GAUDI-AN00000002 on gaudi-7"}, got)
}
