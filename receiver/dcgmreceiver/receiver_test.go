// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/dcgm"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/metadata"
)

// TestAuthentication scrapes over TLS with a password, both by Prometheus' keys.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "scraper" || password != "hunter2" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(goodPage))
	}))
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))

	tls := map[string]any{"ca_file": ca}
	t.Run("right", func(t *testing.T) {
		t.Parallel()
		r := start(t, []string{server.URL}, func(c *Config) {
			c.Scrape = scrape.PrometheusConfig{"tls_config": tls, "basic_auth": map[string]any{"username": "scraper", "password": configopaque.String("hunter2")}}
		})
		r.await(fetch.OK, 1)
		for _, e := range r.logs.All() {
			assert.NotContains(t, logLine(e), "hunter2")
		}
	})
	t.Run("wrong password", func(t *testing.T) {
		t.Parallel()
		r := start(t, []string{server.URL}, func(c *Config) {
			c.Scrape = scrape.PrometheusConfig{"tls_config": tls, "basic_auth": map[string]any{"username": "scraper", "password": "hunter3"}}
		})
		r.await(fetch.Status, 1)
		assert.Equal(t, 1, contains(r.warnings(), "401", "scrape::basic_auth"))
		assert.Zero(t, contains(r.warnings(), "hunter3"))
	})
	t.Run("unknown authority", func(t *testing.T) {
		t.Parallel()
		r := start(t, []string{server.URL})
		r.await(fetch.TLS, 1)
		assert.Equal(t, 1, contains(r.warnings(), "x509"))
	})
}

// TestOwnTelemetry checks the receiver's figures about itself.
func TestOwnTelemetry(t *testing.T) {
	t.Parallel()
	a := serve(t, goodPage)
	b := serve(t, strings.ReplaceAll(goodPage, "GPU-0", "GPU-1"))
	r := start(t, []string{a.URL, b.URL})
	r.awaitTarget(a, 2, "a")
	r.awaitTarget(b, 2, "b")
	require.NoError(t, r.receiver.Shutdown(context.Background()))
	scrapes := r.count("scrapes")["outcome=ok"]
	assert.Equal(t, map[string]int64{"outcome=ok": scrapes}, r.count("scrapes"))
	assert.Equal(t, map[string]int64{"reason=no_sensor": scrapes}, r.count("rows_refused"))
	m, err := r.telemetry.GetMetric("otelcol_receiver_accepted_metric_points")
	require.NoError(t, err)
	assert.NotEmpty(t, m.Data)
}

// TestPipelineRefuses: an error of the next component is logged once and does not
// end the scrapes.
func TestPipelineRefuses(t *testing.T) {
	t.Parallel()
	server := serve(t, goodPage)
	r := start(t, []string{server.URL})
	r.refuseWith(errors.New("memory limit"))
	r.await(fetch.OK, 3)
	require.Eventually(t, func() bool { return contains(r.warnings(), "pipeline refuses metrics", "memory limit") == 1 }, patience, 20*time.Millisecond)
	assert.Len(t, r.warnings(), 1)
	r.refuseWith(nil)
	require.Eventually(t, func() bool { return r.logs.FilterMessage("pipeline accepts metrics again").Len() == 1 }, patience, 20*time.Millisecond)
	up, _ := r.last(server, "gpu.exporter.up")
	assert.Equal(t, 1.0, up)
}

func TestShutdownWithoutStart(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Endpoints = []string{"http://localhost:1"}
	r, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(t, err)
	assert.NoError(t, r.Shutdown(context.Background()))
}

// TestStartFails: files can go between validation and start.
func TestStartFails(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "key.pem")
	require.NoError(t, os.WriteFile(ca, nil, 0o600))
	cfg := createDefaultConfig().(*Config)
	cfg.Endpoints = []string{"http://localhost:1"}
	cfg.Scrape = scrape.PrometheusConfig{"tls_config": map[string]any{"cert_file": ca, "key_file": ca}}
	require.NoError(t, cfg.Validate())
	require.NoError(t, os.Remove(ca))
	r, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(t, err)
	assert.ErrorContains(t, r.Start(t.Context(), componenttest.NewNopHost()), "key.pem")
	assert.NoError(t, r.Shutdown(context.Background()))
}

// TestOutsideOfACluster: without a service account there is no API to ask.
func TestOutsideOfACluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	cfg := createDefaultConfig().(*Config)
	cfg.Kubernetes = &scrape.KubernetesConfig{NodeName: "a"}
	require.NoError(t, cfg.Validate())
	r, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(t, err)
	assert.ErrorContains(t, r.Start(t.Context(), componenttest.NewNopHost()), "set kubernetes::kubeconfig_file")
	assert.NoError(t, r.Shutdown(context.Background()))
}

// TestEndpoint: path and query of an endpoint arrive.
func TestEndpoint(t *testing.T) {
	t.Parallel()
	var asked atomic.Value
	server := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.URL.String())
		_, _ = w.Write([]byte(goodPage))
	})
	r := start(t, []string{server.URL + "/gpu/metrics?collect=a&collect=b"}, func(c *Config) { c.NodeName, c.ClusterName = "node-a", "prod" })
	r.await(fetch.OK, 1)
	assert.Equal(t, "/gpu/metrics?collect=a&collect=b", asked.Load())
}

// TestFamiliesWithoutType sends every name of every field without HELP and TYPE:
// no suffix may be cut off.
func TestFamiliesWithoutType(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	names := 0
	for _, f := range dcgm.Table.Fields {
		for i, name := range append([]string{f.Name}, f.Aliases...) {
			if f.Label == "" && f.Name != "DCGM_FI_DEV_FB_FREE" { // that one alone makes no series
				names++
				fmt.Fprintf(&page, "%s{UUID=\"GPU-%03d-%d\"} 1\n", name, names, i)
			}
		}
	}
	got := scrapeOnce(t, []byte(page.String()))
	assert.Empty(t, got.refused)
	devices := 0
	for _, line := range got.lines {
		if strings.HasPrefix(line, "resource ") {
			devices++
		}
		assert.False(t, strings.HasPrefix(line, "dcgm."), line)
	}
	assert.Equal(t, names, devices)
}
