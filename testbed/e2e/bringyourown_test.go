// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/otlp"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// quiet is the demo's fleet without its script.
func quiet() gpusim.Config {
	cfg := gpusim.Demo(gpusim.DemoTimes())
	cfg.Faults = nil
	return cfg
}

// backend is where the user's own Collector sends, and the overlay that makes it do so
// by OTLP/HTTP instead of gRPC.
func backend(t *testing.T, metrics ...string) (*otlp.Sink, m) {
	t.Helper()
	sink := &otlp.Sink{}
	to := m{"exporters": []string{"otlp_http"}}
	return sink, m{
		"exporters": m{"otlp_http": otlp.Exporter(serve(t, sink))},
		"service":   m{"pipelines": m{"metrics": m{"exporters": append([]string{"otlp_http"}, metrics...)}, "logs": to, "traces": to}},
	}
}

// A Collector without a component of ours takes what our agent sends: every
// device with its owner on, a free one with none, and events as logs.
func TestBringYourOwnCollector(t *testing.T) {
	t.Parallel()
	const name = "bring-your-own-collector.yaml"
	text, err := os.ReadFile(config(name))
	require.NoError(t, err)
	assert.NotRegexp(t, `(?m)^ *(gpu_[a-z]+|dcgm|webhook)(/[a-z]+)?:`, string(text), "nothing of ours")
	f, _, endpoints := fleet(t, quiet())
	sink, overlay := backend(t)
	theirs := start(t, overlay, []string{"BACKEND_ENDPOINT=localhost:1"}, config(name))
	apis, ports := nodes(t, f, endpoints, 1)
	start(t, m{"receivers": m{
		"gpu_allocation": m{"socket": filepath.Join(t.TempDir(), "kubelet.sock")},
		"dcgm":           m{"kubernetes": m{"port": ports[0]}, "collection_interval": "1s"},
	}}, agentEnv(t, apis[0], grpcOf(theirs)), config("agent.yaml"))

	llama := []string{"k8s_pod_name", "llama-6b8d5c9f7d-k2x9p", "service_name", "llama", "k8s_namespace_name", "inference", "k8s_cluster_name", "test-cluster", "k8s_node_name", "gpu-node-a"}
	families := eventually(t, theirs, "four devices, two of them llama's", func(f map[string]*dto.MetricFamily) bool {
		return len(f["hw_gpu_memory_usage_bytes"].GetMetric()) == 4 && len(find(f["hw_gpu_memory_usage_bytes"], llama...)) == 2
	})
	assert.Len(t, find(families["hw_gpu_memory_usage_bytes"], "k8s_pod_name", ""), 2, "free ones are nobody's")
	assert.NotContains(t, families, "target_info")

	_, err = f.StartFault(gpusim.Fault{Node: "gpu-node-a", Kind: gpusim.XID, Device: "0", Code: 79})
	require.NoError(t, err)
	device := f.TruthAt(f.Start()).Nodes[0].Devices[0].ID
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(sink.Resources(), func(r otlp.Resource) bool {
			return r.Signal == otlp.Logs && r.Attributes["hw.id"] == device && r.Attributes["k8s.node.name"] == "gpu-node-a"
		})
	}, patience, 200*time.Millisecond, "the event is a log record of the device")
}

// Our components in a pipeline that has other things to do: devices, averages and
// events come, and what is not ours goes through as it was.
func TestBringYourOwnPipeline(t *testing.T) {
	t.Parallel()
	f, server, endpoints := fleet(t, quiet())
	page := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "# TYPE yours gauge\nyours{pod=\"a\"} 1\n")
	}))
	target, err := url.Parse(page)
	require.NoError(t, err)
	sink, overlay := backend(t, "gpu_events")
	overlay["receivers"] = m{"dcgm": m{"endpoints": endpoints, "collection_interval": "1s", "exporter_interval": "1s"}}
	overlay["processors"] = m{"gpu_summary": quick}
	theirs := start(t, overlay, []string{"BACKEND_ENDPOINT=localhost:1", "SCRAPE_TARGET=" + target.Host, "SCRAPE_INTERVAL=1s"}, config("bring-your-own-pipeline.yaml"))
	mine := map[string]string{"service.name": "shop", "k8s.namespace.name": "web", "k8s.pod.name": "shop-0", "team": "blue"}
	require.NoError(t, otlp.Post(t.Context(), fmt.Sprintf("http://%s:%d", collector.Loopback, theirs.Ports.OTLPHTTP), otlp.Metrics, mine))

	has := func(signal otlp.Signal, metric string, attributes map[string]string) func() bool {
		return func() bool {
			return slices.ContainsFunc(sink.Resources(), func(r otlp.Resource) bool {
				for k, v := range attributes {
					if r.Attributes[k] != v {
						return false
					}
				}
				return r.Signal == signal && (metric == "" || slices.Contains(r.Metrics, metric))
			})
		}
	}
	wait := func(what string, ok func() bool) {
		t.Helper()
		require.Eventually(t, ok, patience, 200*time.Millisecond, what)
	}
	wait("a device and its holder", has(otlp.Metrics, "hw.gpu.utilization", map[string]string{"k8s.pod.name": "llama-6b8d5c9f7d-k2x9p", "service.name": "llama", "deployment.environment.name": "production"}))
	wait("averages", has(otlp.Metrics, "gpu.service.utilization", map[string]string{"service.name": "llama"}))
	wait("the scrape", has(otlp.Metrics, "yours", map[string]string{"service.name": "yours"}))
	expected := maps.Clone(mine)
	expected["deployment.environment.name"] = "production"
	wait("the application", has(otlp.Metrics, "test", expected))
	for _, r := range sink.Resources() {
		if slices.Contains(r.Metrics, "test") {
			assert.Equal(t, expected, r.Attributes)
		}
	}
	_, err = f.StartFault(gpusim.Fault{Node: "gpu-node-a", Kind: gpusim.ExporterDown})
	require.NoError(t, err)
	server.Reconcile()
	wait("an event", has(otlp.Logs, "", map[string]string{"service.name": "llama"}))
	assert.NotContains(t, log(t, theirs), "deprecated")
}

// A server that scrapes the exporters already gives their names to the dcgm
// receiver: devices, owners and averages are as if it had scraped them itself.
func TestBringYourOwnPrometheus(t *testing.T) {
	t.Parallel()
	const query = `{__name__=~"(DCGM|dcgm)_.*"}`
	for name, from := range map[string]func(t *testing.T, endpoints []string) (page string){
		// As a ServiceMonitor has it: the target's own pod is a label, and what the
		// page has about pods is renamed.
		"a Prometheus server": func(t *testing.T, endpoints []string) string {
			var jobs strings.Builder
			for i, e := range endpoints {
				u, err := url.Parse(e)
				require.NoError(t, err)
				fmt.Fprintf(&jobs, "      - {targets: [%q], labels: {namespace: gpu-operator, pod: nvidia-dcgm-exporter-x%dk2p, container: nvidia-dcgm-exporter}}\n", u.Host, i)
			}
			server := startPrometheus(t, "global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: nvidia-dcgm-exporter\n    static_configs:\n"+jobs.String())
			return server + "/federate?match[]=" + url.QueryEscape(query)
		},
		"a Collector": func(t *testing.T, endpoints []string) string {
			var targets []string
			for _, e := range endpoints {
				u, err := url.Parse(e)
				require.NoError(t, err)
				targets = append(targets, u.Host)
			}
			c := start(t, m{
				"receivers": m{"prometheus": m{"config": m{"scrape_configs": []m{{"job_name": "dcgm", "scrape_interval": "1s", "static_configs": []m{{"targets": targets}}}}}}},
				"exporters": m{"prometheus": m{"translation_strategy": "UnderscoreEscapingWithoutSuffixes"}},
				"service":   m{"pipelines": m{"metrics": m{"receivers": []string{"otlp", "prometheus"}}, "metrics/prometheus": m{"receivers": []string{"prometheus"}, "processors": []string{}}}},
			}, []string{"BACKEND_ENDPOINT=localhost:1"}, config("bring-your-own-collector.yaml"))
			return fmt.Sprintf("http://%s:%d/metrics", collector.Loopback, c.Ports.Prometheus)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _, endpoints := frozenFleet(t)
			page := from(t, endpoints)
			c := start(t, m{"receivers": m{"dcgm": m{"collection_interval": "1s"}}, "processors": m{"gpu_summary": quick}},
				[]string{"DCGM_PAGE_URL=" + page}, config("standalone.yaml"), config("bring-your-own-prometheus.yaml"))
			truth := f.TruthAt(f.Start())
			var families map[string]*dto.MetricFamily
			missing := func(ctx context.Context) (odd []string) {
				var err error
				if families, err = c.Metrics(ctx); err != nil {
					return []string{err.Error()}
				}
				for _, n := range truth.Nodes {
					for _, d := range n.Devices {
						got := find(families["hw_gpu_memory_usage_bytes"], "hw_id", d.ID)
						if len(got) != 1 || collector.Value(got[0]) != float64(d.MemoryUsedMiB<<20) || collector.Label(got[0], "k8s_pod_name") != d.Pod {
							odd = append(odd, fmt.Sprintf("%s of %q: %v", d.ID, d.Pod, got))
						}
					}
				}
				for _, s := range truth.Services {
					got := find(families["gpu_service_utilization_ratio"], "k8s_namespace_name", s.Namespace, "service_name", s.Name)
					if len(got) != 1 || collector.Value(got[0])-s.Utilization > 0.005 || s.Utilization-collector.Value(got[0]) > 0.005 {
						odd = append(odd, fmt.Sprintf("%s: %v", s.Name, got))
					}
				}
				return odd
			}
			var odd []string
			ok := assert.Eventually(t, func() bool { odd = missing(t.Context()); return len(odd) == 0 }, patience, 500*time.Millisecond)
			if !ok {
				t.Log(strings.Join(odd, "\n"))
			}
			for _, metric := range families["gpu_pod_state"].GetMetric() {
				assert.NotRegexp(t, regexp.MustCompile("dcgm-exporter"), collector.Label(metric, "k8s_pod_name"), "the exporter holds nothing")
			}
		})
	}
}
