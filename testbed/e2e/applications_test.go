// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/otlp"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// An agent that starts while the API server is away is ready, delivers GPU
// telemetry under its pods, logs what it lacks, and invents no service; the service
// comes with the API server.
func TestAgentStartsWithoutAnAPIServer(t *testing.T) {
	t.Parallel()
	api, port := nodeA(t)
	free, err := collector.Free(1)
	require.NoError(t, err)
	address := net.JoinHostPort(collector.Loopback, strconv.Itoa(free[0])) // nothing listens
	gateway := &otlp.Sink{}
	agent := start(t, m{
		"receivers": m{
			"gpu_allocation": m{"socket": filepath.Join(t.TempDir(), "kubelet.sock")},
			"dcgm": m{
				"kubernetes": nil, "node_name": api.Node(), "endpoints": []string{fmt.Sprintf("http://%s:%d/metrics", collector.Loopback, port)},
				"collection_interval": "1s",
			},
		},
		"exporters": m{"otlp_http": otlp.Exporter(serve(t, gateway))},
		"service": m{"pipelines": m{
			"metrics": m{"exporters": []string{"otlp_http", "gpu_events"}}, "logs/events": m{"exporters": []string{"otlp_http"}},
		}},
	}, []string{
		"K8S_NODE_NAME=" + api.Node(), "GATEWAY_ENDPOINT=localhost:1", "K8S_AUTH_TYPE=kubeConfig", "KUBECONFIG=" + kubeconfigOf(t, "http://"+address),
	}, config("agent.yaml"))
	held := func(ok func(attributes map[string]string) bool) func() bool {
		return func() bool {
			return slices.ContainsFunc(gateway.Resources(), func(r otlp.Resource) bool {
				return r.Attributes["hw.id"] != "" && r.Attributes["k8s.pod.name"] == "llama-6b8d5c9f7d-k2x9p" && ok(r.Attributes)
			})
		}
	}
	require.Eventually(t, held(func(a map[string]string) bool { return a["k8s.container.name"] == "vllm" }), patience, 100*time.Millisecond)
	assert.False(t, held(func(a map[string]string) bool { _, has := a["service.name"]; return has })(), "no service is invented")
	require.Eventually(t, func() bool { return len(lines(log(t, agent), address)) > 0 }, patience, 100*time.Millisecond, "the log names what does not answer")

	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	server := &http.Server{Handler: api, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	require.Eventually(t, held(func(a map[string]string) bool { return a["service.name"] == "llama-70b" }), patience, 100*time.Millisecond)
}

// A pod that answers a scrape by a redirect makes the agent fetch nothing else.
func TestScrapesFollowNoRedirect(t *testing.T) {
	t.Parallel()
	var followed atomic.Int64
	elsewhere := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
	pod, err := url.Parse(serve(t, http.RedirectHandler(elsewhere+"/internal/metrics?secret=1", http.StatusFound)))
	require.NoError(t, err)
	api := kubeapi.New("node-1")
	api.AddPod("apps", "engine-0", m{"annotations": m{"otelcol-gpu.io/scrape": "true", "otelcol-gpu.io/port": pod.Port()}}, pod.Hostname())
	apps := &otlp.Sink{}
	start(t, m{
		"receivers": m{"gpu_allocation": m{"socket": filepath.Join(t.TempDir(), "kubelet.sock")}},
		"exporters": m{"otlp_http/apps": otlp.Exporter(serve(t, apps))},
		"service":   m{"pipelines": m{"metrics/inference": m{"exporters": []string{"otlp_http/apps"}}}},
	}, append(agentEnv(t, api, "localhost:1"), "APPS_ENDPOINT=localhost:1", "INFERENCE_INTERVAL=1s"), config("agent.yaml"), config("inference.yaml"))
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(apps.Resources(), func(r otlp.Resource) bool { return slices.Contains(r.Metrics, "up") })
	}, patience, 100*time.Millisecond, "it was scraped")
	assert.Zero(t, followed.Load())
}

// Where applications are refused request by request, the log stays one that can be
// read: fifty lines a minute at most, and none with a stack.
func TestRefusedApplicationsDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	api := kubeapi.New("node-1")
	agent := start(t, m{
		"receivers": m{"gpu_allocation": m{"socket": filepath.Join(t.TempDir(), "kubelet.sock")}},
		"exporters": m{"otlp_grpc/apps": m{"sending_queue": m{"queue_size": 4000, "batch": m{"min_size": 1, "max_size": 2000}}}},
	}, append(agentEnv(t, api, "localhost:1"), "APPS_ENDPOINT=localhost:1"), config("agent.yaml"), config("applications.yaml"))
	address := fmt.Sprintf("http://%s:%d", collector.Loopback, agent.Ports.OTLPHTTP)
	resources := make([]map[string]string, 8)
	for i := range resources {
		resources[i] = map[string]string{"service.name": strings.Repeat("s", 40)}
	}
	refused, began := 0, time.Now()
	for range 400 {
		if otlp.Post(t.Context(), address, otlp.Metrics, resources...) != nil {
			refused++
		}
	}
	require.Greater(t, refused, 300, "the queue is full")
	text := log(t, agent)
	assert.NotEmpty(t, lines(text, "Rejecting data"), "it is logged")
	minutes := int(time.Since(began)/time.Minute) + 2 // that it began in, and that it ended in
	assert.LessOrEqual(t, len(lines(text, "Rejecting data")), 50*minutes, "fifty a minute")
	assert.NotContains(t, text, "exporterhelper.", "no stacks")
}

// What is behind a full memory still leaves: a gateway that refuses all metrics
// takes an agent's event and hands it on.
func TestEventsLeaveWhileMetricsAreRefused(t *testing.T) {
	t.Parallel()
	gateway := start(t, m{
		"processors": m{"gpu_summary": m{"expected_pods": "seen"}, "memory_limiter": m{"limit_mib": 2}},
		"exporters":  m{"debug/events": m{"verbosity": "detailed"}},
	}, nil, config("gateway.yaml"))
	address := fmt.Sprintf("http://%s:%d", collector.Loopback, gateway.Ports.OTLPHTTP)
	require.Eventually(t, func() bool {
		return otlp.Post(t.Context(), address, otlp.Metrics, map[string]string{"hw.id": "GPU-1"}) != nil
	}, patience, 100*time.Millisecond, "the memory is full")
	body := `{"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": "1", "eventName": "gpu.xid",
		"body": {"stringValue": "from an agent"}, "attributes": [{"key": "gpu.event.id", "value": {"stringValue": "018f"}}]}]}]}]}`
	response, err := http.Post(address+"/v1/logs", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusOK, response.StatusCode)
	require.Eventually(t, func() bool { return strings.Contains(log(t, gateway), "from an agent") }, patience, 100*time.Millisecond)
}

// A backend behind the gateway that hangs, its exporter's queue full, costs nothing
// in front of it: the agent's fresh data goes on, no pod turns missing, no event is raised.
func TestABackendThatHangsLeavesTheSummaryWhole(t *testing.T) {
	t.Parallel()
	released := make(chan struct{})
	mine := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-released }))
	defer close(released) // before the collectors end
	f, _, endpoints := frozenFleet(t)
	apis, ports := nodes(t, f, endpoints, 1)
	summary := maps.Clone(quick)
	summary["expected_pods"] = "seen"
	summary["staleness"] = "10s" // on a busy machine no pod is silent for so long
	// As docs/existing-collector.md has it.
	gateway := start(t, m{
		"processors": m{"gpu_summary": summary},
		"connectors": m{"best_effort/mine": nil},
		"exporters":  m{"otlp_http/mine": m{"endpoint": mine, "timeout": "10m", "sending_queue": m{"num_consumers": 1, "queue_size": 1}}},
		"service": m{"pipelines": m{
			"metrics":      m{"exporters": []string{"best_effort/prometheus", "gpu_events", "gpu_cost", "best_effort/mine"}},
			"metrics/mine": m{"receivers": []string{"best_effort/mine"}, "exporters": []string{"otlp_http/mine"}},
		}},
	}, nil, config("gateway.yaml"))
	start(t, m{
		"receivers": m{
			"gpu_allocation": m{"socket": filepath.Join(t.TempDir(), "kubelet.sock")},
			"dcgm":           m{"kubernetes": m{"port": ports[0]}, "collection_interval": "1s", "frozen_after": never},
		},
	}, agentEnv(t, apis[0], grpcOf(gateway)), config("agent.yaml"))

	first, missing, began := 0.0, 0.0, time.Time{}
	pods := func(f *dto.MetricFamily, state string) (sum float64) {
		for _, series := range find(f, "gpu_pod_state", state) {
			sum += collector.Value(series)
		}
		return sum
	}
	eventually(t, gateway, "pods report and the backend refuses one batch after another", func(families map[string]*dto.MetricFamily) bool {
		if missing = pods(families["gpu_service_pods"], "missing"); missing > 0 {
			return true
		}
		own, err := gateway.OwnMetrics(t.Context())
		refused := 0.0
		for _, series := range own["otelcol_exporter_enqueue_failed_metric_points"].GetMetric() {
			refused += collector.Value(series)
		}
		if first == 0 {
			first, began = refused, time.Now() // pods that got nothing since would be missing after 10 s
		}
		return err == nil && first > 0 && refused >= 8*first && time.Since(began) > 15*time.Second && pods(families["gpu_service_pods"], "reporting") > 0
	})
	assert.Zero(t, missing)
	assert.Empty(t, lines(log(t, gateway), "gpu.service."), "events")
}

// The exporter of applications is the same wherever it stands.
func TestTheExporterOfApplicationsIsOne(t *testing.T) {
	t.Parallel()
	assert.Equal(t, shipped(t, "applications.yaml").Exporters["otlp_grpc/apps"], shipped(t, "inference.yaml").Exporters["otlp_grpc/apps"])
	assert.NotContains(t, shipped(t, "agent.yaml").Receivers, "otlp", "an agent takes nothing unless asked to")
}
