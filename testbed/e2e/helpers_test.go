// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

const root = "../.."

type m = map[string]any

// binary is the path of a program that `make build` made.
func binary(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "bin", name))
	require.NoError(t, err)
	require.FileExists(t, path, "run make build")
	return path
}

func config(name string) string { return filepath.Join(root, "config", name) }

// start runs a collector on free ports with these configurations and a last one
// on top, until the test ends. It must then stop without an error.
func start(t *testing.T, overlay m, env []string, configs ...string) *collector.Collector {
	t.Helper()
	ports, err := collector.FreePorts()
	require.NoError(t, err)
	moved, err := json.Marshal(ports.Overlay())
	require.NoError(t, err)
	top, err := json.Marshal(overlay)
	require.NoError(t, err)
	configs = append(configs, "yaml:"+string(moved), "yaml:"+string(top))
	c, err := collector.Start(collector.Options{
		Binary: binary(t, "otelcol-gpu"), Configs: configs, Env: env,
		LogPath: filepath.Join(t.TempDir(), "collector.log"), Ports: ports,
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, c.Stop())
		if t.Failed() {
			t.Log(log(t, c))
		}
	})
	require.NoError(t, c.WaitReady(t.Context()))
	return c
}

// patience is how long a test waits for what should be there soon: a busy machine is slow.
const patience = 3 * time.Minute

// fromAgents is merged onto standalone.yaml where it replaces a gateway: one
// without Kubernetes, and without devices of its own.
const fromAgents = `yaml:{receivers: {otlp/apps: {protocols: {grpc: {endpoint: "127.0.0.1:0"}}}}, service: {pipelines: {` +
	`metrics: {receivers: [otlp]}, logs/events: {receivers: [gpu_events, otlp]}, metrics/apps: {receivers: [otlp/apps]}}}}`

func log(t *testing.T, c *collector.Collector) string {
	t.Helper()
	text, err := os.ReadFile(c.LogPath)
	require.NoError(t, err)
	return string(text)
}

// eventually scrapes the collector's Prometheus exporter until ok is content.
func eventually(t *testing.T, c *collector.Collector, what string, ok func(map[string]*dto.MetricFamily) bool) map[string]*dto.MetricFamily {
	t.Helper()
	return scraped(t, c, what, c.Metrics, ok)
}

// ownEventually waits for something in the collector's metrics about itself.
func ownEventually(t *testing.T, c *collector.Collector, what string, ok func(map[string]*dto.MetricFamily) bool) {
	t.Helper()
	scraped(t, c, what, c.OwnMetrics, ok)
}

// scraped reads a page in the test's own goroutine, where a condition may end the test.
func scraped(
	t *testing.T, c *collector.Collector, what string, read func(context.Context) (map[string]*dto.MetricFamily, error), ok func(map[string]*dto.MetricFamily) bool,
) map[string]*dto.MetricFamily {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		families, err := read(t.Context())
		if err == nil && ok(families) {
			return families
		}
		select {
		case <-c.Exited():
			require.NoError(t, c.Died(), what)
		default:
		}
		if time.Now().After(deadline) {
			require.FailNow(t, fmt.Sprintf("not within %v: %s", patience, what), "%v", err)
		}
	}
}

// find returns the samples of a family that have all of these labels
// (name, value, name, value …).
func find(f *dto.MetricFamily, labels ...string) []*dto.Metric {
	var found []*dto.Metric
	for _, metric := range f.GetMetric() {
		matches := true
		for i := 0; i < len(labels); i += 2 {
			matches = matches && collector.Label(metric, labels[i]) == labels[i+1]
		}
		if matches {
			found = append(found, metric)
		}
	}
	return found
}

// serve answers on a free loopback port until the test ends.
func serve(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", collector.Loopback+":0")
	require.NoError(t, err)
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return "http://" + l.Addr().String()
}

// fleet serves a simulated fleet on free ports and returns its exporters' URLs.
func fleet(t *testing.T, cfg gpusim.Config) (f *gpusim.Fleet, s *exporters.Server, endpoints []string) {
	t.Helper()
	f, err := gpusim.New(cfg, time.Now)
	require.NoError(t, err)
	s, err = exporters.Serve(f, collector.Loopback, 0)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	for _, node := range f.Nodes() {
		endpoints = append(endpoints, s.URL(node))
	}
	return f, s, endpoints
}

// sample is a real page from beside the checkout; the test skips without it.
func sample(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(root, "..", "shared", "data", "dcgm", name)
	if _, err := os.Stat(path); err != nil {
		t.Skip("no real samples beside this checkout")
	}
	return path
}

// lines are the log's lines that contain text.
func lines(log, text string) []string {
	var found []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}
