// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// workload is a pod, and what its engine serves where.
type workload struct {
	name        string
	service     string // as its labels state; "" where it must not be scraped
	image       string
	container   string // default: server
	ports       []corev1.ContainerPort
	annotations map[string]string
	labels      map[string]string
	gpu         bool
	elsewhere   bool   // on another node
	engine      string // that its series name

	tls  bool
	port int    // where it serves
	path string // default: /metrics
	page string // of testdata
}

func ports(named ...any) (all []corev1.ContainerPort) {
	for i := 0; i < len(named); i += 2 {
		all = append(all, corev1.ContainerPort{Name: named[i].(string), ContainerPort: int32(named[i+1].(int))})
	}
	return all
}

var workloads = []workload{
	{name: "chat-0", service: "chat", engine: "vllm", image: "vllm/vllm-openai:v0.11.0", ports: ports("", 8000, "nixl", 5600), gpu: true, port: 8000, page: "vllm.prom"},
	{name: "chat-1", service: "chat", engine: "vllm", image: "vllm/vllm-openai:v0.11.0", ports: ports("http", 9100), gpu: true, port: 9100, page: "vllm.prom"},
	{name: "renamed", service: "renamed", engine: "vllm", image: "registry.example.com/models/llama@sha256:" + strings.Repeat("a", 64), container: "model-vllm", port: 8000, page: "vllm.prom"},
	{
		name: "sgl-0-1", service: "sgl", engine: "sglang", image: "lmsysorg/sglang:v0.5.3-cu126", ports: ports("serve", 30000), gpu: true,
		labels: map[string]string{"leaderworkerset.sigs.k8s.io/name": "sgl", "leaderworkerset.sigs.k8s.io/worker-index": "0"}, port: 30000, page: "sglang.prom",
	},
	{
		name: "tgi", service: "tgi", engine: "tgi", image: "ghcr.io/huggingface/text-generation-inference:3.3.5", ports: ports("", 3000),
		annotations: map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "3000", "prometheus.io/path": "/prom"},
		port:        3000, path: "/prom", page: "tgi.prom",
	},
	{name: "triton", service: "triton", engine: "triton", image: "nvcr.io/nvidia/tritonserver:25.09-vllm-python-py3", ports: ports("http", 8000, "grpc", 8001, "metrics", 8002), port: 8002, page: "triton.prom"},
	{name: "nim", service: "nim", engine: "nim", image: "nvcr.io/nim/meta/llama-3.1-8b-instruct:1.8.4", ports: ports("http-openai", 8000), port: 8000, path: "/v1/metrics", page: "nim.prom"},
	{
		name: "ray-worker-x", service: "raycluster", engine: "vllm", image: "rayproject/ray:2.49.0-py312-gpu", container: "ray-worker", ports: ports("metrics", 8080),
		labels: map[string]string{"ray.io/cluster": "raycluster"}, port: 8080, page: "ray.prom",
	},
	{
		name: "own", service: "own", image: "registry.example.com/my-server:1", ports: ports("api", 9000, "stats", 9001),
		annotations: map[string]string{"otelcol-gpu.io/scrape": "true", "otelcol-gpu.io/port": "9001", "otelcol-gpu.io/path": "/v2/stats"},
		port:        9001, path: "/v2/stats", page: "other.prom",
	},
	// As operators make them.
	{
		name: "kserve", service: "kserve", engine: "vllm", image: "kserve/vllmserver-gpu:v0.16", container: "kserve-container", ports: ports("", 8080),
		annotations: map[string]string{"prometheus.kserve.io/port": "8080", "prometheus.kserve.io/path": "/engine"}, port: 8080, path: "/engine", page: "vllm.prom",
	},
	{
		name: "llmisvc", service: "llmisvc", engine: "vllm", image: "ghcr.io/llm-d/llm-d:v0.2.0", container: "main", ports: ports("", 8000),
		annotations: map[string]string{"otelcol-gpu.io/scheme": "https", "otelcol-gpu.io/model": "llama"}, tls: true, port: 8000, page: "vllm.prom",
	},
	{
		name: "llm-d", service: "llm-d", engine: "sglang", image: "registry.example.com/llm:1", container: "modelserver", ports: ports("modelserver", 8000, "nixl", 5600),
		labels: map[string]string{"app.kubernetes.io/name": "llm-d", "llm-d.ai/engine-type": "sglang"}, port: 8000, page: "sglang.prom",
	},
	{name: "trtllm", service: "trtllm", engine: "tensorrt_llm", image: "nvcr.io/nvidia/tensorrt-llm/release:1.1.0", ports: ports("", 8000), port: 8000, path: "/prometheus/metrics", page: "other.prom"},
	{
		name: "dynamo-worker", service: "dynamo-worker", engine: "vllm", image: "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.7.0", container: "main", ports: ports("system", 9090, "nixl", 19090),
		labels: map[string]string{"app.kubernetes.io/name": "dynamo-worker", "nvidia.com/dynamo-component-type": "worker"}, port: 9090, page: "vllm.prom",
	},
	{
		name: "llamacpp", service: "llamacpp", engine: "llamacpp", image: "ghcr.io/ggml-org/llama.cpp:server-cuda", ports: ports("", 8080),
		annotations: map[string]string{"otelcol-gpu.io/model": "qwen/qwen3-8b"}, port: 8080, page: "llamacpp.prom",
	},
	{
		name: "stack-router", service: "stack-router", engine: "vllm_router", image: "lmcache/lmstack-router:latest", container: "router-container", ports: ports("router-cport", 8000, "lmcache-port", 9000),
		labels: map[string]string{"app.kubernetes.io/name": "stack-router", "app.kubernetes.io/component": "router"}, port: 8000, page: "vllm.prom",
	},
	// The gateway's, on nodes without agent or where the agent leaves them alone.
	{name: "picker", service: "picker", engine: "llm_d", image: "ghcr.io/llm-d/llm-d-inference-scheduler:v0.7.0", container: "epp", ports: ports("grpc", 9002, "metrics", 9090), elsewhere: true, port: 9090, page: "epp.prom"},
	{
		name: "front", service: "front", image: "vllm/vllm-openai:v0.11.0", ports: ports("", 8000),
		annotations: map[string]string{"otelcol-gpu.io/scrape": "gateway", "otelcol-gpu.io/port": "8000"}, port: 8000, page: "other.prom",
	},
	// None of these.
	{
		name: "sgl-0-2", image: "lmsysorg/sglang:v0.5.3-cu126", ports: ports("serve", 30000),
		labels: map[string]string{"leaderworkerset.sigs.k8s.io/name": "sgl", "leaderworkerset.sigs.k8s.io/worker-index": "1"}, port: 30000, page: "sglang.prom",
	},
	{name: "never", image: "vllm/vllm-openai:v0.11.0", annotations: map[string]string{"otelcol-gpu.io/scrape": "false"}, port: 8000, page: "vllm.prom"},
	{name: "bystander", image: "nginx:1.29", annotations: map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9113"}, ports: ports("metrics", 9113), port: 9113, page: "other.prom"},
	{name: "elsewhere", image: "vllm/vllm-openai:v0.11.0", elsewhere: true, port: 8000, page: "vllm.prom"},
}

func (l *workload) node() string {
	if l.elsewhere {
		return "elsewhere"
	}
	return nodeName
}

func (l *workload) pod() *corev1.Pod {
	server := corev1.Container{Name: l.container, Image: l.image, Ports: l.ports}
	if server.Name == "" {
		server.Name = "server"
	}
	if l.gpu {
		server.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(1, resource.DecimalSI)}
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "inference", Name: l.name, Annotations: l.annotations, Labels: maps.Clone(l.labels)},
		// Beside each there is a proxy, as a mesh puts it there.
		Spec: corev1.PodSpec{
			Containers:   []corev1.Container{server, {Name: "istio-proxy", Image: "istio/proxyv2:1.27", Ports: ports("http-envoy-prom", 15090)}},
			NodeSelector: map[string]string{},
		},
	}
	p.Spec.NodeSelector[corev1.LabelHostname] = l.node()
	if l.labels == nil && l.service != "" {
		p.Labels = map[string]string{"app.kubernetes.io/name": l.service}
	}
	return p
}

func TestInference(t *testing.T) {
	w := start(t)
	w.place(-1, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "exporter", Labels: map[string]string{"app": "nvidia-dcgm-exporter"}},
		Spec: corev1.PodSpec{
			HostNetwork: true, NodeSelector: map[string]string{corev1.LabelHostname: nodeName},
			Containers: []corev1.Container{{Name: "exporter", Image: "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0"}},
		},
	})
	engines := make([]*engine, len(workloads))
	up := map[string]float64{}   // by pod
	want := map[string]float64{} // up by service, node, pod, container and port
	for i, l := range workloads {
		if l.path == "" {
			l.path = "/metrics"
		}
		w.place(i, l.pod())
		engines[i] = serveEngine(t, i, l)
		if l.service != "" {
			up[l.name] = 1
			want[fmt.Sprintf("%s %s %s %s %d", l.service, l.node(), l.name, l.pod().Spec.Containers[0].Name, l.port)] = 1
		}
	}
	// One with a page beyond the limit: it has no metrics, the others have theirs.
	huge := workload{name: "huge", service: "huge", engine: "vllm", image: "vllm/vllm-openai:v0.11.0"}
	w.place(len(workloads), huge.pod())
	var page bytes.Buffer
	for i := range 10_001 {
		fmt.Fprintf(&page, "huge{request=\"%d\"} 1\n", i)
	}
	serve(t, len(workloads), workload{port: 8000, path: "/metrics"}, page.Bytes())
	want["huge "+nodeName+" huge server 8000"] = 0
	w.observe()

	t.Run("every engine is scraped once, and nothing else", func(t *testing.T) {
		w.t = t
		var got map[string]float64
		w.eventually("every engine is up", func(context.Context) error {
			got = map[string]float64{}
			vector, err := w.ask("up")
			for _, s := range vector {
				l := s.Metric
				got[fmt.Sprintf("%s %s %s %s %s", l["service_name"], l["k8s_node_name"], l["k8s_pod_name"], l["k8s_container_name"], l["server_port"])] = float64(s.Value)
				assert.Equal(t, []model.LabelValue{"real", "inference"}, []model.LabelValue{l["k8s_cluster_name"], l["k8s_namespace_name"]})
			}
			if err == nil && !maps.Equal(want, got) {
				err = fmt.Errorf("%v", got)
			}
			return err
		})
		for i, l := range workloads {
			if l.service == "" {
				assert.Zero(t, engines[i].asked.Load()+engines[i].astray.Load(), l.name)
			} else {
				assert.Zero(t, engines[i].astray.Load(), l.name)
			}
		}
		assert.Contains(t, w.log(w.agent), "sample limit exceeded", "the log says why")
	})

	t.Run("names are the engine's", func(t *testing.T) {
		w.t = t
		for _, l := range workloads {
			if l.service == "" {
				continue
			}
			expected := map[string]bool{"up": true, "scrape_samples_post_metric_relabeling": true}
			for name, kind := range families(t, l.page) {
				if name == "hw_forged_ratio" || name == "inference_gateway_requests" {
					continue // the next test
				}
				// Prometheus' names have no colon and counters have _total, wherever they
				// came from.
				name = strings.ReplaceAll(name, ":", "_")
				switch kind {
				case "histogram":
					expected[name+"_bucket"], expected[name+"_count"], expected[name+"_sum"] = true, true, true
				case "counter":
					expected[strings.TrimSuffix(name, "_total")+"_total"] = true
				default:
					expected[name] = true
				}
			}
			vector, err := w.ask(fmt.Sprintf(`count by (__name__) ({k8s_pod_name=%q,server_port!="",inference_engine=""})`, l.name))
			require.NoError(t, err)
			got := map[string]bool{}
			for _, s := range vector {
				got[strings.ReplaceAll(string(s.Metric["__name__"]), ":", "_")] = true
			}
			assert.Equal(t, slices.Sorted(maps.Keys(expected)), slices.Sorted(maps.Keys(got)), l.name)
		}
	})

	t.Run("the scraper's count of series is what arrives", func(t *testing.T) {
		w.t = t
		const by = "(k8s_namespace_name, k8s_pod_name, k8s_container_name, server_port)"
		vector, err := w.ask("scrape_samples_post_metric_relabeling - on " + by + " count by " + by +
			` ({k8s_pod_name!="", server_port!="", inference_engine="", __name__!~"up|scrape_.*"})`)
		require.NoError(t, err)
		assert.NotEmpty(t, vector)
		for _, s := range vector {
			assert.Zero(t, float64(s.Value), s.Metric)
		}
	})

	t.Run("nothing of the runtime, the scraper or the job", func(t *testing.T) {
		w.t = t
		for _, query := range []string{
			`{__name__=~"(go|python|process|hw_forged)_.*|.*_created|scrape_(duration|timeout|series|samples_scraped|body).*|ray_(component|node)_.*"}`, `{job!=""}`, `{service_instance_id!=""}`,
			`{service_name=~"inference|forged"}`, `{k8s_namespace_name="forged"}`, `{__tmp_ray!=""}`, `{inference_engine_hint!=""}`, "inference_gateway_requests >= 1000", "target_info", "huge",
		} {
			vector, err := w.ask(query)
			require.NoError(t, err)
			assert.Empty(t, vector, query)
		}
	})

	t.Run("every engine has the names that all have in common", func(t *testing.T) {
		w.t = t
		want := map[string]float64{}
		for _, l := range append(slices.Clone(workloads), huge) {
			if l.engine != "" {
				want[fmt.Sprintf("%s %s %s", l.service, l.name, l.engine)] = up[l.name]
			}
			if l.name == "trtllm" { // it answers, with nothing of an engine on its page
				want[fmt.Sprintf("%s %s %s", l.service, l.name, l.engine)] = 0
			}
		}
		w.eventually("every engine is up under them", func(context.Context) error {
			got := map[string]float64{}
			vector, err := w.ask("inference_server_up or inference_gateway_up")
			for _, s := range vector {
				got[fmt.Sprintf("%s %s %s", s.Metric["service_name"], s.Metric["k8s_pod_name"], s.Metric["inference_engine"])] = float64(s.Value)
			}
			if err == nil && !maps.Equal(want, got) {
				err = fmt.Errorf("%v", got)
			}
			return err
		})
		// Where the page names no model, it is the one that the pod names.
		vector, err := w.ask(`inference_server_tokens_total{service_name="llamacpp",inference_token_type="output",gen_ai_request_model="qwen/qwen3-8b"}`)
		require.NoError(t, err)
		assert.Len(t, vector, 1)
	})

	t.Run("an engine and its GPUs are one service", func(t *testing.T) {
		w.t = t
		w.eventually("both are there", func(context.Context) error {
			both, err := w.ask(`group by (k8s_cluster_name, k8s_namespace_name, service_name) ({__name__=~"vllm[:_]num_requests_waiting|sglang[:_]num_queue_reqs"})
				and on (k8s_cluster_name, k8s_namespace_name, service_name) gpu_service_utilization_ratio`)
			if err == nil && len(both) != 2 {
				err = fmt.Errorf("%v", both)
			}
			return err
		})
	})

	t.Run("dashboard and alerts find what they read", func(t *testing.T) {
		w.t = t
		for _, query := range reads(t) {
			w.eventually(query, func(context.Context) error {
				vector, err := w.ask(query)
				if err == nil && !slices.ContainsFunc(vector, func(s *model.Sample) bool { return s.Metric["service_name"] == "chat" }) {
					err = fmt.Errorf("%s: nothing of chat in %v", query, vector)
				}
				return err
			})
		}
	})
}

// engineSeries are selectors of what vLLM's page has: of a page that stands still there
// are no rates.
var engineSeries = regexp.MustCompile(`(?:gen_ai_server_(?:time_to_first_token|request_duration)_seconds|inference_server_(?:inter_token_latency_seconds|kv_cache|prefix_cache|preemptions|requests\{|requests_finished|tokens|up))[a-z_]*\{?[^}]*\}`)

// reads are the queries of the inference dashboard about GPUs, and its selectors of
// engines' series, with All chosen everywhere, and the selectors of the alerts by
// vLLM's own names.
func reads(t *testing.T) (queries []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "mixin", "dashboards", "otelcol-gpu-inference.json"))
	require.NoError(t, err)
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	require.NoError(t, json.Unmarshal(text, &board))
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			if strings.Contains(target.Expr, "gpu_throttle_active") {
				continue // the simulated exporter of this node has no such field
			}
			q := strings.NewReplacer("$__rate_interval", "1m", "$__interval", "15s").Replace(target.Expr)
			q = regexp.MustCompile(`\$[a-z]+`).ReplaceAllString(q, ".*")
			if !strings.Contains(q, "inference_") {
				queries = append(queries, q)
				continue
			}
			for _, s := range engineSeries.FindAllString(q, -1) {
				if !strings.Contains(s, "rejected") && !slices.Contains(queries, s) { // the page counts no failures
					queries = append(queries, s)
				}
			}
		}
	}
	require.Greater(t, len(queries), 15)
	rules, err := os.ReadFile(filepath.Join(root, "mixin", "rules", "alerts-inference.yaml"))
	require.NoError(t, err)
	selectors := map[string]bool{}
	for _, s := range regexp.MustCompile(`\{__name__=~\\?"vllm[^}]*\}`).FindAllString(string(rules), -1) {
		selectors[strings.ReplaceAll(s, `\"`, `"`)] = true
	}
	require.Greater(t, len(selectors), 4)
	return append(queries, slices.Sorted(maps.Keys(selectors))...)
}
