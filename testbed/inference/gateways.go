// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
)

// served is a model as a gateway knows it.
type served struct {
	model string
	whole *about
	ranks []*about // servers
}

var lost = outcome(requests.Failed, requests.Lost)

// gateways are what the page of each gives: all is of every model.
var gateways = map[string]struct {
	engine string
	begins begins
	wants  func(p *page, all *about, models []served)
}{
	"dynamo": {"dynamo", nothing, func(p *page, _ *about, models []served) {
		for i := range models {
			m := &models[i]
			v := p.of(subject{attributes: []string{"inference.gateway=frontend", model(strings.ToLower(m.model))}, of: []*about{m.whole}, all: m.whole}).
				histogram("request.duration", requests.Duration).histogram("time_to_first_token", requests.FirstToken).
				histogram("inter_token_latency", requests.InterToken).histogram("request.tokens", requests.PromptTokens, tokens("input")).
				histogram("request.tokens", requests.OutputTokens, tokens("output")).
				gauge("requests", func(a *about) float64 { return running(a) + waiting(a) - noToken(a) }, state("running")).
				gauge("requests", noToken, state("waiting")).count("tokens", outputTokens, tokens("output"))
			const chat = "gen_ai.operation.name=chat"
			v.counted().count("requests.finished", succeeded, ended("success"), chat).
				count("requests.finished", lost, ended("error"), finish("internal"), chat).
				count("requests.finished", outcome(requests.Cancelled), ended("cancelled"), finish("cancelled"), chat).
				count("requests.finished", outcome(requests.Rejected), ended("rejected"), finish("overload"), chat)
		}
	}},
	"epp": {"llm_d", nothing, func(p *page, all *about, models []served) {
		const pool = "inference.gateway=llama-pool"
		for i := range models {
			m := &models[i]
			v := p.of(subject{attributes: []string{pool, model(m.model)}, of: []*about{m.whole}, all: m.whole}).
				histogram("request.duration", requests.Duration).histogram("time_to_first_token", requests.FirstToken).
				histogram("inter_token_latency", requests.InterToken).histogram("time_per_output_token", requests.PerOutputToken).
				histogram("queue_time", requests.QueueTimeAtStart).
				histogram("time_per_token", requests.DurationPerToken, "inference.includes=prefill,queue").
				histogram("request.tokens", requests.PromptTokens, tokens("input")).
				histogram("request.tokens", requests.OutputTokens, tokens("output")).
				histogram("request.tokens", requests.CachedTokens, tokens("cached")).
				gauge("requests", func(a *about) float64 { return running(a) + waiting(a) }, state("running")).
				gauge("requests", waiting, state("waiting")).count("requests.finished", succeeded, ended("success"))
			v.counted().count("requests.finished", lost, ended("error"), finish("ModelServerError")).
				count("requests.finished", outcome(requests.Rejected), ended("rejected"), finish("ResourceExhausted"))
		}
		mean := func(of func(*about) float64) func(*about) float64 {
			return func(a *about) float64 { return quotient(of(a), float64(a.state.Engines)) }
		}
		v := p.of(subject{attributes: []string{pool}, of: []*about{all}, all: all})
		v.gauge("endpoints.ready", ready)
		v.gauge("pool.kv_cache.utilization", utilization, "inference.pool=llama-pool").
			gauge("pool.requests.mean", mean(running), state("running"), "inference.pool=llama-pool").
			gauge("pool.requests.mean", mean(waiting), state("waiting"), "inference.pool=llama-pool")
	}},
	"vllm-router": {"vllm_router", ofSeries, func(p *page, all *about, models []served) {
		const router = "inference.gateway=router"
		p.of(subject{attributes: []string{router}, of: []*about{all}, all: all}).gauge("requests", running, state("running")).
			gauge("requests", waiting, state("waiting")).gauge("endpoints.ready", ready)
		for i := range models {
			m := &models[i]
			v := p.of(subject{attributes: []string{router, model(m.model)}, of: m.ranks, all: m.whole}).
				histogram("request.duration", requests.Duration).count("requests.finished", succeeded, ended("success")).
				count("tokens", inputTokens, tokens("input")).count("tokens", outputTokens, tokens("output"))
			v.counted().count("requests.finished", lost, ended("error"), finish("backend_error"))
		}
	}},
}

// ready are engines that serve.
func ready(a *about) float64 {
	if a.state.Up {
		return float64(a.state.Engines)
	}
	return 0
}
