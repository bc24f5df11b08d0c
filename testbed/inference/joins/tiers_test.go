// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package joins

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	simulated "github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
)

// A frontend, an endpoint picker and a router of the same service report what its engines
// do, each under names of its own tier: sums over the service count every request and
// token once, with no filter at all, and so do the rules and the console.
func TestGatewaysOfAServiceCountNothingAgain(t *testing.T) {
	gateways := [][2]string{{"dynamo", "dynamo"}, {"epp", "llm_d"}, {"vllm-router", "vllm_router"}}
	cfg := chatFleet()
	engines := len(cfg.Nodes[0].Pods)
	for _, g := range gateways {
		cfg.Nodes[0].Pods = append(cfg.Nodes[0].Pods, gpusim.Pod{
			Namespace: "ml", Name: "chat-" + g[0], Container: "main", Labels: map[string]string{"app": "chat"}, Engine: g[0],
		})
	}
	w := join(t, cfg)
	for _, at := range []time.Duration{7, 12, 20} {
		w.run(t, at*time.Minute)
		var output, input, successes float64
		for _, pod := range w.pods[:engines] {
			p := w.read(t, pod)
			output, input = output+float64(p.OutputTokens), input+float64(p.InputTokens)
			successes += float64(p.Finished[simulated.Success])
		}
		same := func(want float64, q string) {
			t.Helper()
			all := w.ask(t, q)
			if assert.Len(t, all, 1, q) {
				assert.InEpsilon(t, want/window.Seconds(), all[0].F, 0.01, "%s after %d minutes", q, at)
			}
		}
		rate := func(metric, key, value string) string {
			return fmt.Sprintf(`sum by (k8s_namespace_name, service_name) (rate(%s{%s=%q}[5m]))`, metric, key, value)
		}
		same(output, rate(queries.InferenceTokens, queries.TokenType, "output"))
		same(input, rate(queries.InferenceTokens, queries.TokenType, "input"))
		finished := names.InferenceRequestsFinished.Prometheus()
		same(successes, rate(finished, "inference_request_outcome", "success"))
		same(output, queries.OutputTokens(queries.All, queries.OfServices, queries.InferenceWindow))
		same(input, queries.InputTokens(queries.All, queries.OfServices, queries.InferenceWindow))
		got := w.recorded(t)
		assert.InEpsilon(t, output/window.Seconds(), got["output_tokens:rate5m"], 0.01)
		assert.InEpsilon(t, input/window.Seconds(), got["input_tokens:rate5m"], 0.01)
		for _, f := range queries.InferenceFigures {
			if f.Name == "output_tokens" {
				same(output, f.Service(queries.Whole{Where: queries.OfService("", "ml", "chat"), Over: queries.InferenceWindow, Briefly: time.Minute}))
			}
		}
		// Each of them sees all requests of all engines, when it is read.
		for _, g := range gateways {
			last, seen := w.now.Add(-w.before("chat-"+g[0])), 0.0
			for _, pod := range w.pods[:engines] {
				seen += float64(w.truth(t, pod, last.Add(-window), last).Finished[simulated.Success])
			}
			same(seen, fmt.Sprintf(`sum (rate(%s{inference_request_outcome="success",inference_engine=%q}[5m]))`,
				names.InferenceGatewayRequestsFinished.Prometheus(), g[1]))
		}
		// As a gauge and as a quantile, too: no pod of theirs has a series of a server.
		servers := w.ask(t, `count by (k8s_pod_name) ({__name__=~"inference_server_.*|gen_ai_server_.*"})`)
		require.Len(t, servers, engines)
	}
}
