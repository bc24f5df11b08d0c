// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import "github.com/otelcol-gpu/otelcol-gpu/internal/queries"

// ofInference begins the names of what is recorded of inference services.
const ofInference = "namespace_service:inference_"

// inferenceRecording are the figures of inference services, and what their objectives
// count. A figure is absent where a part of its service is not known; what objectives
// count is not, for alerts must not end when pages do.
func inferenceRecording(o objectives) []rule {
	known := queries.Whole{Over: queries.InferenceWindow}
	rules := []rule{
		{Record: ofInference + "output_tokens:rate5m", Expr: known.OutputTokens()},
		{Record: ofInference + "input_tokens:rate5m", Expr: known.InputTokens()},
		{Record: ofInference + "tokens_per_device:rate5m", Expr: known.TokensPerDevice(recordHeld)},
		{Record: ofInference + "tokens_per_joule:rate5m", Expr: known.TokensPerJoule()},
	}
	for _, h := range []struct{ name, histogram string }{
		{"ttft", queries.TimeToFirstToken},
		{"tpot", queries.TimePerToken},
		{"itl", queries.InterTokenLatency},
		{"request", queries.RequestDuration},
		{"queue", queries.InferenceQueueTime},
	} {
		for _, q := range []struct {
			name  string
			value float64
		}{{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}} {
			rules = append(rules, rule{Record: ofInference + h.name + "_seconds:" + q.name, Expr: known.Quantile(q.value, h.histogram)})
		}
	}
	rules = append(rules, []rule{
		{Record: ofInference + "request_seconds:mean5m", Expr: known.Mean(queries.RequestDuration)},
		{Record: ofInference + "errors:ratio5m", Expr: known.ErrorRatio()},
		{Record: ofInference + "kv_cache:max", Expr: known.KVCache("max")},
		{Record: ofInference + "kv_cache:avg", Expr: known.KVCache("avg")},
		{Record: ofInference + "demand:requests", Expr: known.Demand()},
		{Record: ofInference + "saturation:ratio", Expr: known.Saturation()},
		{Record: ofInference + "prefix_cache_hits:ratio5m", Expr: known.PrefixHits()},
		{Record: ofInference + "speculation_accepted:ratio5m", Expr: known.Accepted()},
		{Record: ofInference + "batch:mean5m", Expr: known.Batch()},
	}...)
	for _, n := range indicators(o) {
		rules = append(rules, n.rules()...)
	}
	return rules
}
