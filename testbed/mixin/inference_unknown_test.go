// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/judge"
)

// A figure is absent where a part of the service is not known, and the others are there.
func TestInferenceRulesOfPartsUnknown(t *testing.T) {
	triton := svc + `,k8s_pod_name="triton-0",inference_engine="triton"`
	for name, c := range map[string]struct {
		series         map[string]string
		absent, remain []string
	}{
		"pods are missing": {
			map[string]string{`gpu_service_partial{` + svc + `}`: "1x480"},
			[]string{"output", "tokens_per", "ttft_seconds", "request_seconds", "errors", "kv_cache", "demand", "saturation", "batch", "prefix", "speculation"},
			[]string{"ttft_kept", "ttft_bound", "served"}, // alerts go on
		},
		"one page of two": {
			map[string]string{up + `{` + pod1 + `}`: "0x480"}, []string{"output", "tokens_per", "ttft_seconds", "demand", "saturation"}, []string{"ttft_kept"},
		},
		"one page of five": {
			map[string]string{
				up + `{` + svc + `,k8s_pod_name="chat-2",inference_engine="vllm"}`: "0x480", up + `{` + svc + `,k8s_pod_name="chat-3",inference_engine="vllm"}`: "1x480",
				up + `{` + svc + `,k8s_pod_name="chat-4",inference_engine="vllm"}`: "1x480",
			},
			[]string{"tokens_per_joule", "tokens_per_device"}, []string{"output", "ttft_seconds:p95", "demand", "saturation"},
		},
		"a device without power": {
			map[string]string{`gpu_allocation{` + svc + `,hw_id="GPU-2/7"}`: "1x480"}, []string{"tokens_per_joule"}, []string{"tokens_per_device", "output"},
		},
		"the power of one of two": {map[string]string{powerOf(1): "500x38 stale"}, []string{"tokens_per_joule"}, []string{"output"}},
		"a device that the summary misses": {
			map[string]string{`gpu_service_devices{gpu_device_state="missing",` + svc + `}`: "1x480"}, []string{"tokens_per_joule"}, []string{"output"},
		},
		"a start that does not know who is missing": {
			map[string]string{`gpu_service_devices{gpu_device_state="missing",` + svc + `}`: "_x480"}, []string{"tokens_per_joule"}, []string{"output"},
		},
		"a device that was silent four minutes ago": {map[string]string{powerOf(1): "_x34 500x445"}, []string{"tokens_per_joule"}, []string{"output"}},
		"pages of four minutes": {
			map[string]string{
				tokens + `{inference_token_type="output",` + pod0 + `}`: "_x32 90000+3000x440", tokens + `{inference_token_type="input",` + pod0 + `}`: "_x32 90000+3000x440",
				tokens + `{inference_token_type="output",` + pod1 + `}`: "_x32 90000+3000x440", tokens + `{inference_token_type="input",` + pod1 + `}`: "_x32 90000+3000x440",
			}, []string{"output", "input", "tokens_per"}, []string{"ttft_seconds:p95", "demand"},
		},
		"an engine with sums alone": {
			map[string]string{
				up + `{` + triton + `}`: "1x480",
				duration + `_bucket{inference_bounds="none",le="+Inf",` + triton + `}`: "0+600x480",
				duration + `_count{inference_bounds="none",` + triton + `}`:            "0+600x480",
				duration + `_sum{inference_bounds="none",` + triton + `}`:              "0+1200x480",
			},
			[]string{"request_seconds:p", "ttft_seconds", "output_tokens", "tokens_per", "kv_cache", "demand", "errors"}, []string{"request_seconds:mean5m"},
		},
		"an engine beside another in its pod": {
			map[string]string{up + `{` + strings.Replace(pod1, "vllm", "triton", 1) + `}`: "1x480"}, nil, []string{"output_tokens", "ttft_seconds:p95", "kv_cache:max"},
		},
		"a pod without requests yet": {
			map[string]string{up + `{` + svc + `,k8s_pod_name="chat-2",inference_engine="vllm"}`: "1x480"}, nil, []string{"output_tokens", "ttft_seconds:p95"},
		},
		"an engine that counts no errors": {
			map[string]string{
				finished + `{inference_request_outcome="error",inference_finish_reason="error",` + pod0 + `}`: "_x480",
				finished + `{inference_request_outcome="error",inference_finish_reason="error",` + pod1 + `}`: "_x480",
			}, []string{"errors", "served"}, []string{"output_tokens"},
		},
		"not every pod has a limit": {
			map[string]string{`inference_server_requests_limit{` + pod1 + `}`: "_x480", `inference_server_requests_limit{` + pod0 + `}`: "12x480"}, nil, []string{"saturation"},
		},
		"no requests": {
			map[string]string{duration + `_count{inference_bounds="a",` + pod0 + `}`: "0x480", duration + `_count{inference_bounds="b",` + pod1 + `}`: "0x480"}, []string{"request_seconds"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := busy()
			maps.Copy(all, c.series)
			got := recorded(t, all)
			assert.Empty(t, judge.Named(got, c.absent...))
			for _, p := range c.remain {
				assert.NotEmpty(t, judge.Named(got, p), p)
			}
		})
	}
	all := busy()
	maps.Copy(all, map[string]string{`inference_server_requests_limit{` + pod1 + `}`: "_x480", `inference_server_requests_limit{` + pod0 + `}`: "12x480"})
	assert.InDelta(t, 0.7, recorded(t, all)["saturation:ratio"], 1e-9, "the mean KV cache, where not every pod has a limit")
}
