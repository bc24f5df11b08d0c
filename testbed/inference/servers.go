// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
)

// pod is what the page of an engine is of.
type pod struct {
	model string
	whole *about
	ranks []*about
	hint  string // the model, for pages that do not name it
}

// merged is one series of all ranks.
func (p *pod) merged(attributes ...string) subject {
	return subject{attributes: append([]string{model(p.model)}, attributes...), of: []*about{p.whole}, all: p.whole}
}

// ranked is a series of each rank; a series of the only one has no rank if alone is false.
func (p *pod) ranked(alone bool, attributes ...string) (out []subject) {
	for i, a := range p.ranks {
		s := subject{of: []*about{a}, all: a}
		s.attributes = append(s.attributes, attributes...)
		if len(p.ranks) > 1 || alone {
			s.attributes = append(s.attributes, rank(i))
		}
		out = append(out, s)
	}
	return out
}

func anonymous(p *pod) subject { return subject{of: []*about{p.whole}, all: p.whole} }

// vllm are the series of vLLM's families that most versions have.
func vllm(v view) view {
	return v.histogram("gen_ai.server.request.duration", requests.Duration).
		histogram("gen_ai.server.time_to_first_token", requests.FirstToken).
		histogram("inter_token_latency", requests.InterToken).
		histogram("request.tokens", requests.PromptTokens, tokens("input")).
		histogram("request.tokens", requests.OutputTokens, tokens("output")).
		gauge("requests", running, state("running")).gauge("requests", waiting, state("waiting")).
		gauge("kv_cache.utilization", utilization, tier("device"))
}

// phases are the times of a request's phases.
func phases(v view) view {
	return v.histogram("request.queue_time", requests.QueueTime).histogram("request.prefill_time", requests.PrefillTime).
		histogram("request.decode_time", requests.DecodeTime).histogram("request.inference_time", requests.InferenceTime)
}

func ioTokens(v view) view {
	return v.count("tokens", inputTokens, tokens("input")).count("tokens", outputTokens, tokens("output"))
}

func speculation(v view) view {
	if drafts(v.subjects[0].all) == 0 {
		return v
	}
	return v.count("speculation.drafts", now(func(s *requests.State) int { return s.Counts.Drafts })).
		count("speculation.draft_tokens", now(func(s *requests.State) int { return s.DraftTokens })).
		count("speculation.accepted_tokens", now(func(s *requests.State) int { return s.AcceptedTokens }))
}

func vllmFinished(v view, all ...requests.Reason) view {
	for _, r := range all {
		o := map[requests.Outcome]string{requests.Success: "success", requests.Cancelled: "cancelled", requests.Failed: "error"}[r.Outcome()]
		v.count("requests.finished", reason(r), ended(o), finish(r.String()))
	}
	return v
}

func cacheTokens(v view) {
	v.count("prefix_cache.queries", queried, tier("device")).count("prefix_cache.hits", hits, tier("device"))
}

func external(v view) {
	zero := func(*about) float64 { return 0 }
	v.count("prefix_cache.queries", zero, tier("external")).count("prefix_cache.hits", zero, tier("external"))
}

func sleeps(v view) {
	asleep := func(a *about) float64 {
		if a.state.Asleep {
			return 1
		}
		return 0
	}
	v.gauge("state", func(a *about) float64 { return 1 - asleep(a) }, "inference.server.state=awake").
		gauge("state", asleep, "inference.server.state=weights_offloaded").
		gauge("state", func(*about) float64 { return 0 }, "inference.server.state=discarded")
}

func adapters(p *page, d *pod) {
	all := d.whole.state.Mixes
	if len(d.whole.state.Adapters) == 0 || len(all) == 0 {
		return
	}
	newest := all[0]
	for _, m := range all {
		if m.Seen > newest.Seen {
			newest = m
		}
	}
	v := p.of(anonymous(d))
	v.gauge("lora.adapters", listed(newest.Running), "inference.lora.state=running").
		gauge("lora.adapters", listed(newest.Waiting), "inference.lora.state=waiting").
		gauge("lora.adapters", now(func(s *requests.State) int { return len(s.Adapters) }), "inference.lora.state=limit")
}

func listed(list string) func(*about) float64 {
	n := 0.0
	if list != "" {
		n = float64(1 + strings.Count(list, ","))
	}
	return func(*about) float64 { return n }
}

const stop, length, abort, fails = requests.Stop, requests.Length, requests.Abort, requests.Error

// servers are what the page of each engine gives.
var servers = map[string]struct {
	engine string
	begins begins
	wants  func(p *page, d *pod)
}{
	"vllm-0.5": {"vllm", ofProcess, func(p *page, d *pod) {
		v := speculation(ioTokens(vllm(p.of(d.merged()))))
		v.gauge("requests", func(*about) float64 { return 0 }, state("swapped")).count("preemptions", preemptions).
			gauge("kv_cache.utilization", func(*about) float64 { return 0 }, tier("host"))
		vllmFinished(v.counted(), stop, length, abort)
		p.of(anonymous(d)).gauge("kv_cache.capacity", capacity, tier("device"))
		adapters(p, d)
	}},
	"vllm-0.8": {"vllm", ofSeries, func(p *page, d *pod) {
		v := speculation(phases(ioTokens(vllm(p.of(d.merged())))))
		vllmFinished(v, stop, length, abort).count("preemptions", preemptions).histogram("iteration.tokens", requests.StepTokens).
			count("prefix_cache.queries", queriedBlocks, tier("device")).count("prefix_cache.hits", hitBlocks, tier("device"))
		p.of(anonymous(d)).gauge("kv_cache.capacity", capacity, tier("device"))
		adapters(p, d)
	}},
	"vllm-0.11": {"vllm", ofSeries, func(p *page, d *pod) {
		v := speculation(phases(ioTokens(vllm(p.of(d.ranked(true, model(d.model))...)))))
		vllmFinished(v, stop, length, abort).count("preemptions", preemptions).histogram("iteration.tokens", requests.StepTokens).
			histogram("gen_ai.server.time_per_output_token", requests.PerOutputToken)
		cacheTokens(v)
		external(v)
		p.of(d.ranked(true)...).gauge("kv_cache.capacity", capacity, tier("device"))
		adapters(p, d)
	}},
	"vllm-0.21": {"vllm", ofSeries, func(p *page, d *pod) {
		v := speculation(phases(ioTokens(vllm(p.of(d.ranked(true, model(d.model))...)))))
		vllmFinished(v, stop, length, abort, fails).count("preemptions", preemptions).histogram("iteration.tokens", requests.StepTokens).
			histogram("gen_ai.server.time_per_output_token", requests.PerOutputToken)
		cacheTokens(v)
		external(v)
		sleeps(v)
		p.of(d.ranked(true)...).gauge("kv_cache.capacity", capacity, tier("device"))
		adapters(p, d)
	}},
	"ray-vllm": {"vllm", nothing, func(p *page, d *pod) {
		// Each worker is rank 0 of its own engine: they are added up, of utilization
		// the highest counts.
		s := subject{attributes: []string{model(d.model), rank(0)}, of: d.ranks, all: d.whole}
		v := p.of(s)
		highest := func(*about) float64 {
			most := 0.0
			for _, a := range d.ranks {
				most = max(most, utilization(a))
			}
			return most
		}
		v.histogram("gen_ai.server.request.duration", requests.Duration).histogram("gen_ai.server.time_to_first_token", requests.FirstToken).
			histogram("gen_ai.server.time_per_output_token", requests.PerOutputToken).histogram("inter_token_latency", requests.InterToken).
			histogram("request.tokens", requests.PromptTokens, tokens("input")).histogram("request.tokens", requests.OutputTokens, tokens("output")).
			gauge("requests", running, state("running")).gauge("requests", waiting, state("waiting")).
			gauge("kv_cache.utilization", highest, tier("device")).gauge("kv_cache.capacity", capacity, tier("device")).
			histogram("iteration.tokens", requests.StepTokens)
		phases(v)
		sleeps(v)
		c := v.counted()
		vllmFinished(speculation(ioTokens(c)), stop, length, abort, fails).count("preemptions", preemptions)
		cacheTokens(c)
	}},
	"nim-1": {"nim", ofProcess, func(p *page, d *pod) {
		v := ioTokens(vllm(p.of(d.merged()))).gauge("requests.limit", slots).count("requests.finished", failed, ended("error"))
		if succeeded(d.whole) == 0 { // no reason has been counted yet
			v.count("requests.finished", succeeded, ended("success"))
			return
		}
		vllmFinished(v.counted(), stop, length)
	}},
	"lmdeploy": {"lmdeploy", ofProcess, func(p *page, d *pod) {
		phases(ioTokens(vllm(p.of(d.ranked(true, model(d.model))...)))).
			count("requests.finished", succeeded, ended("success")).count("requests.finished", failed, ended("error")).
			count("prefix_cache.queries", inputTokens, tier("device")).count("prefix_cache.hits", cachedInput, tier("device"))
	}},
	"sglang-0.5": {"sglang", nothing, func(p *page, d *pod) {
		p.of(d.merged()).histogram("gen_ai.server.request.duration", requests.Duration).
			histogram("gen_ai.server.time_to_first_token", requests.FirstToken).histogram("inter_token_latency", requests.InterToken).
			count("requests.finished", succeeded, ended("success")).count("requests.finished", reason(abort), ended("cancelled")).
			count("prefix_cache.queries", finishedInput, tier("device")).count("prefix_cache.hits", finishedCached, tier("device"))
		paused := func(a *about) float64 {
			if a.state.Asleep {
				return running(a)
			}
			return 0
		}
		v := p.of(d.ranked(false, model(d.model))...)
		v.histogram("request.queue_time", requests.QueueTimeAtStart).
			gauge("requests", func(a *about) float64 { return running(a) - paused(a) }, state("running")).
			gauge("requests", waiting, state("waiting")).gauge("requests", paused, state("paused")).
			sources("tokens", []string{tokens("input")}, func(a *about) float64 { return inputTokens(a) - cachedInput(a) }, cachedInput).
			count("tokens", outputTokens, tokens("output")).count("preemptions", preemptions).
			gauge("kv_cache.utilization", utilization, tier("device")).gauge("kv_cache.capacity", capacity, tier("device"))
		for _, s := range v.subjects {
			if c := &s.all.state.Counts; c.AcceptedTokens > 0 {
				p.of(s).gauge("speculation.acceptance_ratio", func(a *about) float64 { return quotient(float64(c.AcceptedTokens), float64(c.DraftTokens)) })
			}
			if n := len(s.all.state.Adapters); n > 0 {
				list := ""
				if mixes := s.all.state.Mixes; len(mixes) > 0 {
					list = mixes[len(mixes)-1].Running
				}
				p.of(s).gauge("lora.adapters", listed(list), "inference.lora.state=running").
					gauge("lora.adapters", func(*about) float64 { return float64(n) }, "inference.lora.state=limit")
			}
		}
	}},
	"tgi-3": {"tgi", nothing, func(p *page, d *pod) {
		s := d.merged()
		s.attributes = []string{model(d.hint)}
		v := p.of(s).histogram("gen_ai.server.request.duration", requests.Duration).
			histogram("request.time_per_token", requests.InferencePerToken, "inference.includes=prefill").
			histogram("request.queue_time", requests.QueueTime).histogram("request.inference_time", requests.InferenceTime).
			histogram("request.tokens", requests.PromptTokens, tokens("input")).histogram("request.tokens", requests.OutputTokens, tokens("output")).
			histogram("batch.size", requests.StepBatch).gauge("requests", running, state("running")).gauge("requests", waiting, state("waiting")).
			count("requests.finished", succeeded, ended("success")).count("tokens", finishedOutput, tokens("output"))
		v.counted().count("requests.finished", failed, ended("error"), finish("generation")).
			count("requests.finished", outcome(requests.Rejected), ended("rejected"), finish("overloaded"))
	}},
	"trtllm-1.1": {"tensorrt_llm", ofSeries, func(p *page, d *pod) {
		v := p.of(d.merged()).histogram("gen_ai.server.request.duration", requests.Duration).
			histogram("gen_ai.server.time_to_first_token", requests.FirstTokenOfFinished).
			histogram("gen_ai.server.time_per_output_token", requests.PerOutputToken).histogram("request.queue_time", requests.QueueTime)
		vllmFinished(v.counted(), stop, length)
	}},
	"triton": {"triton", nothing, func(p *page, d *pod) {
		triton(p.of(d.merged())).histogram("gen_ai.server.time_to_first_token", requests.FirstToken).
			gauge("requests", waiting, state("waiting")).gauge("model.load_time", func(*about) float64 { return 21.4 })
	}},
	"triton-trtllm": {"triton", nothing, func(p *page, d *pod) {
		s := d.merged()
		s.attributes = []string{model("tensorrt_llm")}
		triton(p.of(s)).gauge("requests", running, state("running")).gauge("requests", waiting, state("waiting")).
			gauge("requests.limit", slots).gauge("kv_cache.utilization", utilization, tier("device")).
			gauge("kv_cache.capacity", capacity, tier("device"))
	}},
	"llamacpp": {"llamacpp", nothing, func(p *page, d *pod) {
		s := d.merged()
		s.attributes = []string{model(d.hint)}
		v := p.of(s).means("inter_token_latency", finishedOutput, func(a *about) float64 { return a.amount(requests.DecodeTime).sum }).
			count("tokens", inputTokens, tokens("input")).count("tokens", finishedOutput, tokens("output")).
			gauge("requests", running, state("running")).gauge("requests", waiting, state("waiting")).
			gauge("kv_cache.utilization", utilization, tier("device"))
		if drafts(d.whole) > 0 {
			v.count("speculation.draft_tokens", now(func(s *requests.State) int { return s.DraftTokens })).
				count("speculation.accepted_tokens", now(func(s *requests.State) int { return s.AcceptedTokens }))
		}
	}},
}

func triton(v view) view {
	sum := func(f requests.Figure) func(*about) float64 {
		return func(a *about) float64 { return a.amount(f).sum }
	}
	return v.means("gen_ai.server.request.duration", succeeded, sum(requests.Duration)).
		means("request.queue_time", succeeded, sum(requests.QueueTime)).
		count("requests.finished", succeeded, ended("success")).
		count("requests.finished", failed, ended("error"), finish("BACKEND")).
		count("requests.finished", reason(abort), ended("cancelled"), finish("CANCELED")).
		count("requests.finished", outcome(requests.Rejected), ended("rejected"), finish("REJECTED")).
		count("requests.finished", func(*about) float64 { return 0 }, ended("error"), finish("OTHER")).
		count("executions", now(func(s *requests.State) int { return s.Steps })).
		count("inferences", now(func(s *requests.State) int { return s.Batches }))
}
