// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/pagetest"
)

// captured are pages of real engines beside the repository, and what ours have that
// these do not: a family, or a label of one. Each stands for a reason: another version,
// an option, a count that had not occurred.
var captured = []struct {
	engine string
	files  []string // kind/name
	bounds bool     // they are those of this version
	lack   []string
}{
	{"vllm-0.5", []string{v0}, true, slices.Concat([]string{
		"vllm:cpu_prefix_cache_hit_rate", "vllm:gpu_prefix_cache_hit_rate", "vllm:lora_requests_info", "vllm:spec_decode_draft_acceptance_rate",
	}, total("vllm:spec_decode_num_accepted_tokens", "vllm:spec_decode_num_draft_tokens", "vllm:spec_decode_num_drafts"))},
	{"vllm-0.8", []string{v0, v1}, false, slices.Concat(created("vllm:gpu_prefix_cache_hits", "vllm:gpu_prefix_cache_queries"), []string{
		"vllm:lora_requests_info",
	}, speculated, []string{"vllm:time_per_output_token_seconds_created"})},
	{"vllm-0.11", []string{v0, v1}, false, slices.Concat([]string{"vllm:gpu_cache_usage_perc{engine}"},
		created("vllm:gpu_prefix_cache_hits", "vllm:gpu_prefix_cache_queries"), []string{"vllm:lora_requests_info"}, speculated,
		[]string{"vllm:time_per_output_token_seconds_created", "vllm:time_per_output_token_seconds{engine}"})},
	{"vllm-0.21", []string{v1}, true, slices.Concat([]string{"vllm:lora_requests_info", "vllm:num_requests_waiting_by_reason"}, speculated)},
	{"sglang-0.5", []string{"sglang/dynamo-sglang-worker-qwen3-0.6b.prom"}, true, []string{
		"sglang:cached_tokens_total", "sglang:lora_pool_slots_total", "sglang:lora_pool_slots_used", "sglang:num_aborted_requests_total",
		"sglang:num_retracted_requests_total",
	}},
	{"tgi-3", []string{"tgi/last9-tgi-synthetic.prom"}, false, []string{
		"tgi_batch_current_max_tokens", "tgi_batch_current_size", "tgi_batch_inference_count", "tgi_batch_inference_duration", "tgi_batch_inference_success",
		"tgi_queue_size", "tgi_request_count", "tgi_request_failure", "tgi_request_generated_tokens", "tgi_request_input_length", "tgi_request_max_new_tokens",
		"tgi_request_skipped_tokens", "tgi_request_success",
	}},
	{"triton", []string{"triton/datadog-triton-t4.prom", "triton/server-docs-first-response-histogram-malformed.prom"}, true, []string{
		"nv_inference_request_failure{reason}", "nv_model_load_duration_secs",
	}},
	{"triton-trtllm", []string{"triton/datadog-triton-t4.prom", "triton/trtllm-backend-inflight-readme.prom"}, true, []string{
		"nv_inference_request_failure{reason}",
	}},
	{"trtllm-1.1", []string{"trtllm/dynamo-trtllm-worker-qwen3-0.6b.prom"}, true, nil},
	{"nim-1", []string{"nim/datadog-nim-llama31-8b.prom"}, true, nil},
	{"llamacpp", []string{"llamacpp/ik-llama-pr695.prom"}, true, slices.Concat([]string{
		"llamacpp:n_busy_slots_per_decode", "llamacpp:n_decode_total", "llamacpp:n_tokens_max",
	}, total("llamacpp:spec_decode_num_accepted_tokens", "llamacpp:spec_decode_num_draft_tokens"))},
	{"dynamo", []string{"dynamo/dynamo-frontend-qwen3-0.6b.prom"}, true, []string{"dynamo_frontend_requests_total{error_type}"}},
	{"epp", []string{
		"epp/llm_d_input_tokens_metric.prom", "epp/llm_d_kv_cache_avg_metrics.prom", "epp/llm_d_normalized_time_per_output_token_seconds_metric.prom",
		"epp/llm_d_queue_avg_size_metrics.prom", "epp/llm_d_request_duration_seconds_metric.prom", "epp/llm_d_request_error_total_metric.prom",
		"epp/llm_d_request_ttft_seconds_metric.prom", "epp/flow_control_enqueue_duration_seconds_metric.prom",
	}, true, []string{
		"inference_extension_flow_control_request_queue_duration_seconds", "inference_objective_input_tokens",
		"inference_objective_normalized_time_per_output_token_seconds", "inference_objective_output_tokens", "inference_objective_prompt_cached_tokens",
		"inference_objective_request_duration_seconds", "inference_objective_request_error_total", "inference_objective_request_sizes",
		"inference_objective_request_total", "inference_objective_running_requests", "inference_pool_average_kv_cache_utilization",
		"inference_pool_average_queue_size", "inference_pool_average_running_requests", "inference_pool_ready_pods", "llm_d_epp_average_running_requests",
		"llm_d_epp_flow_control_queue_size", "llm_d_epp_flow_control_request_queue_duration_seconds", "llm_d_epp_info", "llm_d_epp_ready_endpoints",
		"llm_d_epp_request_cached_tokens", "llm_d_epp_request_output_tokens", "llm_d_epp_request_running", "llm_d_epp_request_size_bytes",
		"llm_d_epp_request_streaming_itl_seconds", "llm_d_epp_request_streaming_tpot_seconds", "llm_d_epp_request_total", "llm_d_epp_request_ttft_seconds",
	}},
}

const (
	v0 = "vllm/kubeai-vllm-v0-llama31-8b-fp8.prom"
	v1 = "vllm/kops-vllm-v1-qwen2.5-0.5b.prom"
)

var speculated = created("vllm:spec_decode_num_accepted_tokens", "vllm:spec_decode_num_draft_tokens", "vllm:spec_decode_num_drafts")

func total(families ...string) (out []string) {
	for _, f := range families {
		out = append(out, f+"_total")
	}
	return out
}

func created(families ...string) (out []string) {
	for _, f := range families {
		out = append(out, f+"_created", f+"_total")
	}
	return out
}

var (
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? \S+`)
	bucketLine = regexp.MustCompile(`(?m)^([a-zA-Z_:][a-zA-Z0-9_:]*)_bucket\{.*le="([^"]*)"`)
	labelKey   = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="`)
)

// familiesAndLabels are the families of a page, and their labels as family{label}. Pages that are
// elided or malformed on purpose can be read too.
func familiesAndLabels(page []byte) map[string]bool {
	out := map[string]bool{}
	types := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if f := strings.Fields(line); len(f) == 4 && f[1] == "TYPE" {
			types[f[2]] = true
		}
	}
	for line := range strings.Lines(string(page)) {
		m := sampleLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		name := m[1]
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			if base, ok := strings.CutSuffix(name, suffix); ok && (types[base] || suffix == "_bucket") {
				name = base
			}
		}
		out[name] = true
		for _, l := range labelKey.FindAllStringSubmatch(m[2], -1) {
			if l[1] != "le" && l[1] != "quantile" {
				out[name+"{"+l[1]+"}"] = true
			}
		}
	}
	return out
}

// boundsOf are the finite bounds of each histogram, as numbers.
func boundsOf(page []byte) map[string][]string {
	out := map[string][]string{}
	for _, m := range bucketLine.FindAllSubmatch(page, -1) {
		v, err := strconv.ParseFloat(string(m[2]), 64)
		if name := string(m[1]); err == nil && !math.IsInf(v, 1) {
			if text := strconv.FormatFloat(v, 'g', 12, 64); !slices.Contains(out[name], text) {
				out[name] = append(out[name], text)
			}
		}
	}
	return out
}

func TestFamiliesAreThoseOfCapturedPages(t *testing.T) {
	for _, c := range captured {
		t.Run(c.engine, func(t *testing.T) {
			real := map[string]bool{}
			for _, f := range c.files {
				kind, name, _ := strings.Cut(f, "/")
				maps.Copy(real, familiesAndLabels(pagetest.CapturedOf(t, kind, name)))
			}
			e, err := Find(c.engine)
			assert.NoError(t, err)
			p := process(t, busy(), 11, full)
			p.Advance(40 * time.Second)
			var lack []string
			page := e.Page(input(p))
			ours := familiesAndLabels(page)
			for _, what := range slices.Sorted(maps.Keys(ours)) {
				family, _, _ := strings.Cut(what, "{")
				if !real[what] && (what == family || real[family]) {
					lack = append(lack, what)
				}
			}
			assert.Equal(t, c.lack, lack)
			if c.bounds {
				theirs := map[string][]string{}
				for _, f := range c.files {
					kind, name, _ := strings.Cut(f, "/")
					maps.Copy(theirs, boundsOf(pagetest.CapturedOf(t, kind, name)))
				}
				for name, have := range boundsOf(page) {
					if want := theirs[name]; want != nil {
						n := min(len(have), len(want)) // token counts have bounds up to a limit of the model
						assert.Equal(t, want[:n], have[:n], name)
					}
				}
			}
		})
	}
}
