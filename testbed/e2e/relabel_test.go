// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
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

// scrapeJob is a job of a configuration that scrapes engines.
type scrapeJob struct {
	name, token      string
	targets, samples []*relabel.Config
}

// pickers are PICKER_TOKEN_FILE and PICKER_NAMESPACES.
type pickers struct{ token, namespaces string }

// scrapeJobs returns the jobs of the receiver prometheus/inference in a file of config/.
func scrapeJobs(t *testing.T, name string, pickers pickers) (jobs []scrapeJob) {
	t.Helper()
	text, err := os.ReadFile(config(name))
	require.NoError(t, err)
	var file struct {
		Receivers map[string]struct {
			Config struct {
				Jobs []struct {
					Name    string            `json:"job_name"`
					Token   string            `json:"bearer_token_file"`
					Targets []json.RawMessage `json:"relabel_configs"`
					Samples []json.RawMessage `json:"metric_relabel_configs"`
				} `json:"scrape_configs"`
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(strings.NewReplacer("$$", "$",
		"${env:PICKER_TOKEN_FILE:-}", pickers.token, "${env:PICKER_NAMESPACES:-}", pickers.namespaces,
		"${env:PICKER_NAMESPACES:-.*}", cmp.Or(pickers.namespaces, ".*")).Replace(string(text))), &file))
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
	for _, job := range file.Receivers["prometheus/inference"].Config.Jobs {
		jobs = append(jobs, scrapeJob{job.Name, job.Token, rules(job.Targets), rules(job.Samples)})
	}
	return jobs
}

// meta are labels of a discovered pod, without what they all begin with.
type meta = map[string]string

// target is what a job makes of a container: its job, which is the engine, and the URL.
// It is empty for no target.
func (j scrapeJob) target(t *testing.T, pod meta) string {
	t.Helper()
	b := labels.NewBuilder(labels.FromStrings(
		"__address__", "unset", "__metrics_path__", "/metrics", "__scheme__", "http", "job", j.name, "__meta_kubernetes_namespace", "llm-d",
		"__meta_kubernetes_pod_ip", "10.0.0.1", "__meta_kubernetes_pod_phase", "Running", "__meta_kubernetes_pod_container_init", "false",
		"__meta_kubernetes_pod_container_name", "server",
	))
	for k, v := range pod {
		b.Set("__meta_kubernetes_pod_"+k, v)
	}
	if !relabel.ProcessBuilder(b, j.targets...) {
		return ""
	}
	target := b.Labels()
	target.Range(func(l labels.Label) {
		assert.True(t, l.Name == "job" || strings.HasPrefix(l.Name, "__"), "%s would be a label of every sample", l.Name)
	})
	return target.Get("job") + " " + target.Get("__scheme__") + "://" + target.Get("__address__") + target.Get("__metrics_path__")
}

// Which containers are engines, and where each is asked: every rule by an example
// that needs it and one that must not have it. testbed/kubernetes/inference has the
// real discovery.
func TestInferenceTargets(t *testing.T) {
	t.Parallel()
	job := scrapeJobs(t, "inference.yaml", pickers{})[0]
	ours, theirs := func(k string) string { return "annotation_otelcol_gpu_io_" + k }, func(k string) string { return "annotation_prometheus_io_" + k }
	label := func(k string) string { return "label_" + k }
	const (
		kserve, path = "annotation_prometheus_kserve_io_port", "annotation_prometheus_kserve_io_path"
		llmd         = "ghcr.io/llm-d/llm-d-cuda:v0.4.0"
		dynamo       = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.7.0"
		engineType   = "llm_d_ai_engine_type"
		worker       = "leaderworkerset_sigs_k8s_io_worker_index"
		component    = "app_kubernetes_io_component"
		part         = "nvidia_com_dynamo_component_type"
	)
	for name, tc := range map[string]struct {
		meta meta
		want string // engine, address and path; "" is no target
	}{
		"vLLM":                               {meta{"container_image": "vllm/vllm-openai:v0.11.0", "container_port_number": "8000"}, "vllm http://10.0.0.1:8000/metrics"},
		"vLLM of a mirror, by digest":        {meta{"container_image": "r.example.com:5000/a/b/vllm-cu128@sha256:aa", "container_port_number": "8000"}, "vllm http://10.0.0.1:8000/metrics"},
		"vLLM without a declared port":       {meta{"container_image": "vllm/vllm-openai"}, "vllm http://10.0.0.1:8000/metrics"},
		"vLLM, a port of another protocol":   {meta{"container_image": "vllm/vllm-openai", "container_port_number": "5600", "container_port_name": "nixl"}, ""},
		"vLLM, another port under its name":  {meta{"container_image": "vllm/vllm-openai", "container_port_number": "8123", "container_port_name": "http"}, "vllm http://10.0.0.1:8123/metrics"},
		"vLLM, a port for metrics":           {meta{"container_image": "vllm/vllm-openai", "container_port_number": "9090", "container_port_name": "http-metrics"}, "vllm http://10.0.0.1:9090/metrics"},
		"only a namespace of vLLM's":         {meta{"container_image": "vllm/router:1", "container_port_number": "8000"}, ""},
		"IPv6":                               {meta{"container_image": "vllm/vllm-openai", "ip": "fd00::7"}, "vllm http://[fd00::7]:8000/metrics"},
		"SGLang":                             {meta{"container_image": "lmsysorg/sglang:latest", "container_port_number": "30000"}, "sglang http://10.0.0.1:30000/metrics"},
		"TGI":                                {meta{"container_image": "ghcr.io/huggingface/text-generation-inference:3", "container_port_number": "80"}, "tgi http://10.0.0.1:80/metrics"},
		"Triton":                             {meta{"container_image": "nvcr.io/nvidia/tritonserver:25.09-py3", "container_port_number": "8002"}, "triton http://10.0.0.1:8002/metrics"},
		"Triton, its HTTP port":              {meta{"container_image": "nvcr.io/nvidia/tritonserver:25.09-py3", "container_port_number": "8000", "container_port_name": "http"}, ""},
		"Triton with vLLM in it":             {meta{"container_image": "nvcr.io/nvidia/tritonserver:25.09-vllm-python-py3"}, "triton http://10.0.0.1:8002/metrics"},
		"NIM":                                {meta{"container_image": "nvcr.io/nim/meta/llama-3.1-8b-instruct:1.8", "container_port_number": "8000"}, "nim http://10.0.0.1:8000/v1/metrics"},
		"Ray":                                {meta{"container_image": "rayproject/ray:2.49.0-gpu", "container_port_number": "8080", "container_port_name": "metrics"}, "ray http://10.0.0.1:8080/metrics"},
		"Ray, its dashboard":                 {meta{"container_image": "rayproject/ray:2.49.0-gpu", "container_port_number": "8265", "container_port_name": "dashboard"}, ""},
		"Ray's own vLLM image":               {meta{"container_image": "rayproject/ray-llm:2.49.0", "container_name": "vllm", "container_port_number": "8080"}, "ray http://10.0.0.1:8080/metrics"},
		"an image that only begins with ray": {meta{"container_image": "example.com/raytracer:1", "container_port_number": "8080"}, ""},
		"by the container's name":            {meta{"container_image": "example.com/llm:1", "container_name": "llama-vllm", "container_port_number": "8000"}, "vllm http://10.0.0.1:8000/metrics"},
		"by the name, Triton":                {meta{"container_image": "example.com/llm:1", "container_name": "triton"}, "triton http://10.0.0.1:8002/metrics"},
		"by the name, Ray":                   {meta{"container_image": "example.com/llm:1", "container_name": "ray-head", "container_port_number": "8080"}, "ray http://10.0.0.1:8080/metrics"},
		"a name that only contains tgi":      {meta{"container_image": "example.com/llm:1", "container_name": "tgifriday", "container_port_number": "80"}, ""},
		"taken out":                          {meta{"container_image": "vllm/vllm-openai", ours("scrape"): "false"}, ""},
		"annotated port and path":            {meta{"container_image": "vllm/vllm-openai", "container_port_number": "8000", ours("port"): "9000", ours("path"): "/m"}, "vllm http://10.0.0.1:9000/m"},
		"annotated for Prometheus":           {meta{"container_image": "vllm/vllm-openai", theirs("scrape"): "true", theirs("port"): "9000", theirs("path"): "/m"}, "vllm http://10.0.0.1:9000/m"},
		"annotated against it":               {meta{"container_image": "vllm/vllm-openai", theirs("scrape"): "false", theirs("port"): "9000"}, "vllm http://10.0.0.1:8000/metrics"},
		"ours before Prometheus'":            {meta{"container_image": "vllm/vllm-openai", theirs("scrape"): "true", theirs("port"): "9000", ours("port"): "9001"}, "vllm http://10.0.0.1:9001/metrics"},
		"a port that is no number":           {meta{"container_image": "vllm/vllm-openai", ours("port"): "http"}, "vllm http://10.0.0.1:8000/metrics"},
		"a path without a slash":             {meta{"container_image": "vllm/vllm-openai", ours("path"): "metrics"}, "vllm http://10.0.0.1:8000/metrics"},
		"not known, and annotated":           {meta{"container_image": "example.com/llm:1", "container_port_number": "9000", ours("scrape"): "true", ours("port"): "9000"}, "inference http://10.0.0.1:9000/metrics"},
		"not known, another container":       {meta{"container_image": "example.com/proxy:1", "container_port_number": "15090", ours("scrape"): "true", ours("port"): "9000"}, ""},
		"not known, port undeclared":         {meta{"container_image": "example.com/llm:1", ours("scrape"): "true", ours("port"): "9000"}, "inference http://10.0.0.1:9000/metrics"},
		"not known, no port":                 {meta{"container_image": "example.com/llm:1", "container_port_number": "9000", ours("scrape"): "true"}, ""},
		"not known, for Prometheus alone":    {meta{"container_image": "nginx", "container_port_number": "9113", theirs("scrape"): "true", theirs("port"): "9113"}, ""},
		"an init container":                  {meta{"container_image": "vllm/vllm-openai", "container_init": "true"}, ""},
		"a pod that has ended":               {meta{"container_image": "vllm/vllm-openai", "phase": "Succeeded"}, ""},
		"a pod that waits":                   {meta{"container_image": "vllm/vllm-openai", "phase": "Pending"}, ""},
		// What operators and charts make.
		"KServe, a runtime of vLLM":            {meta{"container_image": "kserve/vllmserver-gpu:v0.16", "container_name": "kserve-container", kserve: "8000", path: "/metrics"}, "vllm http://10.0.0.1:8000/metrics"},
		"KServe, Hugging Face":                 {meta{"container_image": "kserve/huggingfaceserver:v0.15.0-gpu", "container_name": "kserve-container", "container_port_number": "8080", kserve: "8080", path: "/metrics"}, "vllm http://10.0.0.1:8080/metrics"},
		"KServe, without its annotations":      {meta{"container_image": "quay.io/modh/vllm@sha256:4f55", "container_name": "kserve-container", "container_port_number": "8080"}, "vllm http://10.0.0.1:8080/metrics"},
		"KServe, by Knative":                   {meta{"container_image": "lmsysorg/sglang:v0.5.3", "container_name": "kserve-container", "container_port_number": "8012", "container_port_name": "user-port"}, "sglang http://10.0.0.1:8012/metrics"},
		"KServe, Triton":                       {meta{"container_image": "nvcr.io/nvidia/tritonserver:23.05-py3", "container_name": "kserve-container", "container_port_number": "8080", kserve: "8002", path: "/metrics"}, "triton http://10.0.0.1:8002/metrics"},
		"KServe, before Prometheus' aggregate": {meta{"container_image": "kserve/vllmserver-gpu:v0.16", "container_name": "kserve-container", kserve: "8000", theirs("scrape"): "true", theirs("port"): "9088", theirs("path"): "/metrics"}, "vllm http://10.0.0.1:8000/metrics"},
		"KServe, ours before its":              {meta{"container_image": "kserve/vllmserver-gpu:v0.16", kserve: "8000", ours("port"): "8001", ours("path"): "/m", path: "/metrics"}, "vllm http://10.0.0.1:8001/m"},
		"KServe, no engine":                    {meta{"container_image": "kserve/sklearnserver:v0.15.0", "container_name": "kserve-container", "container_port_number": "8080", kserve: "8080"}, ""},
		"KServe, its proxy":                    {meta{"container_image": "kserve/qpext:v0.15.0", "container_name": "queue-proxy", "container_port_number": "9088", "container_port_name": "http-usermetric", label(engineType): "vllm"}, ""},
		"KServe, a worker of many nodes":       {meta{"container_image": "kserve/vllmserver-gpu:v0.16", "container_name": "worker-container", kserve: "8000"}, ""},
		"KServe, LLMInferenceService":          {meta{"container_image": "ghcr.io/llm-d/llm-d:v0.2.0", "container_name": "main", "container_port_number": "8000", ours("scheme"): "https"}, "vllm https://10.0.0.1:8000/metrics"},
		"KServe, LLMInferenceService, decode":  {meta{"container_image": "ghcr.io/llm-d/llm-d:0.0.8", "container_name": "main", "container_port_number": "8001"}, "vllm http://10.0.0.1:8001/metrics"},
		"llm-d, decode behind its proxy":       {meta{"container_image": llmd, "container_name": "vllm", "container_port_number": "8200", label(engineType): "vllm"}, "vllm http://10.0.0.1:8200/metrics"},
		"llm-d, its proxy":                     {meta{"container_image": "ghcr.io/llm-d/llm-d-routing-sidecar:v0.6.0", "container_name": "sidecar", "container_port_number": "8000", label(engineType): "vllm"}, ""},
		"llm-d, SGLang by the label":           {meta{"container_image": "example.com/llm:1", "container_name": "modelserver", "container_port_number": "8000", "container_port_name": "modelserver", label(engineType): "sglang"}, "sglang http://10.0.0.1:8000/metrics"},
		"llm-d, the label before the image":    {meta{"container_image": llmd, "container_port_number": "30000", label(engineType): "sglang"}, "sglang http://10.0.0.1:30000/metrics"},
		"llm-d, the label before the name":     {meta{"container_image": "example.com/llm:1", "container_name": "vllm", label(engineType): "sglang"}, "sglang http://10.0.0.1:30000/metrics"},
		"llm-d, trtllm-serve":                  {meta{"container_image": "example.com/llm:1", "container_port_number": "8000", label(engineType): "trtllm-serve"}, "tensorrt_llm http://10.0.0.1:8000/prometheus/metrics"},
		"llm-d, Triton":                        {meta{"container_image": "example.com/llm:1", "container_port_number": "8002", label(engineType): "triton-tensorrt-llm"}, "triton http://10.0.0.1:8002/metrics"},
		"llm-d, a label of no engine":          {meta{"container_image": "example.com/llm:1", "container_port_number": "8000", label(engineType): "turing"}, ""},
		"llm-d, a helper without a port":       {meta{"container_image": "busybox:1", "container_name": "logs", label(engineType): "vllm"}, ""},
		"llm-d, a mesh's proxy":                {meta{"container_image": "istio/proxyv2:1.27", "container_name": "istio-proxy", "container_port_number": "15090", "container_port_name": "http-envoy-prom", label(engineType): "vllm"}, ""},
		"llm-d, its picker":                    {meta{"container_image": "ghcr.io/llm-d/llm-d-inference-scheduler:v0.7.0", "container_name": "epp", "container_port_number": "9090", "container_port_name": "metrics", ours("scrape"): "true", ours("port"): "9090"}, ""},
		"llm-d, the tokenizer of its picker":   {meta{"container_image": "vllm/vllm-openai-cpu:v0.19.1", "container_name": "vllm-render", "container_port_number": "8000", "container_port_name": "render-http"}, ""},
		"the picker of the Gateway API":        {meta{"container_image": "registry.k8s.io/gateway-api-inference-extension/epp:v1.0.0", ours("scrape"): "true", ours("port"): "9090"}, ""},
		"LeaderWorkerSet, the leader":          {meta{"container_image": "vllm/vllm-openai:v0.11.0", "container_name": "vllm-leader", "container_port_number": "8080", "container_port_name": "http", label(worker): "0"}, "vllm http://10.0.0.1:8080/metrics"},
		"LeaderWorkerSet, a worker":            {meta{"container_image": "vllm/vllm-openai:v0.11.0", "container_name": "vllm-worker", label(worker): "1"}, ""},
		"LeaderWorkerSet, the tenth worker":    {meta{"container_image": "lmsysorg/sglang:v0.5.3", label(worker): "10"}, ""},
		"KubeRay, a worker":                    {meta{"container_image": "rayproject/ray-llm:2.52.0-py311-cu128", "container_name": "ray-worker", "container_port_number": "8080", "container_port_name": "metrics"}, "ray http://10.0.0.1:8080/metrics"},
		"KubeRay, a worker in vLLM's image":    {meta{"container_image": "lmcache/vllm-openai:latest", "container_name": "vllm-ray-worker", label("ray_io_node_type"): "worker"}, "ray http://10.0.0.1:8080/metrics"},
		"KubeRay, a head in vLLM's image":      {meta{"container_image": "lmcache/vllm-openai:latest", "container_name": "vllm-ray-head", "container_port_number": "8000", "container_port_name": "container-port", label("ray_io_node_type"): "head"}, "vllm http://10.0.0.1:8000/metrics"},
		"KubeRay, its head's autoscaler":       {meta{"container_image": "rayproject/ray-llm:2.52.0-py311-cu128", "container_name": "autoscaler"}, ""},
		"KubeRay, the autoscaler's metrics":    {meta{"container_image": "rayproject/ray:2.52.0", "container_name": "ray-head", "container_port_number": "44217", "container_port_name": "as-metrics"}, ""},
		"KubeRay, the dashboard's metrics":     {meta{"container_image": "rayproject/ray:2.52.0", "container_name": "ray-head", "container_port_number": "44227", "container_port_name": "dash-metrics"}, ""},
		"production-stack, an engine":          {meta{"container_image": "lmcache/vllm-openai:latest", "container_name": "vllm", "container_port_number": "8000", "container_port_name": "container-port", label(component): "serving-engine"}, "vllm http://10.0.0.1:8000/metrics"},
		"production-stack, another port":       {meta{"container_image": "lmcache/vllm-openai:latest", "container_name": "vllm", "container_port_number": "8100", "container_port_name": "container-port"}, "vllm http://10.0.0.1:8100/metrics"},
		"production-stack, an engine's ZeroMQ": {meta{"container_image": "lmcache/vllm-openai:latest", "container_name": "vllm", "container_port_number": "55555", "container_port_name": "zmq-port"}, ""},
		"production-stack, the router":         {meta{"container_image": "lmcache/lmstack-router:latest", "container_name": "router-container", "container_port_number": "8000", "container_port_name": "router-cport"}, "vllm_router http://10.0.0.1:8000/metrics"},
		"production-stack, the router's cache": {meta{"container_image": "lmcache/lmstack-router:latest", "container_name": "router-container", "container_port_number": "9000", "container_port_name": "lmcache-port"}, ""},
		"production-stack, the router renamed": {meta{"container_image": "example.com/stack:1", "container_name": "router-container", "container_port_number": "8000", "container_port_name": "router-cport", label(component): "router"}, "vllm_router http://10.0.0.1:8000/metrics"},
		"a router in vLLM's image":             {meta{"container_image": "vllm/vllm-openai:v0.11.0", "container_port_number": "8000", label(component): "router"}, "vllm_router http://10.0.0.1:8000/metrics"},
		"vLLM's router":                        {meta{"container_image": "example.com/vllm-router:0.1", "container_port_number": "8000"}, "vllm_router http://10.0.0.1:8000/metrics"},
		"a router of anything":                 {meta{"container_image": "example.com/mongos:1", "container_name": "server", "container_port_number": "8000", label(component): "router"}, ""},
		"SGLang's router":                      {meta{"container_image": "lmsysorg/sgl-model-gateway:v0.3", "container_name": "router", "container_port_number": "30000"}, ""},
		"SGLang's router in its image":         {meta{"container_image": "lmsysorg/sglang:v0.5.3", "container_port_number": "30000", label(component): "router"}, ""},
		"NIM operator":                         {meta{"container_image": "nvcr.io/nim/meta/llama-3.1-8b-instruct:1.8", "container_name": "llama-ctr", "container_port_number": "8000", "container_port_name": "api"}, "nim http://10.0.0.1:8000/v1/metrics"},
		"NIM operator, a port named metrics":   {meta{"container_image": "nvcr.io/nim/nvidia/nemo-retriever:1.5", "container_port_number": "8002", "container_port_name": "metrics"}, ""},
		"NIM, its port for metrics annotated":  {meta{"container_image": "nvcr.io/nim/nvidia/nemo-retriever:1.5", "container_port_number": "8002", "container_port_name": "metrics", ours("port"): "8002", ours("path"): "/metrics"}, "nim http://10.0.0.1:8002/metrics"},
		"TensorRT-LLM":                         {meta{"container_image": "nvcr.io/nvidia/tensorrt-llm/release:1.1.0", "container_port_number": "8000"}, "tensorrt_llm http://10.0.0.1:8000/prometheus/metrics"},
		"TensorRT-LLM by the name":             {meta{"container_image": "example.com/llm:1", "container_name": "trtllm-serve"}, "tensorrt_llm http://10.0.0.1:8000/prometheus/metrics"},
		"TensorRT-LLM in Triton":               {meta{"container_image": "nvcr.io/nvidia/tritonserver:25.09-trtllm-python-py3", "container_port_number": "8002"}, "triton http://10.0.0.1:8002/metrics"},
		"Dynamo, the frontend":                 {meta{"container_image": dynamo, "container_name": "main", "container_port_number": "8000", "container_port_name": "http", label(part): "frontend"}, "dynamo http://10.0.0.1:8000/metrics"},
		"Dynamo, a worker":                     {meta{"container_image": dynamo, "container_name": "main", "container_port_number": "9090", "container_port_name": "system", label(part): "worker"}, "vllm http://10.0.0.1:9090/metrics"},
		"Dynamo, a worker of TensorRT-LLM":     {meta{"container_image": "nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:0.7.0", "container_port_number": "9090", "container_port_name": "system", label(part): "worker"}, "tensorrt_llm http://10.0.0.1:9090/metrics"},
		"Dynamo, a worker without its label":   {meta{"container_image": dynamo, "container_name": "main", "container_port_number": "9090", "container_port_name": "system"}, "dynamo http://10.0.0.1:9090/metrics"},
		"Dynamo, a worker's NIXL":              {meta{"container_image": dynamo, "container_name": "main", "container_port_number": "19090", "container_port_name": "nixl"}, ""},
		"Dynamo, a worker without its page":    {meta{"container_image": dynamo, "container_name": "main"}, ""},
		"Dynamo of a mirror":                   {meta{"container_image": "r.example.com/dynamo-trtllm:0.7", "container_port_number": "8000"}, "dynamo http://10.0.0.1:8000/metrics"},
		"a database":                           {meta{"container_image": "amazon/dynamodb-local:2", "container_port_number": "8000"}, ""},
		"llama.cpp":                            {meta{"container_image": "ghcr.io/ggml-org/llama.cpp:server-cuda", "container_port_number": "8080"}, "llamacpp http://10.0.0.1:8080/metrics"},
		"llama.cpp by the name":                {meta{"container_image": "example.com/llm:1", "container_name": "llama-server"}, "llamacpp http://10.0.0.1:8080/metrics"},
		"llama.cpp, its model":                 {meta{"container_image": "ghcr.io/ggml-org/llama.cpp:server-cuda", ours("model"): "qwen/qwen3-8b"}, "llamacpp;qwen/qwen3-8b http://10.0.0.1:8080/metrics"},
		"a model as long as a book":            {meta{"container_image": "ghcr.io/ggml-org/llama.cpp:server", ours("model"): strings.Repeat("x", 257)}, "llamacpp http://10.0.0.1:8080/metrics"},
		"LMDeploy":                             {meta{"container_image": "openmmlab/lmdeploy:v0.10.1-cu12", "container_port_number": "23333"}, "lmdeploy http://10.0.0.1:23333/metrics"},
		"LMDeploy by the name":                 {meta{"container_image": "example.com/llm:1", "container_name": "lmdeploy"}, "lmdeploy http://10.0.0.1:23333/metrics"},
		"Ollama":                               {meta{"container_image": "ollama/ollama:0.12", "container_name": "ollama", "container_port_number": "11434", "container_port_name": "http"}, ""},
		"an engine that asks for it":           {meta{"container_image": "vllm/vllm-openai", ours("scrape"): "true", ours("port"): "8000"}, "inference http://10.0.0.1:8000/metrics"},
		"… its sidecar is the same target":     {meta{"container_image": "fluent-bit:4", ours("scrape"): "true", ours("port"): "8000"}, "inference http://10.0.0.1:8000/metrics"},
		"Istio's page of all containers":       {meta{"container_image": "vllm/vllm-openai", "container_port_number": "8000", theirs("scrape"): "true", theirs("port"): "15020", theirs("path"): "/stats/prometheus"}, "vllm http://10.0.0.1:8000/metrics"},
		"an unknown scheme":                    {meta{"container_image": "vllm/vllm-openai", ours("scheme"): "file"}, "vllm http://10.0.0.1:8000/metrics"},
		"the gateway's":                        {meta{"container_image": "lmcache/lmstack-router:latest", ours("scrape"): "gateway"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, job.target(t, tc.meta))
		})
	}
}

// What the gateway scrapes, and which of it gets the token of pickers.
func TestInferenceGatewayTargets(t *testing.T) {
	t.Parallel()
	jobs := scrapeJobs(t, "inference-gateways.yaml", pickers{"/token", "llm-.*"})
	require.Len(t, jobs, 2)
	assert.Equal(t, []string{"pickers", "/token", "asking", ""}, []string{jobs[0].name, jobs[0].token, jobs[1].name, jobs[1].token})
	ours := func(k string) string { return "annotation_otelcol_gpu_io_" + k }
	const picker = "ghcr.io/llm-d/llm-d-inference-scheduler:v0.7.0"
	for name, tc := range map[string]struct {
		meta meta
		want [2]string // of each job
	}{
		"a picker":                        {meta{"container_image": picker, "container_port_number": "9090", "container_port_name": "metrics"}, [2]string{"llm_d http://10.0.0.1:9090/metrics"}},
		"another port of it":              {meta{"container_image": picker, "container_port_number": "9002", "container_port_name": "grpc"}, [2]string{}},
		"of llm-d now":                    {meta{"container_image": "ghcr.io/llm-d/llm-d-router-endpoint-picker@sha256:aa"}, [2]string{"llm_d http://10.0.0.1:9090/metrics"}},
		"of the Gateway API":              {meta{"container_image": "registry.k8s.io/gateway-api-inference-extension/epp:v1.0.0", "container_port_number": "9090"}, [2]string{"llm_d http://10.0.0.1:9090/metrics"}},
		"an image that only ends in epp":  {meta{"container_image": "example.com/mapp/sepp:1"}, [2]string{}},
		"a picker with TLS on its port":   {meta{"container_image": picker, "container_port_number": "9090", ours("port"): "9443", ours("scheme"): "https", ours("path"): "/m"}, [2]string{"llm_d https://10.0.0.1:9443/m"}},
		"a picker that asks for it":       {meta{"container_image": picker, "container_port_number": "9090", ours("scrape"): "gateway"}, [2]string{"llm_d http://10.0.0.1:9090/metrics"}},
		"a picker taken out":              {meta{"container_image": picker, ours("scrape"): "false"}, [2]string{}},
		"a picker that has ended":         {meta{"container_image": picker, "phase": "Failed"}, [2]string{}},
		"a router":                        {meta{"container_image": "lmcache/lmstack-router:latest", "container_port_number": "8000"}, [2]string{}},
		"a router that asks for it":       {meta{"container_image": "lmcache/lmstack-router:latest", "container_port_number": "8000", ours("scrape"): "gateway", ours("port"): "8000"}, [2]string{1: "asking http://10.0.0.1:8000/metrics"}},
		"… its other port":                {meta{"container_image": "lmcache/lmstack-router:latest", "container_port_number": "9000", ours("scrape"): "gateway", ours("port"): "8000"}, [2]string{}},
		"a port named metrics":            {meta{"container_image": "example.com/front:1", "container_port_number": "9100", "container_port_name": "metrics", ours("scrape"): "gateway"}, [2]string{1: "asking http://10.0.0.1:9100/metrics"}},
		"no port at all":                  {meta{"container_image": "example.com/front:1", "container_port_number": "8000", ours("scrape"): "gateway"}, [2]string{}},
		"one for its node's agent":        {meta{"container_image": "example.com/llm:1", "container_port_number": "8000", ours("scrape"): "true", ours("port"): "8000"}, [2]string{}},
		"an engine is its node's agent's": {meta{"container_image": "vllm/vllm-openai:v0.11.0", "container_port_number": "8000"}, [2]string{}},
	} {
		assert.Equal(t, tc.want, [2]string{jobs[0].target(t, tc.meta), jobs[1].target(t, tc.meta)}, name)
	}
	for _, tc := range []struct {
		pickers pickers
		want    bool
		reason  string
	}{
		{pickers{"/token", "llm-.*"}, false, "the token leaves no namespace of PICKER_NAMESPACES"},
		{pickers{"/token", "tenant"}, true, "tenant is one of PICKER_NAMESPACES"},
		{pickers{"/token", ""}, false, "a token without PICKER_NAMESPACES goes nowhere"},
		{pickers{"", ""}, true, "without a token pickers may be anywhere"},
		{pickers{"", "llm-.*"}, false, "tenant is none of PICKER_NAMESPACES"},
	} {
		b := labels.NewBuilder(labels.FromStrings("job", "pickers", "__meta_kubernetes_namespace", "tenant", "__meta_kubernetes_pod_ip", "10.0.0.1", "__meta_kubernetes_pod_container_image", picker))
		assert.Equal(t, tc.want, relabel.ProcessBuilder(b, scrapeJobs(t, "inference-gateways.yaml", tc.pickers)[0].targets...), tc.reason)
	}
}

// What the gateway does with a page is what an agent does, and the service of a pod is
// the agents'.
func TestGatewayTreatsPagesAsAgentsDo(t *testing.T) {
	t.Parallel()
	gateways, engines, agent := shipped(t, "inference-gateways.yaml").Processors, shipped(t, "inference.yaml").Processors, shipped(t, "agent.yaml").Processors
	for _, id := range []string{"transform/inference", "inference", "filter/inference"} {
		assert.Equal(t, engines[id], gateways[id], id)
	}
	assert.Equal(t, agent["transform/service"].(m)["metric_statements"], gateways["transform/service"].(m)["metric_statements"])
	ours, theirs := gateways["k8s_attributes"].(m)["extract"].(m), agent["k8s_attributes"].(m)["extract"].(m)
	assert.Equal(t, theirs["annotations"], ours["annotations"])
	assert.Subset(t, theirs["labels"], ours["labels"])
	assert.Len(t, theirs["labels"], len(ours["labels"].([]any))+1, "all but the one that no name is made of")

	agents := scrapeJobs(t, "inference.yaml", pickers{})[0].samples
	for _, job := range scrapeJobs(t, "inference-gateways.yaml", pickers{}) {
		for _, name := range []string{"hw_power_watts", "inference_server_requests", "up", "x:y", "vllm:num_requests_running", "gpu_cache_usage_perc", "go_goroutines", "process_start_time_seconds", "process_cpu_seconds_total", "x_created", "inference_pool_ready_pods", "llm_d_epp_request_total"} {
			sample := labels.FromStrings("__name__", name, "k8s_pod_name", "forged", "inference_engine", "forged", "model_name", "m")
			want, got := labels.NewBuilder(sample), labels.NewBuilder(sample)
			kept := relabel.ProcessBuilder(want, agents...)
			assert.Equal(t, kept, relabel.ProcessBuilder(got, job.samples...), name)
			assert.True(t, !kept || labels.Equal(want.Labels(), got.Labels()), name)
		}
	}
}

// Which samples stay, and that no page sets its own identity.
func TestInferenceSamples(t *testing.T) {
	t.Parallel()
	samples := scrapeJobs(t, "inference.yaml", pickers{})[0].samples
	for name, stays := range map[string]bool{
		"vllm:num_requests_waiting": true, "vllm:request_success_total": true, "vllm:request_success_created": true, "process_start_time_seconds": true,
		"vllm:time_to_first_token_seconds_bucket": true, "vllm:time_to_first_token_seconds_created": true,
		"go_goroutines": false, "python_gc_collections_total": false, "python_info": false, "process_cpu_seconds_total": false,
		"processed_requests_total": true, "good_go_total": true, "created_requests": true,
		"ray_serve_num_http_requests_total": true, "ray_vllm:num_requests_running": true, "ray_component_cpu_percentage": false, "ray_node_mem_used": false,
	} {
		b := labels.NewBuilder(labels.FromStrings("__name__", name, "model_name", "m", "k8s_pod_name", "forged", "service_name", "forged", "hw_id", "forged", "server_port", "forged", "inference_engine", "forged"))
		keep := relabel.ProcessBuilder(b, samples...)
		assert.Equal(t, stays, keep, name)
		if keep {
			assert.Equal(t, labels.FromStrings("__name__", name, "model_name", "m"), b.Labels())
		}
	}
}
