// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// An application cannot speak for the GPUs of others: what it sends under the
// agent's names goes no further, and what it sends beside that does.
func TestApplicationsCannotForgeGPUTelemetry(t *testing.T) {
	t.Parallel()
	api, _ := nodeA(t)
	c, gateway, apps := startAgent(t, api, nil)
	url := fmt.Sprintf("http://%s:%d/v1/", collector.Loopback, c.Ports.OTLPHTTP)
	now := strconv.FormatInt(time.Now().UnixNano(), 10)
	post := func(signal, body string) {
		resp, err := http.Post(url+signal, "application/json", strings.NewReader(body))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	resource := func(who string) string {
		return `"resource": {"attributes": [
			{"key": "case", "value": {"stringValue": "` + who + `"}},
			{"key": "k8s.namespace.name", "value": {"stringValue": "inference"}},
			{"key": "k8s.pod.name", "value": {"stringValue": "llama-6b8d5c9f7d-k2x9p"}}]}`
	}
	metric := func(name string) string {
		return `{"name": "` + name + `", "gauge": {"dataPoints": [{"timeUnixNano": "` + now + `", "asDouble": 0.5}]}}`
	}
	post("metrics", `{"resourceMetrics": [{`+resource("both")+`, "scopeMetrics": [{"metrics": [`+
		strings.Join([]string{metric("hw.gpu.utilization"), metric("gpu.allocation"), metric("hw.power"), metric("hw_gpu_utilization_ratio"), metric("gpu/service/partial"), metric("DCGM_FI_DEV_GPU_UTIL"), metric("dcgm.dev_fan_speed"), metric("_hw.gpu.utilization"), metric(".hw.gpu.temperature"), metric("-gpu.service.partial"), metric("device:gpu_xid_errors:max"), metric("otelcol_exporter_webhook_receiver_disabled"), metric("up"), metric("ALERTS"), metric("inference.server.requests"), metric("inference_gateway_requests"), metric("http.server.requests"), metric("gpus.wanted"), metric("gpu_cache_usage_perc")}, ",")+`]}]}]}`)
	record := func(event, attribute string) string {
		return `[{"timeUnixNano": "` + now + `", "eventName": "` + event + `", "body": {"stringValue": "x"},
			"attributes": [{"key": "` + attribute + `", "value": {"stringValue": "0195"}}]}]`
	}
	post("logs", `{"resourceLogs": [{`+resource("forged")+`, "scopeLogs": [{"logRecords": `+record("gpu.xid", "session.id")+`}]},
		{`+resource("honest")+`, "scopeLogs": [{"logRecords": `+record("session.start", "session.id")+`}]}]}`)

	var metrics, cases []string
	require.Eventually(t, func() bool {
		metrics, cases = nil, nil
		for _, r := range apps.Resources() {
			metrics = append(metrics, r.Metrics...)
			cases = append(cases, r.Attributes["case"])
		}
		return slices.Contains(metrics, "http.server.requests") && slices.Contains(cases, "honest")
	}, patience, 50*time.Millisecond)
	assert.ElementsMatch(t, []string{"http.server.requests", "gpus.wanted", "gpu_cache_usage_perc"}, metrics)
	assert.NotContains(t, cases, "forged")
	for _, r := range gateway.Resources() {
		assert.Empty(t, r.Attributes["case"], "the pipeline of GPUs takes nothing from applications")
	}
}
