// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/pagetest"
)

// llamas are two engines of one service and a gateway before them.
func llamas() Config {
	pod := func(name, engine, device string) Pod {
		return Pod{
			Namespace: "chat", Name: name, Container: "server", Labels: map[string]string{"app": "llama"}, Devices: []string{device}, Load: Inference, Engine: engine,
		}
	}
	front := Pod{Namespace: "chat", Name: "front", Container: "frontend", Engine: "dynamo", Fronts: "llama"}
	return oneNode(Node{Version: "4.6", Model: "H100", Devices: 4, Pods: []Pod{pod("a", "vllm-0.21", "0"), pod("b", "sglang-0.5", "1"), front}})
}

// enginePage parses the page of a pod's engine now.
func enginePage(t *testing.T, fl *Fleet, pod string) pagetest.Page {
	t.Helper()
	b, err := fl.EnginePage("chat", pod, fl.Now())
	require.NoError(t, err)
	return pagetest.Parse(t, b)
}

func TestEnginesOfAFleet(t *testing.T) {
	fl, clock := newFleet(t, llamas())
	clock.Advance(2 * time.Minute)
	list := fl.TruthAt(clock.Now()).Engines
	require.Len(t, list, 3)
	assert.Equal(t, EngineTruth{
		Namespace: "chat", Pod: "a", Node: "n", Service: "llama", Engine: "vllm-0.21", Model: "meta-llama/Llama-3.1-8B-Instruct", State: "up", Path: "/metrics",
	}, list[0])
	assert.True(t, list[2].Gateway)

	truth, err := fl.RequestsOf("chat", "llama", 0, time.Hour)
	require.NoError(t, err)
	assert.Equal(t, 120.0, truth.To, "not after now")
	require.Len(t, truth.Pods, 2)
	assert.Greater(t, truth.Finished[requests.Success], 20)
	assert.Equal(t, float64(truth.Pods[0].OutputTokens), enginePage(t, fl, "a").One(t, "vllm:generation_tokens_total"))
	assert.Equal(t, float64(truth.Pods[1].Finished[requests.Success]), enginePage(t, fl, "b").One(t, "sglang:num_requests_total"))
	assert.Equal(t, float64(truth.OutputTokens), enginePage(t, fl, "front").One(t, "dynamo_frontend_output_tokens_total"))

	_, err = fl.RequestsOf("chat", "front", 0, time.Hour)
	require.ErrorIs(t, err, ErrNoRequests)
	_, err = fl.EnginePage("chat", "c", clock.Now())
	assert.ErrorContains(t, err, "no pod chat/c with an engine")
}

// Two fleets of one configuration have the same requests, however often they are asked.
func TestEnginesAreDeterministic(t *testing.T) {
	a, one := newFleet(t, llamas())
	b, other := newFleet(t, llamas())
	for range 100 {
		one.Advance(900 * time.Millisecond)
		enginePage(t, a, "b")
	}
	other.Advance(90 * time.Second)
	for _, pod := range []string{"a", "b", "front"} {
		assert.Equal(t, enginePage(t, b, pod), enginePage(t, a, pod))
	}
}

func TestEngineFaults(t *testing.T) {
	fl, clock := newFleet(t, llamas())
	clock.Advance(60 * sec)
	before := enginePage(t, fl, "a").One(t, "vllm:generation_tokens_total")
	a := &Pod{Namespace: "chat", Name: "a"}
	st, err := fl.StartFault(Fault{Node: "n", Kind: EngineRestart, Pod: a})
	require.NoError(t, err)
	assert.Equal(t, 70.0, *st.EndSeconds, "a restart takes a while")
	assert.True(t, fl.EngineTransport("chat", "a", true).Down)
	_, err = fl.EnginePage("chat", "a", clock.Now())
	require.ErrorIs(t, err, engines.ErrDown)
	assert.Equal(t, "stopped", fl.Engines()[0].State)
	clock.Advance(11 * sec)
	assert.Less(t, enginePage(t, fl, "a").One(t, "vllm:generation_tokens_total"), before)
	truth, err := fl.RequestsOf("chat", "llama", 0, clock.Now().Sub(fl.Start()))
	require.NoError(t, err)
	front := enginePage(t, fl, "front")
	assert.Equal(t, float64(truth.OutputTokens), front.One(t, "dynamo_frontend_output_tokens_total"), "the gateway goes on")

	start := func(f Fault) string {
		f.Node = "n"
		st, err := fl.StartFault(f)
		require.NoError(t, err)
		return st.ID
	}
	start(Fault{Kind: ModelSwap, Pod: a, Model: "other/model"})
	start(Fault{Kind: EngineUpgrade, Pod: &Pod{Namespace: "chat", Name: "b"}, Engine: "tgi-3", For: Duration(5 * sec)})
	start(Fault{Kind: EngineSleep, Pod: a})
	slow := start(Fault{Kind: SlowPage, Every: 2, Delay: Duration(3 * sec)})
	start(Fault{Kind: PageFails, Pod: a})
	clock.Advance(6 * sec)
	list := fl.Engines()
	assert.Equal(t, []string{"other/model", "tgi-3"}, []string{list[0].Model, list[1].Engine})
	assert.Equal(t, 1.0, enginePage(t, fl, "a").One(t, "vllm:engine_sleep_state", "sleep_state", "weights_offloaded"))
	assert.NotEmpty(t, enginePage(t, fl, "b").Find("tgi_request_count"))
	assert.Equal(t, Transport{Fails: true}, fl.EngineTransport("chat", "a", true))
	assert.Equal(t, Transport{Delay: 3 * sec}, fl.EngineTransport("chat", "b", true), "every second request")
	_, err = fl.EndFault(slow)
	require.NoError(t, err)
	assert.Zero(t, fl.EngineTransport("chat", "b", true).Delay)
	clock.Advance(20 * sec)
	start(Fault{Kind: PageRace, Pod: &Pod{Namespace: "chat", Name: "b"}})
	clock.Advance(sec)
	falls := 0
	var last pagetest.Sample
	for _, s := range enginePage(t, fl, "b").Samples {
		if s.Name == last.Name && s.Labels["le"] != "" && last.Labels["le"] != "+Inf" && s.Value < last.Value {
			falls++
		}
		last = s
	}
	assert.Equal(t, 1, falls)

	for want, f := range map[string]Fault{
		"node n has no pod chat/c with an engine":      {Kind: EngineRestart, Pod: &Pod{Namespace: "chat", Name: "c"}},
		"model_swap needs a model":                     {Kind: ModelSwap},
		`engine_upgrade: unknown engine "vllm-9": use`: {Kind: EngineUpgrade, Engine: "vllm-9"},
		"sglang-0.5 cannot become epp":                 {Kind: EngineUpgrade, Engine: "epp", Pod: &Pod{Namespace: "chat", Name: "b"}},
	} {
		f.Node = "n"
		_, err := fl.StartFault(f)
		assert.ErrorContains(t, err, want)
	}
}

// An engine comes and goes with its pod.
func TestEnginesComeAndGoWithPods(t *testing.T) {
	cfg := llamas()
	late := cfg.Nodes[0].Pods[1]
	late.Name, late.Devices, late.Warmup = "c", []string{"2"}, Duration(20*sec)
	cfg.Faults = []Fault{
		{Node: "n", Kind: NewPod, Pod: &late, After: Duration(30 * sec), For: Duration(60 * sec)},
		{Node: "n", Kind: PodGone, Pod: &Pod{Namespace: "chat", Name: "a"}, After: Duration(40 * sec), For: Duration(20 * sec)},
	}
	fl, clock := newFleet(t, cfg)
	states := func(at time.Duration) (out []string) {
		clock.Advance(at - clock.Now().Sub(fl.Start()))
		for _, e := range fl.Engines() {
			out = append(out, e.Pod+" "+e.State)
		}
		return out
	}
	assert.Equal(t, []string{"a up", "b up", "front up"}, states(20*sec))
	assert.Equal(t, []string{"a stopped", "b up", "front up", "c starting"}, states(45*sec))
	assert.Equal(t, []string{"a up", "b up", "front up", "c up"}, states(65*sec))
	assert.Equal(t, []string{"a up", "b up", "front up", "c stopped"}, states(95*sec))
	assert.Equal(t, float64(fl.Start().Add(60*sec).Unix()), enginePage(t, fl, "a").One(t, "process_start_time_seconds"))

	served, err := fl.RequestsOf("chat", "llama", 0, time.Hour)
	require.NoError(t, err)
	require.NoError(t, fl.SetPods("n", cfg.Nodes[0].Pods[1:]))
	assert.Equal(t, []string{"b up", "front up", "c stopped"}, states(100*sec))
	after, err := fl.RequestsOf("chat", "llama", 0, time.Hour)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, after.Total.Arrived, served.Total.Arrived, "what was served is not forgotten")
	require.NoError(t, fl.SetPods("n", cfg.Nodes[0].Pods))
	assert.Equal(t, []string{"b up", "front up", "c stopped", "a starting"}, states(110*sec))
	assert.Equal(t, []string{"b up", "front up", "c stopped", "a up"}, states(140*sec))
}

func TestEngineConfigIsChecked(t *testing.T) {
	for want, change := range map[string]func(p *Pod){
		`pods[0]: pod a: engine: unknown engine "vllm": use one of vllm-0.5, vllm-0.8`: func(p *Pod) { p.Engine = "vllm" },
		"requests: slots: -1":        func(p *Pod) { p.Requests = &requests.Config{Slots: -1} },
		"port: 70000":                func(p *Pod) { p.Port = 70000 },
		"fronts: vllm-0.21 is not a": func(p *Pod) { p.Fronts = "other" },
		"are for pods with an":       func(p *Pod) { p.Engine, p.Ranks = "", 2 },
	} {
		cfg := llamas()
		change(&cfg.Nodes[0].Pods[0])
		_, err := New(cfg, time.Now)
		assert.ErrorContains(t, err, want)
	}
}
