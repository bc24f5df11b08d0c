// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/series"
)

// acme is an engine with a row of each kind.
func acme() *families.Engine {
	return &families.Engine{
		Name: "acme", Prefixes: []string{"acme:", "acme_"}, Model: []string{"model_name", "model"}, Rank: "engine", Lowest: []string{"tp_rank", "pp_rank"}, Stage: "pp_rank", Repeats: []string{"twin"},
		Rows: []families.Row{
			{Metric: &names.GenAIRequestDuration, From: []string{"e2e_ms"}, Div: 1000},
			{Metric: &names.InferenceTokens, Attributes: []families.Attribute{{Key: names.InferenceTokenType, Value: "output"}}, From: []string{"new_tokens", "old_tokens"}},
			{Metric: &names.InferenceRequestsFinished, From: []string{"ended"}, Dimensions: []families.Dimension{
				{Label: "why", Attribute: names.InferenceFinish, Outcome: names.OutcomeSuccess},
			}},
			{Metric: &names.InferenceRequests, Attributes: []families.Attribute{{Key: names.InferenceState, Value: "running"}}, From: []string{"running"}},
			{Metric: &names.InferenceKVCacheUtilization, From: []string{"blocks"}, Where: families.Selector{Label: "kind", Value: "used"},
				With: "blocks", WithWhere: families.Selector{Label: "kind", Value: "max"}, Rule: families.Quotient},
			{Metric: &names.InferenceKVCacheUtilization, From: []string{"blocks"}, Where: families.Selector{Label: "kind", Value: "fraction"}},
			{Metric: &names.InferenceKVCacheUtilization, From: []string{"usage_perc"}, Negative: true, Fold: families.Highest},
			{Metric: &names.InferenceQueueTime, From: []string{"queue_us"}, With: "done", Rule: families.Mean, Div: 1e6},
			{Metric: &names.InferenceKVCacheCapacity, From: []string{"cache_info"}, Rule: families.LabelProduct, WithLabels: []string{"blocks", "size"}},
			{Metric: &names.InferenceLoraAdapters, Attributes: []families.Attribute{{Key: names.InferenceLoraState, Value: "running"}},
				From: []string{"lora_info"}, Rule: families.LabelList, WithLabels: []string{"running"}},
			{Metric: &names.InferencePreemptions, From: []string{"preempted"}, Unless: []string{"preempted_v2"}},
			{Metric: &names.InferenceModelLoadTime, From: []string{"load"}, ZeroIsAbsent: true},
			{Metric: &names.InferenceTokens, Attributes: []families.Attribute{{Key: names.InferenceTokenType, Value: "input"}},
				From: []string{"live_tokens"}, Where: families.Selector{Label: "mode", Value: "computed"}, Or: "cached"},
			{Metric: &names.InferenceTokens, Attributes: []families.Attribute{{Key: names.InferenceTokenType, Value: "input"}}, From: []string{"prompt_tokens"}},
			{Metric: &names.InferencePrefixCacheQueries, From: []string{"prompt_tokens"}, Beside: "cached_tokens"},
			{Metric: &names.InferenceSpeculationAcceptanceRatio, From: []string{"accepted_rate"}, With: "accepted_length", Rule: families.Given},
			{Metric: &names.GenAITimeToFirstToken, From: []string{"=server_ttft", "ttft"}},
			{Metric: &names.InferenceRequestsFinished, Attributes: []families.Attribute{{Key: names.InferenceOutcome, Value: names.OutcomeSuccess}},
				From: []string{"timed"}, Where: families.Selector{Label: "status", Value: "ok"}, Rule: families.CountOf},
			{Metric: &names.InferenceRequestsFinished, From: []string{"refused"}, Dimensions: []families.Dimension{
				{Label: "code", Attribute: names.InferenceFinish, Outcome: names.OutcomeRejected},
			}},
		},
		Dropped: []string{"acme_gpu_*"},
	}
}

// shell is a server that may embed acme, and counts the same requests.
func shell() *families.Engine {
	return &families.Engine{
		Name: "shell", Prefixes: []string{"shell_"}, Model: []string{"model"},
		Rows: []families.Row{
			{Metric: &names.InferenceRequests, Attributes: []families.Attribute{{Key: names.InferenceState, Value: "waiting"}}, From: []string{"pending"}},
			{Metric: &names.InferenceExecutions, From: []string{"executions"}},
		},
	}
}

// twin is a server that acme prints the families of too.
func twin() *families.Engine {
	return &families.Engine{Name: "twin", Prefixes: []string{"twin_"}, Rows: []families.Row{
		{Metric: &names.InferenceRequests, Attributes: []families.Attribute{{Key: names.InferenceState, Value: "running"}}, From: []string{"batch"}},
		{Metric: &names.InferenceBatchSize, From: []string{"sizes"}},
	}}
}

// gate is a gateway.
func gate() *families.Engine {
	return &families.Engine{
		Name: "gate", Gateway: true, Prefixes: []string{"gate_"}, Model: []string{"model"}, Named: "door", NamedBy: []string{"ready"}, NamedLabel: "pool",
		Rows: []families.Row{
			{Metric: &names.InferenceGatewayRequests, From: []string{"inflight"}, With: "queued", Rule: families.Difference},
			{Metric: &names.InferenceGatewayRequestsFinished, From: []string{"seconds"}, Rule: families.CountOf},
			{Metric: &names.InferenceGatewayTokens, From: []string{"length"}, Rule: families.SumOf},
			{Metric: &names.InferenceGatewayEndpointsReady, From: []string{"ready"}, Dimensions: []families.Dimension{{Label: "pool", Attribute: names.InferenceGateway}}},
		},
	}
}

// story translates pages one after the other, 15 seconds apart.
func story(t *testing.T, o Options, pages ...string) []string {
	t.Helper()
	o.Normalised = true
	o.MaxBounds, o.MaxModels = max(o.MaxBounds, 3), max(o.MaxModels, 3)
	if o.Series == nil {
		o.Series = series.NewBudget(100)
	}
	tr := New(families.NewIndex([]*families.Engine{acme(), shell(), twin(), gate()}), o)
	var out []string
	for i, lines := range pages {
		now := time.Unix(1000+int64(15*i), 0)
		clock = pcommon.NewTimestampFromTime(now)
		rm := pageOf(lines)
		tr.Page(rm, 1, now)
		out = append(out, text(rm))
	}
	return out
}

func TestPages(t *testing.T) {
	for name, tt := range map[string]struct {
		o     Options
		pages []string
		want  []string
	}{
		"an engine in another: what both count is the inner one's": {
			pages: []string{"acme:running{model=m} 1\nshell_pending{model=m} 2\nshell_pending{model=other} 3\nshell_executions_total{model=m} 4"},
			want: []string{"inference.server.executions{model=m} 4 since 1000\ninference.server.requests{model=m,state=running} 1\n" +
				"inference.server.requests{model=other,state=waiting} 3"},
		},
		"milliseconds, model, rank": {
			pages: []string{"acme:e2e_ms{model_name=m,engine=0} h 3 1500 100:1,500:2"},
			want:  []string{"gen_ai.server.request.duration{model=m,rank=0} 3 1.5 [0.1 0.5] [1 1 1] since 1000"},
		},
		"starts of several series of a family": {
			pages: []string{"acme_new_tokens_total{model=a} 7\nacme_new_tokens_total{model=b} 8\nacme_new_tokens_total{model=c} 9\n" +
				"acme_new_tokens_created{model=b} 901\nacme_new_tokens_created{model=a} 900\nacme_old_tokens_created{model=c} 902"},
			want: []string{"inference.server.tokens{model=a,type=output} 7 since 900\ninference.server.tokens{model=b,type=output} 8 since 901\n" +
				"inference.server.tokens{model=c,type=output} 9 since 1000"},
		},
		"what is left out is no loss of the scraper's": {
			pages: []string{"acme_new_tokens_total 7\nacme_new_tokens_created 900\nprocess_start_time_seconds 500\nacme:e2e_ms h 3 1500 100:1,500:2\nacme:other 1\n" +
				"scrape_samples_post_metric_relabeling 9"},
			want: []string{"acme:other{} 1\ngen_ai.server.request.duration{} 3 1.5 [0.1 0.5] [1 1 1] since 500\ninference.server.tokens{type=output} 7 since 900\n" +
				"scrape_samples_post_metric_relabeling{} 1"},
		},
		"… nor is it where the names of the page stay": {
			o:     Options{Raw: true},
			pages: []string{"acme:running 2\nacme_new_tokens_created 900\nscrape_samples_post_metric_relabeling 2"},
			want:  []string{"acme:running{} 2\ninference.server.requests{state=running} 2\nscrape_samples_post_metric_relabeling{} 1"},
		},
		"a counter without _total": {
			pages: []string{"acme:new_tokens{model=m} 7"},
			want:  []string{"inference.server.tokens{model=m,type=output} 7 since 1000"},
		},
		"a histogram without a sum has none here": {
			pages: []string{"acme:e2e_ms h 3 - 100:1\ngate_length h 3 - 10:1\ngate_seconds h 3 - 1:1"},
			want: []string{"gen_ai.server.request.duration{} 3 - [0.1] [1 2] since 1000\n" +
				"inference.gateway.requests.finished{gateway=door} 3 since 1000"},
		},
		"increments are no counter": {
			pages: []string{"gate_seconds delta 3 4.5 1:1"},
			want:  []string{"gate_seconds{} 3 4.5 [1] [1 2] since 0"},
		},
		"adapters are counted once": {
			o:     Options{LoraNames: []string{"b"}},
			pages: []string{"acme:lora_info{running=a;~b;b;a~;} 11"},
			want:  []string{"inference.server.lora.adapters{name=b,state=running} 1\ninference.server.lora.adapters{state=running} 1"},
		},
		"too many bounds": {
			pages: []string{"acme:e2e_ms h 9 1 1:1,10:2,11:3,100:4,10000:6"},
			want:  []string{"gen_ai.server.request.duration{} 9 0.001 [0.01 0.011 0.1] [2 1 1 5] since 1000"},
		},
		"reasons": {
			pages: []string{"acme:ended_total{why=stop} 3\nacme:ended_total{why=abort} 1\nacme:ended_total{why=new} 2"},
			want: []string{"inference.server.requests.finished{finish_reason=abort,outcome=cancelled} 1 since 1000\n" +
				"inference.server.requests.finished{finish_reason=new,outcome=success} 2 since 1000\n" +
				"inference.server.requests.finished{finish_reason=stop,outcome=success} 3 since 1000"},
		},
		"states are added, ranks that repeat count once, data-parallel engines apart": {
			pages: []string{"acme:running{tp_rank=1,engine=0} 3\nacme:running{tp_rank=0,engine=0} 4\nacme:running{tp_rank=0,engine=1} 5\nacme:running{tp_rank=0,engine=0,pid=7} 1"},
			want:  []string{"inference.server.requests{rank=0,state=running} 5\ninference.server.requests{rank=1,state=running} 5"},
		},
		"sum and count without bounds": {
			pages: []string{"acme:queue_us_total 3e6\nacme:done_total 2"},
			want:  []string{"inference.server.request.queue_time{none} 2 3 [] [] since 1000"},
		},
		"sums that cannot be": {
			pages: []string{"acme:queue_us_total 3e6\nacme:done_total 1e30\nacme:new_tokens_total{w=a} 1e308\nacme:new_tokens_total{w=b} 1e308\n" +
				"acme:running{w=a} 1e308\nacme:running{w=b} 1e308"},
			want: []string{"acme:new_tokens_total{w=a} 1e+308\nacme:new_tokens_total{w=b} 1e+308\nacme:queue_us_total{} 3e+06\n" +
				"acme:running{w=a} 1e+308\nacme:running{w=b} 1e+308"},
		},
		"adapters with a name": {
			o:     Options{LoraNames: []string{"b", "z"}},
			pages: []string{"acme:lora_info{running=a;b;c} 11"},
			want:  []string{"inference.server.lora.adapters{name=b,state=running} 1\ninference.server.lora.adapters{state=running} 2"},
		},
		"two values of a label are one series, which wins over another family": {
			pages: []string{"acme:live_tokens_total{mode=computed} 3\nacme:live_tokens_total{mode=cached} 2\nacme:live_tokens_total{mode=made} 9\nacme:prompt_tokens_total 4"},
			want:  []string{"inference.server.tokens{type=input} 5 since 1000"},
		},
		"counts of a histogram, and reasons in two families": {
			pages: []string{"acme:timed{status=ok} h 3 2 3:1\nacme:timed{status=bad} h 4 2 3:1\nacme:refused_total{code=full} 1\nacme:ended_total{why=abort} 2"},
			want: []string{"inference.server.requests.finished{finish_reason=abort,outcome=cancelled} 2 since 1000\n" +
				"inference.server.requests.finished{finish_reason=full,outcome=rejected} 1 since 1000\n" +
				"inference.server.requests.finished{outcome=success} 3 since 1000"},
		},
		"one server's families once": {
			pages: []string{"acme:running{model=m} 3\ntwin_batch 3\ntwin_sizes h 2 5 3:1\nup 1", "twin_batch 3\nup 1"},
			want: []string{
				"inference.server.requests{model=m,state=running} 3\ninference.server.up{} 1\ntwin_batch{} 3\ntwin_sizes{} 2 5 [3] [1 1] since 0\nup{} 1",
				"inference.server.requests{state=running} 3\ninference.server.up{} 1\ninference.server.up{} END\nup{} 1",
			},
		},
		"an engine in another that does not name the model, and the other way round": {
			pages: []string{"acme:running{model=m} 3\nshell_pending 2\nshell_executions_total 4", "acme:running 3\nshell_pending{model=m} 2"},
			want: []string{
				"inference.server.executions{} 4 since 1000\ninference.server.requests{model=m,state=running} 3",
				"inference.server.requests{state=running} 3",
			},
		},
		"stages of a pipeline on one page": {
			pages: []string{"acme:running{pp_rank=1,tp_rank=0} 5\nacme:running{pp_rank=0,tp_rank=1} 4\nacme:running{pp_rank=0,tp_rank=0} 5\n" +
				"acme:usage_perc{pp_rank=0} 0.2\nacme:usage_perc{pp_rank=1} 0.6"},
			want: []string{"inference.server.kv_cache.utilization{} 0.6\ninference.server.requests{state=running} 5"},
		},
		"a page of a later stage": {
			pages: []string{"acme:running{pp_rank=1} 5\nacme:new_tokens_total{pp_rank=1} 9\nacme:usage_perc{pp_rank=1} 0.6\nacme:usage_perc{pp_rank=2} 0.4\nacme:e2e_ms h 3 2 1:1\nup 1"},
			want:  []string{"gen_ai.server.request.duration{} 3 0.002 [0.001] [1 2] since 1000\ninference.server.kv_cache.utilization{} 0.6\ninference.server.up{} 1\nup{} 1"},
		},
		"others pass, those that others have better do not": {
			pages: []string{"acme:running 1\nacme:other 2\nacme_gpu_power 300\nup 1"},
			want:  []string{"acme:other{} 2\ninference.server.requests{state=running} 1\ninference.server.up{} 1\nup{} 1"},
		},
		"others are dropped": {
			o:     Options{DropUnmapped: true},
			pages: []string{"acme:running 1\nacme:other 2\nscrape_samples 3"},
			want:  []string{"inference.server.requests{state=running} 1\nscrape_samples{} 3"},
		},
		"a page of no known engine": {
			o:     Options{DropUnmapped: true},
			pages: []string{"other 2\nup 1"},
			want:  []string{"other{} 2\nup{} 1"},
		},
		"both": {
			o:     Options{Raw: true},
			pages: []string{"acme:running{model=m} 1"},
			want:  []string{"acme:running{model=m} 1\ninference.server.requests{model=m,state=running} 1"},
		},
		"too many models, excluded models": {
			o:     Options{ModelsExclude: []string{"x"}},
			pages: []string{"acme:running{model=a} 1\nacme:running{model=b} 2\nacme:running{model=x} 9\nacme:running{model=c} 3\nacme:running{model=d} 4"},
			want: []string{"acme:running{model=d} 4\ninference.server.requests{model=a,state=running} 1\ninference.server.requests{model=b,state=running} 2\n" +
				"inference.server.requests{model=c,state=running} 3"},
		},
		"too many series": {
			o:     Options{Series: series.NewBudget(1)},
			pages: []string{"acme:new_tokens_total{model=a} 1\nacme:new_tokens_total{model=b} 2"},
			want:  []string{"acme:new_tokens_total{model=b} 2\ninference.server.tokens{model=a,type=output} 1 since 1000"},
		},
		"further labels": {
			o:     Options{Attributes: []string{"priority"}},
			pages: []string{"acme:running{priority=1} 1\nacme:running{priority=2} 2"},
			want:  []string{"inference.server.requests{priority=1,state=running} 1\ninference.server.requests{priority=2,state=running} 2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, story(t, tt.o, tt.pages...))
		})
	}
}
