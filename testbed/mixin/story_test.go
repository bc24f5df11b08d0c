// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"maps"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/webhook"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

type label = labels.Label

type sample struct {
	labels labels.Labels
	value  float64
}

// application is what engines and an endpoint picker report, after seconds of their
// life, and what gpu_summary reports where it asks Kubernetes.
func application(seconds float64) (all []sample) {
	add := func(name string, value float64, more ...string) {
		b := labels.NewBuilder(labels.FromStrings("__name__", name, "k8s_cluster_name", "c1", "k8s_namespace_name", "inference", "service_name", "llama"))
		for i := 0; i < len(more); i += 2 {
			b.Set(more[i], more[i+1])
		}
		all = append(all, sample{b.Labels(), value})
	}
	engine := func(service string, labels ...string) func(string, float64, ...string) {
		labels = append([]string{"service_name", service, "k8s_pod_name", service + "-0"}, labels...)
		return func(name string, value float64, more ...string) { add(name, value, append(labels, more...)...) }
	}
	histograms := func(add func(string, float64, ...string), names ...string) {
		for _, histogram := range names {
			add(histogram+"_bucket", 8*seconds, "inference_bounds", "a", "le", "0.5")
			add(histogram+"_bucket", 10*seconds, "inference_bounds", "a", "le", "1")
			add(histogram+"_bucket", 10*seconds, "inference_bounds", "a", "le", "+Inf")
			add(histogram+"_count", 10*seconds, "inference_bounds", "a")
			add(histogram+"_sum", 4*seconds, "inference_bounds", "a")
		}
	}
	vllm := engine("llama", "inference_engine", "vllm")
	histograms(vllm, first, duration, "gen_ai_server_time_per_output_token_seconds", "inference_server_inter_token_latency_seconds", "inference_server_request_queue_time_seconds")
	vllm(up, 1)
	vllm(cache, 0.4, "inference_cache_tier", "device")
	vllm(requests, 1, "inference_request_state", "waiting")
	vllm(requests, 12, "inference_request_state", "running")
	vllm(tokens, 900*seconds, "inference_token_type", "output")
	vllm(tokens, 1800*seconds, "inference_token_type", "input")
	vllm(finished, 10*seconds, "inference_request_outcome", "success", "inference_finish_reason", "stop")
	vllm(finished, 0, "inference_request_outcome", "error", "inference_finish_reason", "error")
	vllm("inference_server_preemptions_total", seconds)
	vllm("inference_server_prefix_cache_queries_total", 1800*seconds, "inference_cache_tier", "device")
	vllm("inference_server_prefix_cache_hits_total", 600*seconds, "inference_cache_tier", "device")
	vllm("inference_server_speculation_draft_tokens_total", 90*seconds)
	vllm("inference_server_speculation_accepted_tokens_total", 60*seconds)
	// A batch is Triton's. Of this service the kubelet and the exporter report all.
	triton := engine("chat", "inference_engine", "triton")
	triton(up, 1)
	triton("inference_server_inferences_total", 80*seconds)
	triton("inference_server_executions_total", 10*seconds)
	triton(tokens, 900*seconds, "inference_token_type", "output")
	triton("gpu_service_power_watts", 500)
	triton("gpu_service_devices", 1, "gpu_device_state", "reporting")
	triton("gpu_service_devices", 0, "gpu_device_state", "missing")
	triton("hw_power_watts", 500, "hw_id", "GPU-chat")
	triton("gpu_allocation", 1, "hw_id", "GPU-chat")
	picker := engine("picker", "inference_engine", "llm_d")
	histograms(picker, "inference_gateway_time_to_first_token_seconds", "inference_gateway_request_duration_seconds")
	picker("inference_gateway_requests", 2, "inference_request_state", "waiting")
	picker("inference_gateway_requests", 12, "inference_request_state", "running")
	picker("inference_gateway_requests_finished_total", 10*seconds, "inference_request_outcome", "success")
	picker("inference_gateway_endpoints_ready", 3)
	add("gpu_service_pods_pending", 0)
	accounts(add, engine("summarizer", "inference_engine", "vllm"), seconds)
	scheduling(add, seconds)
	training(add, seconds)
	collectives(add, seconds)
	return all
}

// accounts is what gpu_cost reports of boards, prices and a service with prices, and what
// the engine of that service does.
func accounts(add, engine func(string, float64, ...string), seconds float64) {
	engine(up, 1)
	engine(tokens, 300*seconds, "inference_token_type", "output")
	engine(tokens, 900*seconds, "inference_token_type", "input")
	engine(prefill+"_sum", 2*seconds)
	engine(prefill+"_count", 10*seconds)
	engine(decode+"_sum", 6*seconds)
	engine(decode+"_count", 10*seconds)
	row := func(name string, value float64, more ...string) {
		add(name, value, append([]string{"service_name", "summarizer", "gpu_tenant", "ml", "hw_model", "NVIDIA H100", "gpu_capacity_type", "spot"}, more...)...)
	}
	row(usageHeld, 2*seconds)
	row(usageUsed, seconds)
	row(usageBlind, 0)
	row("gpu_usage_idle_seconds_total", seconds/10)
	row(usageCost, 2*seconds*2.95/3600, "gpu_cost_currency", "USD")
	row(usageIdle, seconds/10*2.95/3600, "gpu_cost_currency", "USD")
	row(usageEnergy, 1200*seconds, "gpu_energy_basis", "board")
	row(usageCarbon, 0.02*seconds)
	of := func(name string, value float64, more ...string) {
		add(name, value, append([]string{"k8s_namespace_name", "", "service_name", "", "hw_model", "NVIDIA H100", "gpu_capacity_type", "spot"}, more...)...)
	}
	for state, boards := range map[string]float64{"held": 2, "free": 1, "stranded": 0, "unavailable": 0, "unknown": 0} {
		of("gpu_capacity_time_seconds_total", boards*seconds, "gpu_capacity_state", state)
		of("gpu_capacity_cost_total", boards*seconds*2.95/3600, "gpu_capacity_state", state, "gpu_cost_currency", "USD")
		of("gpu_capacity_energy_joules_total", 600*boards*seconds, "gpu_capacity_state", state)
	}
	of("gpu_price_per_hour", 2.95, "host_type", "gpu-h100", "gpu_cost_currency", "USD")
	of("gpu_budget_used_ratio", 0.3, "hw_model", "", "gpu_capacity_type", "", "gpu_budget_name", "ml", "gpu_budget_kind", "cost")
}

// firing is which alerts fired, and when.
type firing struct {
	at    time.Time
	alert map[string]bool
}

// story is what happens to a fleet: a healthy time, then much at once. It returns
// what the rules fired, which are evaluated when it is over.
func (w *world) story(t *testing.T) (trouble time.Time, fired []firing) {
	t.Helper()
	w.run(5 * time.Minute)
	trouble = w.now()
	_, err := w.sink.SetAnswer(webhook.Answer{Path: "/broken", Status: 500})
	require.NoError(t, err)
	w.breaks(t,
		gpusim.Fault{Node: "node-a", Kind: gpusim.XID, Device: "2", Code: 48}, // counts an uncorrected error too
		gpusim.Fault{Node: "node-a", Kind: gpusim.ThermalThrottle, Device: "0"},
		gpusim.Fault{Node: "node-a", Kind: gpusim.GPULost, Device: "3"},
		gpusim.Fault{Node: "node-a", Kind: gpusim.Sentinel, Device: "1", Fields: []string{"DCGM_FI_DEV_PCIE_REPLAY_COUNTER"}}, // rows that become no data
		gpusim.Fault{Node: "desk", Kind: gpusim.XID, Device: "0", Code: 79},
	)
	w.run(6 * time.Minute)
	w.breaks(t, gpusim.Fault{Node: "node-b", Kind: gpusim.ExporterDown})
	w.run(4 * time.Minute)
	w.mu.Lock()
	defer w.mu.Unlock()
	j := newJudge(t, w.db, w.engine, everything)
	end := w.now()
	for at := w.began.Add(time.Minute); at.Before(end); at = at.Add(scrape) {
		fired = append(fired, firing{at, j.At(t, at)})
	}
	return trouble, fired
}

// breaks starts faults.
func (w *world) breaks(t *testing.T, faults ...gpusim.Fault) {
	t.Helper()
	for _, f := range faults {
		_, err := w.fleet.StartFault(f)
		require.NoError(t, err)
	}
	w.reconcile()
}

// The alerts of a run: none while the fleet is healthy but that of the notebook
// that is idle, and each that the trouble is worth.
func judgeStory(t *testing.T, trouble time.Time, fired []firing) {
	t.Helper()
	before, after := map[string]bool{}, map[string]bool{}
	for _, s := range fired {
		if s.at.Before(trouble) {
			maps.Copy(before, s.alert)
		} else {
			maps.Copy(after, s.alert)
		}
	}
	assert.Subset(t, []string{"GPUWatchdog", "GPUIdleHeld"}, keys(before), "while all is well")
	assert.Subset(t, keys(after), []string{
		"GPUWatchdog", "GPUExporterDown", "GPUServicePartial", "GPUServiceNoData", "GPUXIDFatal", "GPUECCUncorrected",
		"GPUThrottled", "GPUServiceThrottled", "GPUDeviceLost", "GPUWebhookFailing", "GPUIdleHeld", "GPUHealthFailed",
	}, "in trouble")
	for _, absent := range []string{"GPUGatewayGone", "GPUNodeLost", "GPUCollectorDown", "GPUAuditFailing", "GPUStoreRefusingSamples", "GPUTelemetryDropped"} {
		assert.NotContains(t, after, absent)
	}
}

func keys(m map[string]bool) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	return list
}

// integrated: a GPU that has the memory of its machine is counted, and its first XID fires.
func (w *world) integrated(t *testing.T, healthy time.Time) {
	count := w.ask(t, "cluster:gpu_devices:count", healthy)
	require.Len(t, count, 1)
	assert.Equal(t, 10., count[0].F, "nine boards, and that of the application chat")
	const gb10 = `{hw_model="NVIDIA GB10"`
	assert.Empty(t, w.ask(t, `last_over_time(hw_gpu_memory_usage_bytes`+gb10+`}[1h])`, w.now()))
	for _, g := range newJudge(t, w.db, w.engine, devices).Groups {
		for _, r := range g.AlertingRules() {
			if r.Name() == "GPUXIDFatal" {
				assert.NotEmpty(t, w.ask(t, "max_over_time(("+r.Query().String()+")[15m:30s]) and on (hw_id) gpu_xid_errors_total"+gb10+"}", w.now()))
			}
		}
	}
}

// usage: what is held is what the fleet's pods hold, whether a kubelet reported it
// (node-a) or not; what is used is that times the utilization.
func (w *world) usage(t *testing.T, at time.Time) {
	t.Helper()
	at = at.Truncate(time.Minute)
	held := map[string]float64{"llama": 3, "trainer": 1, "jupyter": 2, "lab": 1, "chat": 1}
	want := map[string]float64{}
	for _, n := range w.fleet.TruthAt(at).Nodes {
		for _, d := range n.Devices {
			if d.Service != "" {
				want[d.Service] += d.Utilization
			}
		}
	}
	got := map[string]float64{}
	for _, s := range w.ask(t, "namespace_service:gpu_devices_held:sum", at) {
		got[s.Metric.Get("service_name")] = s.F
	}
	assert.Equal(t, held, got)
	for _, s := range w.ask(t, "namespace_service:gpu_devices_used:sum", at) {
		name := s.Metric.Get("service_name")
		// The collector looks every fifteen seconds of the run.
		assert.InDelta(t, want[name], s.F, 0.4, name)
		assert.LessOrEqual(t, s.F, held[name], name)
	}
	// Four whole minutes of the five: a fifteenth of an hour.
	for _, s := range w.ask(t, "namespace_service:gpu_hours_held:1h", at) {
		name := s.Metric.Get("service_name")
		minutes := at.Sub(w.began.Truncate(time.Minute)).Minutes()
		assert.InDelta(t, held[name]*minutes/60, s.F, held[name]*1.1/60, name)
	}
	assert.NotEmpty(t, w.ask(t, `namespace_service:gpu_energy_joules:1h{service_name="trainer"} > 0`, at))
}
