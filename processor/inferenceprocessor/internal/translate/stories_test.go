// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/series"
)

// What becomes of a series depends on the pages before.
func TestPagesOneAfterAnother(t *testing.T) {
	for name, tt := range map[string]struct {
		o     Options
		pages []string
		want  []string
	}{
		"the newer name, whatever the prefix; the start of _created, then of the process": {
			pages: []string{
				"acme_new_tokens_total{model=m} 7\nacme_old_tokens_total{model=m} 5\nacme_new_tokens_created{model=m} 900",
				"acme_new_tokens_total{model=m} 9\nprocess_start_time_seconds 500\ngo_goroutines 4",
			},
			want: []string{
				"inference.server.tokens{model=m,type=output} 7 since 900",
				"inference.server.tokens{model=m,type=output} 9 since 900",
			},
		},
		"a reset": {
			pages: []string{"acme:new_tokens_total 7", "acme:new_tokens_total 8", "acme:new_tokens_total 2"},
			want: []string{
				"inference.server.tokens{type=output} 7 since 1000",
				"inference.server.tokens{type=output} 8 since 1000",
				"inference.server.tokens{type=output} 2 since 1030",
			},
		},
		"a reset of which the page has the time": {
			pages: []string{
				"acme:new_tokens_total 7\nprocess_start_time_seconds 900", "acme:new_tokens_total 2\nprocess_start_time_seconds 1010",
			},
			want: []string{
				"inference.server.tokens{type=output} 7 since 900",
				"inference.server.tokens{type=output} 2 since 1010",
			},
		},
		"workers are added by increments": {
			pages: []string{
				"acme:new_tokens_total{WorkerId=a} 7\nacme:new_tokens_total{WorkerId=b} 3",
				"acme:new_tokens_total{WorkerId=a} 1\nacme:new_tokens_total{WorkerId=b} 4",
				"acme:new_tokens_total{WorkerId=b} 6\nacme:new_tokens_total{WorkerId=a} END",
				"acme:new_tokens_total{WorkerId=b} END",
			},
			want: []string{
				"inference.server.tokens{type=output} 10 since 1000",
				"inference.server.tokens{type=output} 12 since 1000",
				"inference.server.tokens{type=output} 14 since 1000",
				"inference.server.tokens{type=output} END",
			},
		},
		"a worker joins": {
			pages: []string{"acme:new_tokens_total{WorkerId=a} 7", "acme:new_tokens_total{WorkerId=a} 8\nacme:new_tokens_total{WorkerId=b} 1"},
			want:  []string{"inference.server.tokens{type=output} 7 since 1000", "inference.server.tokens{type=output} 9 since 1000"},
		},
		"histograms of workers": {
			pages: []string{
				"acme:e2e_ms{w=a} h 3 1500 100:1,500:2\nacme:e2e_ms{w=b} h 1 500 100:1,500:1",
				"acme:e2e_ms{w=a} h 1 500 100:0,500:0\nacme:e2e_ms{w=b} h 2 1000 100:2,500:2",
			},
			want: []string{
				"gen_ai.server.request.duration{} 4 2 [0.1 0.5] [2 1 1] since 1000",
				"gen_ai.server.request.duration{} 6 3 [0.1 0.5] [3 1 2] since 1000",
			},
		},
		"a histogram goes on as long as one of its workers does": {
			pages: []string{
				"acme:e2e_ms{w=a} h 3 1500 100:1,500:2\nacme:e2e_ms{w=b} h 1 500 100:1,500:1",
				"acme:e2e_ms{w=a} h END\nacme:e2e_ms{w=b} h 2 1000 100:2,500:2",
				"acme:e2e_ms{w=b} h 3 1100 100:3,500:3",
			},
			want: []string{
				"gen_ai.server.request.duration{} 4 2 [0.1 0.5] [2 1 1] since 1000",
				"gen_ai.server.request.duration{} 5 2.5 [0.1 0.5] [3 1 1] since 1000",
				"gen_ai.server.request.duration{} 6 2.6 [0.1 0.5] [4 1 1] since 1000",
			},
		},
		"the end of what gave a series leaves it to what does now": {
			pages: []string{
				"acme:blocks{kind=used} 1\nacme:blocks{kind=max} 4\nacme:usage_perc 0.5",
				"acme:blocks{kind=used} END\nacme:blocks{kind=max} END\nacme:usage_perc 0.5",
				"acme:usage_perc END",
			},
			want: []string{"inference.server.kv_cache.utilization{} 0.25", "inference.server.kv_cache.utilization{} 0.5", "inference.server.kv_cache.utilization{} END"},
		},
		"the end of a model or a series beyond the limit is its own": {
			o: Options{Series: series.NewBudget(1)},
			pages: []string{
				"acme:new_tokens_total{model=a} 1\nacme:new_tokens_total{model=b} 2\nacme:e2e_ms{model=a} h 1 1 1:1\n" +
					"acme:running{model=a} 1\nacme:running{model=b} 1\nacme:running{model=c} 1\nacme:running{model=d} 1",
				"acme:new_tokens_total{model=a} END\nacme:new_tokens_total{model=b} END\nacme:e2e_ms{model=a} h END\nacme:running{model=a} END\nacme:running{model=d} END",
			},
			want: []string{
				"acme:new_tokens_total{model=a} 1\nacme:new_tokens_total{model=b} 2\nacme:running{model=d} 1\ngen_ai.server.request.duration{model=a} 1 0.001 [0.001] [1 0] since 1000\n" +
					"inference.server.requests{model=a,state=running} 1\ninference.server.requests{model=b,state=running} 1\ninference.server.requests{model=c,state=running} 1",
				"acme:new_tokens_total{model=a} END\nacme:new_tokens_total{model=b} END\nacme:running{model=d} END\ngen_ai.server.request.duration{model=a} END\n" +
					"inference.server.requests{model=a,state=running} END",
			},
		},
		"a reset begins when the process did, if that is known": {
			pages: []string{
				"acme:new_tokens_total 7\nprocess_start_time_seconds 500.9",
				"acme:new_tokens_total 8\nprocess_start_time_seconds 501.1",
				"acme:new_tokens_total 2\nprocess_start_time_seconds 1020",
				"acme:new_tokens_total 9\nprocess_start_time_seconds 1035",
			},
			want: []string{
				"inference.server.tokens{type=output} 7 since 500",
				"inference.server.tokens{type=output} 8 since 500",
				"inference.server.tokens{type=output} 2 since 1020",
				"inference.server.tokens{type=output} 9 since 1035",
			},
		},
		"a worker that is not on one page goes on": {
			pages: []string{
				"acme:new_tokens_total{w=a} 7\nacme:new_tokens_total{w=b} 3",
				"acme:new_tokens_total{w=a} 8\nacme:new_tokens_total{w=b} END",
				"acme:new_tokens_total{w=a} 8\nacme:new_tokens_total{w=b} 5",
				"acme:new_tokens_total{w=a} END\nacme:new_tokens_total{w=b} END",
				"acme:new_tokens_total{w=a} 9\nacme:new_tokens_total{w=b} 5",
			},
			want: []string{
				"inference.server.tokens{type=output} 10 since 1000",
				"inference.server.tokens{type=output} 11 since 1000",
				"inference.server.tokens{type=output} 13 since 1000",
				"inference.server.tokens{type=output} END",
				"inference.server.tokens{type=output} 14 since 1060",
			},
		},
		"markers of a newer prefix, a newer name and another family hide nothing that goes on": {
			pages: []string{
				"acme:new_tokens_total 7\nacme:preempted_v2_total 2\nacme:running 1",
				"acme:new_tokens_total END\nacme_old_tokens_total 8\nacme:preempted_total 4\nacme:preempted_v2_total END\nacme:running END\nacme_running 2",
				"acme_old_tokens_total END\nacme:preempted_total END\nacme_running END",
			},
			want: []string{
				"acme:preempted_v2_total{} 2\ninference.server.requests{state=running} 1\ninference.server.tokens{type=output} 7 since 1000",
				"acme:preempted_v2_total{} END\ninference.server.preemptions{} 4 since 1015\ninference.server.requests{state=running} 2\n" +
					"inference.server.tokens{type=output} 8 since 1000",
				"inference.server.preemptions{} END\ninference.server.requests{state=running} END\ninference.server.tokens{type=output} END",
			},
		},
		"labels that change with the name, and with the family": {
			pages: []string{
				"acme:old_tokens_total{model=m} 7\nacme:prompt_tokens_total{model=m} 4",
				"acme:new_tokens_total{model=n} 8\nacme:old_tokens_total{model=n} 8\nacme:old_tokens_total{model=m} END\n" +
					"acme:live_tokens_total{mode=computed,model=n} 3\nacme:prompt_tokens_total{model=n} 4\nacme:prompt_tokens_total{model=m} END",
			},
			want: []string{
				"inference.server.tokens{model=m,type=input} 4 since 1000\ninference.server.tokens{model=m,type=output} 7 since 1000",
				"inference.server.tokens{model=m,type=input} END\ninference.server.tokens{model=m,type=output} END\n" +
					"inference.server.tokens{model=n,type=input} 3 since 1015\ninference.server.tokens{model=n,type=output} 8 since 1015",
			},
		},
		"another engine in the place of one": {
			pages: []string{"acme:running{model=m} 1\nacme:new_tokens_total{model=m} 2", "shell_pending{model=m} 3\nacme:running{model=m} END\nacme:new_tokens_total{model=m} END"},
			want: []string{
				"inference.server.requests{model=m,state=running} 1\ninference.server.tokens{model=m,type=output} 2 since 1000",
				"inference.server.requests{model=m,state=running} END\ninference.server.requests{model=m,state=waiting} 3\ninference.server.tokens{model=m,type=output} END",
			},
		},
		"other bounds are another series": {
			pages: []string{"acme:e2e_ms h 3 1500 100:1,500:2", "acme:e2e_ms h 4 1600 100:1,200:2"},
			want: []string{
				"gen_ai.server.request.duration{} 3 1.5 [0.1 0.5] [1 1 1] since 1000",
				"gen_ai.server.request.duration{} 4 1.6 [0.1 0.2] [1 1 2] since 1015\ngen_ai.server.request.duration{} END",
			},
		},
		"the end of a histogram": {
			pages: []string{"acme:e2e_ms h 3 1500 100:1,500:2", "acme:e2e_ms h END"},
			want: []string{
				"gen_ai.server.request.duration{} 3 1.5 [0.1 0.5] [1 1 1] since 1000",
				"gen_ai.server.request.duration{} END",
			},
		},
		"a histogram that contradicts itself, or fell while the process went on": {
			pages: []string{
				"acme:e2e_ms h 3 1500 100:5,500:2\nacme:running 1",
				"acme:e2e_ms h 5 1500 100:1,500:2\nprocess_start_time_seconds 10",
				"acme:e2e_ms h 4 1500 100:1,500:2\nprocess_start_time_seconds 10",
			},
			want: []string{
				"acme:e2e_ms{} 3 1500 [100 500] [5 18446744073709551613 1] since 0\ninference.server.requests{state=running} 1",
				"gen_ai.server.request.duration{} 5 1.5 [0.1 0.5] [1 1 3] since 10",
				"acme:e2e_ms{} 4 1500 [100 500] [1 1 2] since 0",
			},
		},
		"the lowest rank leaves": {
			pages: []string{
				"acme:new_tokens_total{tp_rank=0} 7\nacme:new_tokens_total{tp_rank=1} 7\nacme:e2e_ms{tp_rank=0} h 3 1500 100:1,500:2\nacme:e2e_ms{tp_rank=1} h 3 1500 100:1,500:2",
				"acme:new_tokens_total{tp_rank=0} END\nacme:new_tokens_total{tp_rank=1} 9\nacme:e2e_ms{tp_rank=0} h END\nacme:e2e_ms{tp_rank=1} h 4 1600 100:2,500:3",
			},
			want: []string{
				"gen_ai.server.request.duration{} 3 1.5 [0.1 0.5] [1 1 1] since 1000\ninference.server.tokens{type=output} 7 since 1000",
				"gen_ai.server.request.duration{} 4 1.6 [0.1 0.5] [2 1 1] since 1000\ninference.server.tokens{type=output} 9 since 1000",
			},
		},
		"two families that give one series": {
			pages: []string{
				"acme:ended_total{why=} 3\nacme:timed{status=ok} h 4 2 3:1", "acme:ended_total{why=} 4\nacme:timed{status=ok} h 5 2 3:1",
				"acme:ended_total{why=} END\nacme:timed{status=ok} h 6 2 3:1",
			},
			want: []string{
				"inference.server.requests.finished{outcome=success} 7 since 1000", "inference.server.requests.finished{outcome=success} 9 since 1000",
				"inference.server.requests.finished{outcome=success} 10 since 1000",
			},
		},
		"a quotient before the fraction": {
			pages: []string{"acme:blocks{kind=used} 1\nacme:blocks{kind=max} 4\nacme:blocks{kind=fraction} 0.9", "acme:blocks{kind=fraction} 0.9"},
			want:  []string{"inference.server.kv_cache.utilization{} 0.25", "inference.server.kv_cache.utilization{} 0.9"},
		},
		"ratios": {
			pages: []string{"acme:usage_perc{w=a} 0.5\nacme:usage_perc{w=b} 0.7", "acme:usage_perc -1", "acme:usage_perc 1.04", "acme:usage_perc 42", "acme:usage_perc NaN"},
			want:  []string{"inference.server.kv_cache.utilization{} 0.7", "", "inference.server.kv_cache.utilization{} 1", "", ""},
		},
		"an up that cannot be": {
			pages: []string{"acme:running 1\nup -2", "acme:running 1\nup NaN"},
			want:  []string{"inference.server.requests{state=running} 1\nup{} -2", "inference.server.requests{state=running} 1\nup{} NaN"},
		},
		"labels": {
			pages: []string{"acme:cache_info{blocks=10,size=16} 1\nacme:lora_info{running=a;b} 10\nacme:lora_info{running=a;b;c} 11", "acme:cache_info{blocks=None,size=16} 1"},
			want:  []string{"inference.server.kv_cache.capacity{} 160\ninference.server.lora.adapters{state=running} 3", ""},
		},
		"another family in the place of one": {
			pages: []string{
				"acme:preempted_total 1", "acme:preempted_total END\nacme:preempted_v2_total 2", "acme:preempted_v2_total 3\nacme:preempted_total 4",
				"acme:preempted_v2_total END\nacme:preempted_total END\nacme:running 1",
			},
			want: []string{
				"inference.server.preemptions{} 1 since 1000", "acme:preempted_v2_total{} 2\ninference.server.preemptions{} END", "acme:preempted_v2_total{} 3",
				"acme:preempted_v2_total{} END\ninference.server.requests{state=running} 1",
			},
		},
		"unless": {
			pages: []string{"acme:preempted_total 1\nacme:preempted_v2_total 2", "acme:preempted_total 3"},
			want:  []string{"acme:preempted_v2_total{} 2", "inference.server.preemptions{} 3 since 1015"},
		},
		"only beside another family": {
			pages: []string{"acme:prompt_tokens_total 4\nacme:cached_tokens_total 0", "acme:prompt_tokens_total 5"},
			want: []string{
				"acme:cached_tokens_total{} 0\ninference.server.prefix_cache.queries{} 4 since 1000\ninference.server.tokens{type=input} 4 since 1000",
				"inference.server.tokens{type=input} 5 since 1000",
			},
		},
		"0 where another family is not": {
			pages: []string{"acme:accepted_rate 0\nacme:accepted_length 0", "acme:accepted_rate 0\nacme:accepted_length 1", "acme:accepted_rate 0.5"},
			want:  []string{"", "inference.server.speculation.acceptance_ratio{} 0", "acme:accepted_rate{} 0.5"},
		},
		"a name without a prefix": {
			pages: []string{"server_ttft h 1 2 3:1\nacme:ttft h 1 2 4:1\nacme:running 1", "server_ttft h 1 2 3:1"},
			want: []string{
				"gen_ai.server.time_to_first_token{} 1 2 [3] [1 0] since 1000\ninference.server.requests{state=running} 1",
				"server_ttft{} 1 2 [3] [1 0] since 0",
			},
		},
		"a counter that is on the page as a gauge too, and under another prefix": {
			pages: []string{"acme:new_tokens 7\nacme:new_tokens_total 7\nacme_new_tokens_total 8", "acme:new_tokens_total 9\nacme:new_tokens 9"},
			want:  []string{"inference.server.tokens{type=output} 7 since 1000", "inference.server.tokens{type=output} 9 since 1000"},
		},
		"0 is unset": {
			pages: []string{"acme:load 0", "acme:load 3"},
			want:  []string{"", "inference.server.model.load_time{} 3"},
		},
		"up ends with the target, read or not": {
			pages: []string{"acme:running 1\nup 1", "acme:running END\nup END", "acme:running 1\nup 1", "acme:running END\nup 0", "up END"},
			want: []string{
				"inference.server.requests{state=running} 1\ninference.server.up{} 1\nup{} 1",
				"inference.server.requests{state=running} END\ninference.server.up{} END\nup{} END",
				"inference.server.requests{state=running} 1\ninference.server.up{} 1\nup{} 1",
				"inference.server.requests{state=running} END\ninference.server.up{} 0\nup{} 0",
				"inference.server.up{} END\nup{} END",
			},
		},
		"a page without its engine's families is not up": {
			pages: []string{"acme:running 1\nup 1", "acme:running END\npython_gc_total 3\nup 1", "http_requests_total 3\nup 1", "acme:running 2\nup 1"},
			want: []string{
				"inference.server.requests{state=running} 1\ninference.server.up{} 1\nup{} 1",
				"inference.server.requests{state=running} END\ninference.server.up{} 0\nup{} 1",
				"http_requests_total{} 3\ninference.server.up{} 0\nup{} 1",
				"inference.server.requests{state=running} 2\ninference.server.up{} 1\nup{} 1",
			},
		},
		"up ends with the engine": {
			pages: []string{"acme:running 1\nup 1", "shell_pending 2\nup 1"},
			want: []string{
				"inference.server.requests{state=running} 1\ninference.server.up{} 1\nup{} 1",
				"inference.server.requests{state=waiting} 2\ninference.server.up{} 1\ninference.server.up{} END\nup{} 1",
			},
		},
		"counts and sums of histograms": {
			pages: []string{"gate_seconds h 3 4.5 1:1\ngate_length h 3 80 10:1", "gate_seconds h 4 5 1:1\ngate_length h END"},
			want: []string{
				"inference.gateway.requests.finished{gateway=door} 3 since 1000\ninference.gateway.tokens{gateway=door} 80 since 1000",
				"inference.gateway.requests.finished{gateway=door} 4 since 1000\ninference.gateway.tokens{gateway=door} END",
			},
		},
		"a gateway has the name that the page has, unless there are several": {
			pages: []string{
				"gate_inflight{model=m} 5\ngate_queued{model=m} 2\ngate_ready{pool=p} 3",
				"gate_inflight{model=m} 5\ngate_queued{model=m} 7\ngate_ready{pool=p} 3\ngate_ready{pool=q} 1",
			},
			want: []string{
				"inference.gateway.endpoints.ready{gateway=p} 3\ninference.gateway.requests{gateway=p,model=m} 3",
				"inference.gateway.endpoints.ready{gateway=p} 3\ninference.gateway.endpoints.ready{gateway=q} 1\ninference.gateway.requests{gateway=door,model=m} 0",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, story(t, tt.o, tt.pages...))
		})
	}
}
