// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

var nanos = regexp.MustCompile(`imeUnixNano":"(\d+)"`)

// recorded is what an agent sent, with its last time moved to now.
func recorded(t *testing.T, name string, now time.Time) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "older-agent", name))
	require.NoError(t, err)
	number := func(text string) int64 {
		n, err := strconv.ParseInt(nanos.FindStringSubmatch(text)[1], 10, 64)
		require.NoError(t, err)
		return n
	}
	var last int64
	for _, found := range nanos.FindAllString(string(text), -1) {
		last = max(last, number(found))
	}
	return nanos.ReplaceAllStringFunc(string(text), func(found string) string {
		return fmt.Sprintf(`imeUnixNano":"%d"`, number(found)+now.UnixNano()-last)
	})
}

// Agents are replaced after the gateway, one by one: what an agent of the version
// before has sent (testdata/older-agent: a simulated node with three GPUs, two of
// them owned by one pod, after XID 79) means the same to this gateway.
func TestGatewayTakesAnOlderAgent(t *testing.T) {
	t.Parallel()
	c := start(t, m{
		"receivers":  m{"otlp/apps": m{"protocols": m{"grpc": m{"endpoint": collector.Loopback + ":0"}}}},
		"processors": m{"gpu_summary": m{"expected_pods": "seen", "interval": "1s", "initial_interval": "1s", "warmup": "2s", "staleness": "4s"}},
	}, nil, config("gateway.yaml"))
	post := func(signal string) {
		url := fmt.Sprintf("http://%s:%d/v1/%s", collector.Loopback, c.Ports.OTLPHTTP, signal)
		resp, err := http.Post(url, "application/json", strings.NewReader(recorded(t, signal+".json", time.Now())))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	post("logs")
	page := eventually(t, c, "the service's average", func(f map[string]*dto.MetricFamily) bool {
		post("metrics")
		return len(find(f["gpu_service_utilization_ratio"], "service_name", "llama", "k8s_namespace_name", "inference")) == 1
	})
	owned := []string{"service_name", "llama", "k8s_pod_name", "llama-6b8d5c9f7d-k2x9p", "k8s_node_name", "gpu-node-a"}
	for family, series := range map[string]int{"hw_gpu_utilization_ratio": 6 /* by task */, "hw_gpu_memory_usage_bytes": 2, "hw_energy_joules_total": 2, "gpu_xid_errors_total": 1} {
		assert.Len(t, find(page[family], owned...), series, family)
	}
	for family, value := range map[string]float64{"gpu_exporter_up": 1, "gpu_exporter_frozen": 0} {
		if series := find(page[family]); assert.Len(t, series, 1, family) {
			assert.Equal(t, value, collector.Value(series[0]), family)
		}
	}
	for _, family := range []string{"gpu_service_partial", "gpu_service_pods_missing"} {
		for _, series := range find(page[family], "service_name", "llama") {
			assert.Zero(t, collector.Value(series), family)
		}
	}

	var answer struct {
		Events []map[string]any `json:"events"`
	}
	require.Eventually(t, func() bool {
		_, body, err := get(t.Context(), fmt.Sprintf("http://%s:%d/api/v1/events", collector.Loopback, c.Ports.Console))
		return err == nil && json.Unmarshal(body, &answer) == nil && len(answer.Events) > 0
	}, patience, 100*time.Millisecond, "the agent's event")
	require.Len(t, answer.Events, 1, "none of its own, of which the agent sent nothing")
	assert.Contains(t, fmt.Sprint(answer.Events[0]), "gpu.xid")
	assert.Empty(t, lines(log(t, c), "\terror\t"))
}
