// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// inferenceRules are the rules of config/inference.yaml, for targets and for
// samples.
func inferenceRules(t *testing.T) (targets, samples []*relabel.Config) {
	t.Helper()
	text, err := os.ReadFile(config("inference.yaml"))
	require.NoError(t, err)
	var file struct {
		Receivers map[string]struct {
			Config struct {
				Jobs []struct {
					Targets []json.RawMessage `json:"relabel_configs"`
					Samples []json.RawMessage `json:"metric_relabel_configs"`
				} `json:"scrape_configs"`
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(string(text), "$$", "$")), &file))
	rules := func(raw []json.RawMessage) (all []*relabel.Config) {
		for _, text := range raw {
			rule := relabel.DefaultRelabelConfig
			rule.NameValidationScheme = model.UTF8Validation
			require.NoError(t, json.Unmarshal(text, &rule))
			require.NoError(t, rule.Validate(model.UTF8Validation), "%s", text)
			all = append(all, &rule)
		}
		require.NotEmpty(t, all)
		return all
	}
	job := file.Receivers["prometheus/inference"].Config.Jobs[0]
	return rules(job.Targets), rules(job.Samples)
}

// Which containers are engines, and where each is asked: every rule by an example
// that needs it and one that must not have it. testbed/kubernetes/inference has the
// real discovery.
func TestInferenceTargets(t *testing.T) {
	t.Parallel()
	targets, _ := inferenceRules(t)
	type meta = map[string]string
	ours, theirs := func(k string) string { return "annotation_otelcol_gpu_io_" + k }, func(k string) string { return "annotation_prometheus_io_" + k }
	for name, tc := range map[string]struct {
		meta meta
		want string // "" is no target
	}{
		"vLLM":                               {meta{"container_image": "vllm/vllm-openai:v0.11.0", "container_port_number": "8000"}, "10.0.0.1:8000/metrics"},
		"vLLM of a mirror, by digest":        {meta{"container_image": "r.example.com:5000/a/b/vllm-cu128@sha256:aa", "container_port_number": "8000"}, "10.0.0.1:8000/metrics"},
		"vLLM without a declared port":       {meta{"container_image": "vllm/vllm-openai"}, "10.0.0.1:8000/metrics"},
		"vLLM, a port that is none of HTTP":  {meta{"container_image": "vllm/vllm-openai", "container_port_number": "5600", "container_port_name": "nixl"}, ""},
		"vLLM, another port under its name":  {meta{"container_image": "vllm/vllm-openai", "container_port_number": "8123", "container_port_name": "http"}, "10.0.0.1:8123/metrics"},
		"vLLM, a port for metrics":           {meta{"container_image": "vllm/vllm-openai", "container_port_number": "9090", "container_port_name": "http-metrics"}, "10.0.0.1:9090/metrics"},
		"only a namespace of vLLM's":         {meta{"container_image": "vllm/router:1", "container_port_number": "8000"}, ""},
		"IPv6":                               {meta{"container_image": "vllm/vllm-openai", "ip": "fd00::7"}, "[fd00::7]:8000/metrics"},
		"SGLang":                             {meta{"container_image": "lmsysorg/sglang:latest", "container_port_number": "30000"}, "10.0.0.1:30000/metrics"},
		"TGI":                                {meta{"container_image": "ghcr.io/huggingface/text-generation-inference:3", "container_port_number": "80"}, "10.0.0.1:80/metrics"},
		"Triton":                             {meta{"container_image": "nvcr.io/nvidia/tritonserver:25.09-py3", "container_port_number": "8002"}, "10.0.0.1:8002/metrics"},
		"Triton, its HTTP port":              {meta{"container_image": "nvcr.io/nvidia/tritonserver:25.09-py3", "container_port_number": "8000", "container_port_name": "http"}, ""},
		"Triton with vLLM in it":             {meta{"container_image": "nvcr.io/nvidia/tritonserver:25.09-vllm-python-py3"}, "10.0.0.1:8002/metrics"},
		"NIM":                                {meta{"container_image": "nvcr.io/nim/meta/llama-3.1-8b-instruct:1.8", "container_port_number": "8000"}, "10.0.0.1:8000/v1/metrics"},
		"Ray":                                {meta{"container_image": "rayproject/ray:2.49.0-gpu", "container_port_number": "8080", "container_port_name": "metrics"}, "10.0.0.1:8080/metrics"},
		"Ray, its dashboard":                 {meta{"container_image": "rayproject/ray:2.49.0-gpu", "container_port_number": "8265", "container_port_name": "dashboard"}, ""},
		"Ray's own vLLM image":               {meta{"container_image": "rayproject/ray-llm:2.49.0", "container_name": "vllm", "container_port_number": "8080"}, "10.0.0.1:8080/metrics"},
		"an image that only begins with ray": {meta{"container_image": "example.com/raytracer:1", "container_port_number": "8080"}, ""},
		"by the container's name":            {meta{"container_image": "example.com/llm:1", "container_name": "llama-vllm", "container_port_number": "8000"}, "10.0.0.1:8000/metrics"},
		"by the name, Triton":                {meta{"container_image": "example.com/llm:1", "container_name": "triton"}, "10.0.0.1:8002/metrics"},
		"by the name, Ray":                   {meta{"container_image": "example.com/llm:1", "container_name": "ray-head", "container_port_number": "8080"}, "10.0.0.1:8080/metrics"},
		"a name that only contains tgi":      {meta{"container_image": "example.com/llm:1", "container_name": "tgifriday", "container_port_number": "80"}, ""},
		"taken out":                          {meta{"container_image": "vllm/vllm-openai", ours("scrape"): "false"}, ""},
		"annotated port and path":            {meta{"container_image": "vllm/vllm-openai", "container_port_number": "8000", ours("port"): "9000", ours("path"): "/m"}, "10.0.0.1:9000/m"},
		"annotated for Prometheus":           {meta{"container_image": "vllm/vllm-openai", theirs("scrape"): "true", theirs("port"): "9000", theirs("path"): "/m"}, "10.0.0.1:9000/m"},
		"annotated against it":               {meta{"container_image": "vllm/vllm-openai", theirs("scrape"): "false", theirs("port"): "9000"}, "10.0.0.1:8000/metrics"},
		"ours before Prometheus'":            {meta{"container_image": "vllm/vllm-openai", theirs("scrape"): "true", theirs("port"): "9000", ours("port"): "9001"}, "10.0.0.1:9001/metrics"},
		"a port that is no number":           {meta{"container_image": "vllm/vllm-openai", ours("port"): "http"}, "10.0.0.1:8000/metrics"},
		"a path that is none":                {meta{"container_image": "vllm/vllm-openai", ours("path"): "metrics"}, "10.0.0.1:8000/metrics"},
		"not known, and annotated":           {meta{"container_image": "example.com/llm:1", "container_port_number": "9000", ours("scrape"): "true", ours("port"): "9000"}, "10.0.0.1:9000/metrics"},
		"not known, another container":       {meta{"container_image": "example.com/proxy:1", "container_port_number": "15090", ours("scrape"): "true", ours("port"): "9000"}, ""},
		"not known, port undeclared":         {meta{"container_image": "example.com/llm:1", ours("scrape"): "true", ours("port"): "9000"}, "10.0.0.1:9000/metrics"},
		"not known, no port":                 {meta{"container_image": "example.com/llm:1", "container_port_number": "9000", ours("scrape"): "true"}, ""},
		"not known, for Prometheus alone":    {meta{"container_image": "nginx", "container_port_number": "9113", theirs("scrape"): "true", theirs("port"): "9113"}, ""},
		"an init container":                  {meta{"container_image": "vllm/vllm-openai", "container_init": "true"}, ""},
		"a pod that has ended":               {meta{"container_image": "vllm/vllm-openai", "phase": "Succeeded"}, ""},
		"a pod that waits":                   {meta{"container_image": "vllm/vllm-openai", "phase": "Pending"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := labels.NewBuilder(labels.FromStrings(
				"__address__", "unset", "__metrics_path__", "/metrics", "job", "inference",
				"__meta_kubernetes_pod_ip", "10.0.0.1", "__meta_kubernetes_pod_phase", "Running", "__meta_kubernetes_pod_container_init", "false",
				"__meta_kubernetes_pod_container_name", "server",
			))
			for k, v := range tc.meta {
				b.Set("__meta_kubernetes_pod_"+k, v)
			}
			got := ""
			keep := relabel.ProcessBuilder(b, targets...)
			target := b.Labels()
			if keep {
				got = target.Get("__address__") + target.Get("__metrics_path__")
			}
			assert.Equal(t, tc.want, got)
			if !keep {
				return
			}
			target.Range(func(l labels.Label) {
				assert.True(t, l.Name == "job" || strings.HasPrefix(l.Name, "__"), "%s would be a label of every sample", l.Name)
			})
		})
	}
}

// Which samples stay, and that no page sets its own identity.
func TestInferenceSamples(t *testing.T) {
	t.Parallel()
	_, samples := inferenceRules(t)
	for name, stays := range map[string]bool{
		"vllm:num_requests_waiting": true, "vllm:request_success_total": true, "vllm:request_success_created": false,
		"vllm:time_to_first_token_seconds_bucket": true, "vllm:time_to_first_token_seconds_created": false,
		"go_goroutines": false, "python_gc_collections_total": false, "python_info": false, "process_cpu_seconds_total": false,
		"processed_requests_total": true, "good_go_total": true, "created_requests": true,
		"ray_serve_num_http_requests_total": true, "ray_vllm:num_requests_running": true, "ray_component_cpu_percentage": false, "ray_node_mem_used": false,
	} {
		b := labels.NewBuilder(labels.FromStrings("__name__", name, "model_name", "m", "k8s_pod_name", "forged", "service_name", "forged", "hw_id", "forged", "server_port", "forged"))
		keep := relabel.ProcessBuilder(b, samples...)
		assert.Equal(t, stays, keep, name)
		if keep {
			assert.Equal(t, labels.FromStrings("__name__", name, "model_name", "m"), b.Labels())
		}
	}
}
