// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/pagetest"
)

const sec = time.Second

func full(int64) float64 { return 1 }

func engine(t *testing.T, cfg Config, begin time.Duration) *Engine {
	t.Helper()
	cfg.Pod = "llama-0"
	e, err := New(cfg, 1, begin, full)
	require.NoError(t, err)
	return e
}

func read(t *testing.T, e *Engine) pagetest.Page {
	t.Helper()
	page, err := e.Page(pagetest.Epoch, false)
	require.NoError(t, err)
	return pagetest.Parse(t, page)
}

func (e *Engine) at(t *testing.T, at time.Duration, faults ...Fault) pagetest.Page {
	t.Helper()
	e.Advance(at, faults)
	return read(t, e)
}

func unix(at time.Duration) float64 { return float64(pagetest.Epoch.Add(at).Unix()) }

func TestAnEngineServesOnceItHasBegun(t *testing.T) {
	e := engine(t, Config{Engine: "vllm-0.21"}, 20*sec)
	e.Advance(19*sec, nil)
	_, err := e.Page(pagetest.Epoch, false)
	require.ErrorIs(t, err, ErrDown)
	page := e.at(t, 80*sec)
	assert.Equal(t, unix(20*sec), page.One(t, "process_start_time_seconds"))
	assert.Greater(t, page.One(t, "vllm:generation_tokens_total"), 1000.0)
}

func TestRestart(t *testing.T) {
	faults := []Fault{{ID: "1", Kind: Restart, From: 60 * sec, Until: 70 * sec}}
	e, calm := engine(t, Config{Engine: "vllm-0.21"}, 0), engine(t, Config{Engine: "vllm-0.21"}, 0)
	before := e.at(t, 59*sec, faults...).One(t, "vllm:generation_tokens_total")
	assert.Equal(t, calm.at(t, 59*sec).One(t, "vllm:generation_tokens_total"), before)
	e.Advance(65*sec, faults)
	_, err := e.Page(pagetest.Epoch, false)
	require.ErrorIs(t, err, ErrDown)
	page := e.at(t, 75*sec, faults...)
	assert.Less(t, page.One(t, "vllm:generation_tokens_total"), before)
	assert.Equal(t, unix(70*sec), page.One(t, "process_start_time_seconds"))
	assert.Equal(t, unix(70*sec), page.One(t, "vllm:generation_tokens_created"))
	assert.Equal(t, float64(requests.Truth(e.Processes(), 70*sec, 75*sec).OutputTokens), page.One(t, "vllm:generation_tokens_total"))
}

func TestModelSwapKeepsTheProcess(t *testing.T) {
	e := engine(t, Config{Engine: "vllm-0.21"}, 0)
	page := e.at(t, 70*sec, Fault{ID: "2", Kind: ModelSwap, From: 60 * sec, Until: -1, Model: "other/model"})
	assert.Equal(t, unix(0), page.One(t, "process_start_time_seconds"))
	tokens := page.Find("vllm:generation_tokens_total")
	require.Len(t, tokens, 1)
	assert.Equal(t, "other/model", tokens[0].Labels["model_name"])
	assert.Equal(t, unix(60*sec), page.One(t, "vllm:generation_tokens_created"))
	assert.Equal(t, "other/model", e.Model())
}

func TestUpgradeChangesTheLayout(t *testing.T) {
	e := engine(t, Config{Engine: "vllm-0.8"}, 0)
	faults := []Fault{{ID: "3", Kind: Upgrade, From: 60 * sec, Until: 75 * sec, Engine: "vllm-0.21"}}
	page := e.at(t, 59*sec, faults...)
	assert.Len(t, page.Find("vllm:time_to_first_token_seconds_bucket"), 17)
	page = e.at(t, 90*sec, faults...)
	assert.Len(t, page.Find("vllm:time_to_first_token_seconds_bucket"), 23)
	assert.Equal(t, "vllm-0.21", e.Name())
	assert.Equal(t, unix(75*sec), page.One(t, "process_start_time_seconds"))
}

func TestSleeping(t *testing.T) {
	faults := []Fault{{ID: "4", Kind: Sleep, From: 60 * sec, Until: 90 * sec}}
	e := engine(t, Config{Engine: "vllm-0.21"}, 0)
	first := e.at(t, 62*sec, faults...)
	assert.Equal(t, 1.0, first.One(t, "vllm:engine_sleep_state", "sleep_state", "weights_offloaded"))
	later := e.at(t, 89*sec, faults...)
	assert.Equal(t, first.One(t, "vllm:generation_tokens_total"), later.One(t, "vllm:generation_tokens_total"))
	assert.Greater(t, later.One(t, "vllm:num_requests_waiting"), 10.0)
	awake := e.at(t, 100*sec, faults...)
	assert.Equal(t, 1.0, awake.One(t, "vllm:engine_sleep_state", "sleep_state", "awake"))
	assert.Greater(t, awake.One(t, "vllm:generation_tokens_total"), later.One(t, "vllm:generation_tokens_total"))
}

// SGLang has the requests of an engine at rest as paused ones.
func TestPausedRequests(t *testing.T) {
	e := engine(t, Config{Engine: "sglang-0.5", Requests: &requests.Config{Rate: 6}}, 0)
	page := e.at(t, 62*sec, Fault{ID: "1", Kind: Sleep, From: 60 * sec, Until: -1})
	assert.Zero(t, page.One(t, "sglang:num_running_reqs"))
	assert.Equal(t, float64(e.Processes()[0].State().Running), page.One(t, "sglang:num_paused_reqs"))
	assert.Positive(t, page.One(t, "sglang:num_paused_reqs"))
}

// The same whether the engine is asked often or seldom.
func TestFaultsHappenInTime(t *testing.T) {
	faults := []Fault{
		{ID: "5", Kind: Sleep, From: 20 * sec, Until: 25 * sec}, {ID: "6", Kind: Restart, From: 40 * sec, Until: 50 * sec},
		{ID: "7", Kind: ModelSwap, From: 60 * sec, Until: -1, Model: "m"}, {ID: "8", Kind: Upgrade, From: 70 * sec, Until: 80 * sec, Engine: "sglang-0.5"},
	}
	a, b := engine(t, Config{Engine: "vllm-0.5", Ranks: 2}, 5*sec), engine(t, Config{Engine: "vllm-0.5", Ranks: 2}, 5*sec)
	for at := time.Duration(0); at < 100*sec; at += 700 * time.Millisecond {
		a.Advance(at, faults)
	}
	assert.Equal(t, b.at(t, 100*sec, faults...), a.at(t, 100*sec, faults...))
	assert.Equal(t, requests.Truth(b.Processes(), 0, 100*sec), requests.Truth(a.Processes(), 0, 100*sec))
}

func TestRanks(t *testing.T) {
	e := engine(t, Config{Engine: "sglang-0.5", Ranks: 2, TensorRanks: 2}, 0)
	page := e.at(t, 60*sec)
	running := page.Find("sglang:num_running_reqs")
	require.Len(t, running, 4)
	assert.Equal(t, page.One(t, "sglang:num_running_reqs", "dp_rank", "1", "tp_rank", "0"), page.One(t, "sglang:num_running_reqs", "dp_rank", "1", "tp_rank", "1"))
	assert.Equal(t, float64(requests.Truth(e.Processes(), 0, 60*sec).Finished[requests.Success]), page.One(t, "sglang:num_requests_total"))
}

// What stands before engines goes on counting when one of them starts again, and has
// counters of its own that a restart sets to zero.
func TestGatewayOverRestarts(t *testing.T) {
	a, err := New(Config{Engine: "vllm-0.21", Pod: "a"}, 1, 0, full)
	require.NoError(t, err)
	b, err := New(Config{Engine: "sglang-0.5", Pod: "b"}, 2, 0, full)
	require.NoError(t, err)
	gateways := map[string]*Engine{}
	for _, name := range []string{"dynamo", "epp", "vllm-router"} {
		gateways[name] = engine(t, Config{Engine: name}, 0)
		gateways[name].Fronts(func() []*Engine { return []*Engine{a, b} })
	}
	all := append(a.Processes(), b.Processes()...)
	own := []Fault{{ID: "9", Kind: Restart, From: 100 * sec, Until: 110 * sec}}
	last := 0.0
	for at := sec; at <= 120*sec; at += sec {
		a.Advance(at, []Fault{{ID: "10", Kind: Restart, From: 60 * sec, Until: 70 * sec}})
		b.Advance(at, []Fault{{ID: "11", Kind: ModelSwap, From: 50 * sec, Until: -1, Model: "other/model"}})
		for _, g := range gateways {
			g.Advance(at, own)
		}
		if at >= 100*sec {
			continue
		}
		page, sum := read(t, gateways["dynamo"]), 0.0
		for _, s := range page.Find("dynamo_frontend_output_tokens_total") {
			sum += s.Value
		}
		assert.GreaterOrEqual(t, sum, last)
		assert.Equal(t, float64(requests.Total(all).OutputTokens), sum)
		last = sum
	}
	window := requests.Truth(all, 110*sec, 120*sec)
	for name, sample := range map[string]string{
		"dynamo": "dynamo_frontend_output_tokens_total", "vllm-router": "vllm:output_tokens_total", "epp": "llm_d_epp_request_streaming_itl_seconds_count",
	} {
		sum := 0.0
		for _, s := range read(t, gateways[name]).Find(sample) {
			sum += s.Value
		}
		want := window.OutputTokens
		if name == "epp" {
			want = window.InterToken.Count
		}
		assert.Equal(t, float64(want), sum, name)
	}
	assert.Equal(t, unix(110*sec), read(t, gateways["vllm-router"]).One(t, "process_start_time_seconds"), "its own, not that of an engine")
	models := map[string]bool{}
	for _, s := range read(t, gateways["epp"]).Find("llm_d_epp_request_total") {
		models[s.Labels["model_name"]] = true
	}
	assert.Len(t, models, 2)
	assert.Equal(t, 2.0, read(t, gateways["epp"]).One(t, "llm_d_epp_ready_endpoints"))
	seen := map[string]bool{}
	for _, s := range read(t, gateways["vllm-router"]).Samples {
		assert.False(t, seen[s.Raw], s.Raw)
		seen[s.Raw] = true
	}
}

func TestConfigIsChecked(t *testing.T) {
	for want, cfg := range map[string]Config{
		`engine: unknown engine "vllm"`:     {Engine: "vllm"},
		"engine: dynamo is a gateway":       {Engine: "dynamo", Ranks: 2},
		"ranks: neither":                    {Engine: "tgi-3", TensorRanks: -1},
		"requests: rate: -1 is not above 0": {Engine: "tgi-3", Requests: &requests.Config{Rate: -1}},
	} {
		_, err := New(cfg, 1, 0, full)
		assert.ErrorContains(t, err, want)
	}
}
