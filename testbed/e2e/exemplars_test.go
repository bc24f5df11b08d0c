// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

const traceID, spanID = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174"

// requests are n requests of an application so far, in a histogram of half a
// second each, one of them with a trace; a tenth of them failed.
func requests(metric, failure string, n int, began string) m {
	point := func(count int, attributes ...m) m {
		return m{
			"startTimeUnixNano": began, "timeUnixNano": now(), "count": strconv.Itoa(count), "sum": float64(count) / 2,
			"explicitBounds": []float64{0.1, 1}, "bucketCounts": []string{"0", strconv.Itoa(count), "0"}, "attributes": attributes,
			"exemplars": []m{{"timeUnixNano": now(), "asDouble": 0.5, "traceId": traceID, "spanId": spanID}},
		}
	}
	name, value, _ := strings.Cut(failure, "=")
	return m{"name": metric, "unit": "s", "histogram": m{"aggregationTemporality": 2, "dataPoints": []m{
		point(9 * n), point(n, m{"key": name, "value": m{"stringValue": value}}),
	}}}
}

// An application's histograms reach every output under its pod's service, with
// the trace ids of their exemplars where the output has such, and raise the alerts
// that are templates for applications.
func TestApplicationMetrics(t *testing.T) {
	t.Parallel()
	api := kubeapi.New("node-1")
	api.AddPod("shop", "cart-0", m{"ownerReferences": owner("StatefulSet", "cart")}, collector.Loopback)
	prometheus := startPrometheus(t, "storage: {tsdb: {out_of_order_time_window: 10m}, exemplars: {max_exemplars: 1000}}\n", "--enable-feature=exemplar-storage")
	raw := start(t, nil, []string{"REMOTE_WRITE_URL=" + prometheus + "/api/v1/write"}, config("scale-out.yaml"))
	free, err := collector.Free(2)
	require.NoError(t, err)
	apps, exposed := fmt.Sprintf("%s:%d", collector.Loopback, free[0]), fmt.Sprintf("%s:%d", collector.Loopback, free[1])
	summary := maps.Clone(quick)
	summary["expected_pods"] = "seen"
	gateway := start(t, m{
		"processors": m{"gpu_summary": summary},
		"receivers":  m{"otlp/apps": m{"protocols": m{"grpc": m{"endpoint": apps}}}},
		"exporters":  m{"prometheus/apps": m{"endpoint": exposed, "enable_open_metrics": true}}, // docs/app-metrics.md
	}, nil, config("gateway.yaml"), config("gateway-applications.yaml"))
	agent := start(t, m{
		"receivers": m{"gpu_allocation": m{"socket": filepath.Join(t.TempDir(), "kubelet.sock")}},
		"exporters": m{"otlp_grpc/too": m{"endpoint": grpcOf(raw), "tls": m{"insecure": true}}},
		"service":   m{"pipelines": m{"metrics/apps": m{"exporters": []string{"otlp_grpc/apps", "otlp_grpc/too"}}}},
	}, append(agentEnv(t, api, grpcOf(gateway)), "APPS_ENDPOINT="+apps, "APPS_INSECURE=true"), config("agent.yaml"), config("applications.yaml"))

	began, n := now(), 0
	send := func() {
		n++
		post(t, agent, nil, requests("http.server.request.duration", "http.response.status_code=503", n, began))
		post(t, agent, nil, requests("gen_ai.server.request.duration", "error.type=timeout", n, began))
	}
	labels := []string{"service_name", "cart", "k8s_namespace_name", "shop", "k8s_pod_name", "cart-0", "k8s_cluster_name", "test-cluster"}
	is := func(series map[string]string) bool {
		for i := 0; i < len(labels); i += 2 {
			if series[labels[i]] != labels[i+1] {
				return false
			}
		}
		return true
	}
	store := fmt.Sprintf("http://%s:%d", collector.Loopback, gateway.Ports.Store)
	query := "/api/v1/query_exemplars?start=0&end=4000000000&query=" + url.QueryEscape("gen_ai_server_request_duration_seconds_bucket")
	exemplars := func(server string) (found int) {
		status, body, err := get(t.Context(), server+query)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status, "%s", body)
		var answer struct {
			Data []struct {
				SeriesLabels map[string]string
				Exemplars    []struct{ Labels map[string]string }
			}
		}
		require.NoError(t, json.Unmarshal(body, &answer))
		for _, series := range answer.Data {
			for _, e := range series.Exemplars {
				if is(series.SeriesLabels) && e.Labels["trace_id"] == traceID && e.Labels["span_id"] == spanID {
					found++
				}
			}
		}
		return found
	}
	require.Eventually(t, func() bool { send(); return exemplars(prometheus) > 0 }, patience, 500*time.Millisecond, "remote write")
	require.Eventually(t, func() bool {
		send()
		page := openMetrics(t, exposed)
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "gen_ai_server_request_duration_seconds_bucket{") && strings.Contains(line, `service_name="cart"`) &&
				strings.Contains(line, `# {span_id="`+spanID+`",trace_id="`+traceID+`"} 0.5`) {
				return true
			}
		}
		return false
	}, patience, 500*time.Millisecond, "the page, as OpenMetrics")
	assert.NotContains(t, plain(t, exposed), traceID, "the older format has no exemplars")
	assert.Zero(t, exemplars(store), "nor has the embedded store")

	for _, server := range []string{prometheus, store} {
		for _, name := range []string{"http", "gen_ai"} {
			expr := alert(t, "GPUAppErrorRate", name)
			require.Eventually(t, func() bool {
				send()
				vector, err := instant(t.Context(), server, expr)
				if err != nil || len(vector) != 1 {
					return false
				}
				rate := float64(vector[0].Value)
				return vector[0].Metric["service_name"] == "cart" && rate > 0.09 && rate < 0.11
			}, patience, 500*time.Millisecond, expr)
		}
		for _, quantile := range []string{"GPUAppLatencyP95", "GPUAppLatencyP99"} {
			// Half a second is not too long; that it is seen is the point.
			expr := strings.NewReplacer(" > 2 ", " > 0 ", " > 5 ", " > 0 ").Replace(alert(t, quantile, "http") + " ")
			require.Eventually(t, func() bool {
				vector, err := instant(t.Context(), server, expr)
				return err == nil && len(vector) == 1
			}, patience, 500*time.Millisecond, expr)
		}
	}
}

// alert is the expression of an alert, or of its half with this word.
func alert(t *testing.T, name, word string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "mixin", "rules", "alerts-inference.yaml"))
	require.NoError(t, err)
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &rules))
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Alert != name {
				continue
			}
			for half := range strings.SplitSeq(r.Expr, " or ") {
				if strings.Contains(half, word+"_server") {
					return half
				}
			}
		}
	}
	require.Fail(t, "no such alert", "%s of %s", name, word)
	return ""
}

func openMetrics(t *testing.T, address string) string {
	return page(t, address, "application/openmetrics-text; version=1.0.0")
}

func plain(t *testing.T, address string) string { return page(t, address, "text/plain") }

func page(t *testing.T, address, accept string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	require.NoError(t, err)
	r.Header.Set("Accept", accept)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(body)
}
