// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/pagetest"
)

type truth = requests.Window

// counted are the counters of each page and what they count, as the truth has it.
var counted = []struct {
	engines string
	sample  string
	labels  []string
	want    func(w *truth) int
}{
	{"vllm-0.5 vllm-0.8 vllm-0.11 vllm-0.21", "vllm:prompt_tokens_total", nil, func(w *truth) int { return w.InputTokens }},
	{"vllm-0.5 vllm-0.8 vllm-0.11 vllm-0.21", "vllm:generation_tokens_total", nil, func(w *truth) int { return w.OutputTokens }},
	{"vllm-0.5 vllm-0.8 vllm-0.11 vllm-0.21", "vllm:request_success_total", []string{"finished_reason", "length"}, reason("length")},
	{"vllm-0.5 vllm-0.8 vllm-0.11 vllm-0.21", "vllm:request_success_total", []string{"finished_reason", "stop"}, reason("stop")},
	{"vllm-0.5 vllm-0.8 vllm-0.11 vllm-0.21", "vllm:request_success_total", []string{"finished_reason", "abort"}, reason("abort")},
	{"vllm-0.21", "vllm:request_success_total", []string{"finished_reason", "error"}, reason("error")},
	{"nim-1", "prompt_tokens_total", nil, func(w *truth) int { return w.InputTokens }},
	{"nim-1", "generation_tokens_total", nil, func(w *truth) int { return w.OutputTokens }},
	{"nim-1", "request_finish_total", nil, outcome(requests.Success)},
	{"nim-1", "request_success_total", nil, outcome(requests.Success)},
	{"nim-1", "request_failure_total", nil, outcome(requests.Failed)},
	{"lmdeploy", "lmdeploy:num_requests_succeeded", nil, outcome(requests.Success)},
	{"lmdeploy", "lmdeploy:generation_tokens_total", nil, func(w *truth) int { return w.OutputTokens }},
	{"ray-vllm", "ray_vllm_generation_tokens_total", nil, func(w *truth) int { return w.OutputTokens }},
	{"ray-vllm", "ray_vllm_generation_tokens", nil, func(w *truth) int { return w.OutputTokens }},
	{"ray-vllm", "ray_vllm_request_success_total", []string{"finished_reason", "stop"}, reason("stop")},
	{"sglang-0.5", "sglang:num_requests_total", nil, outcome(requests.Success)},
	{"sglang-0.5", "sglang:num_aborted_requests_total", nil, outcome(requests.Cancelled)},
	{"sglang-0.5", "sglang:prompt_tokens_total", nil, func(w *truth) int { return w.FinishedInput }},
	{"sglang-0.5", "sglang:generation_tokens_total", nil, func(w *truth) int { return w.FinishedOutput }},
	{"sglang-0.5", "sglang:cached_tokens_total", nil, func(w *truth) int { return w.FinishedCached }},
	{"sglang-0.5", "sglang:realtime_tokens_total", []string{"mode", "decode"}, func(w *truth) int { return w.OutputTokens }},
	{"tgi-3", "tgi_request_count", nil, func(w *truth) int { return w.Arrived }},
	{"tgi-3", "tgi_request_success", nil, outcome(requests.Success)},
	{"tgi-3", "tgi_request_failure", []string{"err", "generation"}, outcome(requests.Failed)},
	{"tgi-3", "tgi_request_failure", []string{"err", "overloaded"}, outcome(requests.Rejected)},
	{"tgi-3", "tgi_request_generated_tokens_sum", nil, func(w *truth) int { return w.FinishedOutput }},
	{"triton", "nv_inference_request_success", nil, outcome(requests.Success)},
	{"triton", "nv_inference_request_failure", []string{"reason", "CANCELED"}, outcome(requests.Cancelled)},
	{"triton-trtllm", "nv_inference_request_success", []string{"model", "tensorrt_llm"}, outcome(requests.Success)},
	{"triton-trtllm", "nv_inference_request_success", []string{"model", "ensemble"}, outcome(requests.Success)},
	{"trtllm-1.1", "trtllm_request_success_total", nil, outcome(requests.Success)},
	{"llamacpp", "llamacpp:tokens_predicted_total", nil, func(w *truth) int { return w.FinishedOutput }},
	{"dynamo", "dynamo_frontend_output_tokens_total", nil, func(w *truth) int { return w.OutputTokens }},
	{"dynamo", "dynamo_frontend_requests_total", []string{"status", "success"}, outcome(requests.Success)},
	{"dynamo", "dynamo_frontend_requests_total", []string{"error_type", "cancelled"}, outcome(requests.Cancelled)},
	{"dynamo", "dynamo_frontend_requests_total", []string{"error_type", "overload"}, outcome(requests.Rejected)},
	{"epp", "llm_d_epp_request_total", nil, func(w *truth) int { return w.Arrived }},
	{"epp", "inference_objective_request_total", nil, func(w *truth) int { return w.Arrived }},
	{"epp", "llm_d_epp_request_error_total", []string{"error_code", "ModelServerError"}, outcome(requests.Failed)},
	{"vllm-router", "vllm:num_incoming_requests_total", nil, func(w *truth) int { return w.Arrived }},
	{"vllm-router", "vllm:output_tokens_total", nil, func(w *truth) int { return w.OutputTokens }},
}

func outcome(o requests.Outcome) func(*truth) int {
	return func(w *truth) int { return w.Finished[o] }
}

func reason(r string) func(*truth) int { return func(w *truth) int { return w.Reasons[r] } }

// Whatever the requests: the pages of all engines are about the same ones, and their
// counters and every bucket of their histograms are what a count of the list gives.
func TestPagesAgreeWithTheTruth(t *testing.T) {
	for seed := range uint64(6) {
		d := rand.New(rand.NewPCG(seed, 1))
		cfg := requests.Config{
			Rate: 1 + 12*d.Float64(), Prompt: 20 + d.IntN(200), Output: 10 + d.IntN(60), Context: 512 << d.IntN(3), Slots: 4 + d.IntN(28), Queue: 4 + d.IntN(40),
			Blocks: 160 + d.IntN(200), Aborts: .4 * d.Float64(), Errors: .2 * d.Float64(), PrefixHits: d.Float64(), Drafts: d.IntN(4), Accepted: d.Float64(),
		}
		a, b := process(t, cfg, seed, full), process(t, cfg, seed+100, full)
		until := time.Duration(20+d.IntN(40)) * time.Second
		a.Advance(until)
		b.Advance(until)
		all := []*requests.Process{a, b}
		w := requests.Truth(all, -1, until)
		for i := range engines {
			e := &engines[i]
			text := e.Page(input(a, b))
			page := pagetest.Parse(t, text)
			checked := 0
			for _, c := range counted {
				if !strings.Contains(" "+c.engines+" ", " "+e.Name+" ") {
					continue
				}
				sum := 0.0
				for _, s := range page.Find(c.sample, c.labels...) {
					sum += s.Value
				}
				assert.Equal(t, float64(c.want(&w)), sum, "%s: %s %v, seed %d", e.Name, c.sample, c.labels, seed)
				checked++
			}
			assert.Positive(t, checked, e.Name)
			for j := range e.rows {
				if r := &e.rows[j]; r.bounds != nil && listed(r.figure) && (r.when == nil || !r.merged) {
					checkHistogram(t, e, r, page, all, until)
				}
			}
		}
		if t.Failed() {
			return
		}
	}
}

// listed are the figures that the list of requests knows: not those of steps.
func listed(f requests.Figure) bool {
	return f != requests.StepTokens && f != requests.StepBatch && f != requests.StepSeconds
}

func checkHistogram(t *testing.T, e *Engine, r *row, page pagetest.Page, all []*requests.Process, until time.Duration) {
	t.Helper()
	name := e.prefix + r.name
	if strings.HasPrefix(r.name, "=") {
		name = r.name[1:]
	}
	values := requests.Values(all, r.figure, -1, until)
	total := 0.0
	for _, v := range values {
		total += v * r.factor()
	}
	copies := 1
	if e.repeated != nil && !r.merged {
		copies = len(e.repeated(&view{State: requests.State{}, in: &Input{}}))
	}
	got, sum := map[string]float64{}, 0.0
	for _, s := range page.Samples {
		switch s.Name {
		case name + "_bucket":
			got[s.Labels["le"]] += s.Value
		case name + "_sum":
			sum += s.Value
		case name + "_count":
			got["count"] += s.Value
		}
	}
	require.NotEmpty(t, got, name)
	for le, n := range got {
		want := len(values)
		if le != "+Inf" && le != "count" {
			bound, err := strconv.ParseFloat(le, 64)
			require.NoError(t, err)
			want = sort.Search(len(values), func(i int) bool { return values[i] > bound/r.factor() })
		}
		assert.Equal(t, float64(want*copies), n, "%s: %s le %s", e.Name, name, le)
	}
	assert.InDelta(t, total*float64(copies), sum, 1e-6*total+1e-9, "%s: %s_sum", e.Name, name)
}

// What a torn read is: one bucket with less than the one below it, and the count as it was.
func TestRaceIsOneFallingBucket(t *testing.T) {
	p := process(t, busy(), 1, full)
	p.Advance(time.Minute)
	for i := range engines {
		e := &engines[i]
		in := input(p)
		sound := e.Page(in)
		in.Race = true
		torn := e.Page(in)
		falls := 0
		var last pagetest.Sample
		for _, s := range pagetest.Parse(t, torn).Samples {
			if strings.HasSuffix(s.Name, "_bucket") && s.Name == last.Name && last.Labels["le"] != "+Inf" && s.Value < last.Value {
				falls++
			}
			last = s
		}
		if !strings.Contains(string(sound), " histogram\n") {
			assert.Equal(t, sound, torn, e.Name)
			continue
		}
		assert.Equal(t, 1, falls, e.Name)
	}
}
