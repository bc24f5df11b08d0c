// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package joins compares what rules and queries make of engines and devices together with
// what the simulator knows of both.
package joins

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	simulated "github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/judge"
)

// Tokens of a service by time, device and joule are what its engines made and its devices
// took, within 1 %.
func TestTokensOfAServiceAreItsEnginesTruth(t *testing.T) {
	w := join(t, chatFleet())
	w.run(t, 4*time.Minute)
	assert.Empty(t, judge.Named(w.recorded(t), "output_tokens", "input_tokens", "tokens_per"), "before five minutes were read")
	for _, at := range []time.Duration{8, 11, 14, 17, 20} {
		w.run(t, at*time.Minute)
		output, input := 0.0, 0.0
		for _, pod := range w.pods {
			p := w.read(t, pod)
			output, input = output+float64(p.OutputTokens), input+float64(p.InputTokens)
		}
		got := w.recorded(t)
		for name, want := range map[string]float64{
			"output_tokens:rate5m": output / window.Seconds(), "input_tokens:rate5m": input / window.Seconds(),
			"tokens_per_device:rate5m": output / window.Seconds() / 5, "tokens_per_joule:rate5m": output / w.joules(w.now.Add(-window), w.now),
		} {
			assert.InEpsilon(t, want, got[name], 0.01, "%s after %d minutes", name, at)
		}
		for _, f := range queries.InferenceFigures {
			if f.Name != "output_tokens" && f.Name != "tokens_per_joule" {
				continue
			}
			all := w.ask(t, f.Service(queries.Whole{Where: queries.OfService("", "ml", "chat"), Over: queries.InferenceWindow, Briefly: time.Minute}))
			require.Len(t, all, 1, f.Name)
			assert.InDelta(t, got[f.Name+":rate5m"], all[0].F, 1e-9, "the console has what is recorded")
		}
	}
	w.run(t, 26*time.Minute, queries.Power)
	got := w.recorded(t)
	assert.Empty(t, judge.Named(got, "tokens_per_joule"), "the power is missing")
	assert.NotEmpty(t, judge.Named(got, "output_tokens"))
}

// While a pod comes and loads its model, its energy counts and not yet its tokens: a
// joule is worth less, and no figure is missing. Of what is new its first interval is not
// read.
func TestTokensWhileAPodComes(t *testing.T) {
	cfg := chatFleet()
	pods := &cfg.Nodes[0].Pods
	late := (*pods)[0]
	late.Name, late.Devices, late.Start, late.Warmup = "chat-5", []string{"5"}, gpusim.Duration(10*time.Minute+time.Second), gpusim.Duration(50*time.Second)
	*pods = append(*pods, late)
	w := join(t, cfg)
	held := 5.0
	for _, at := range []time.Duration{10, 11, 12, 13, 14, 16} {
		w.run(t, at*time.Minute)
		output := 0.0
		for _, pod := range w.pods[:5] {
			output += float64(w.read(t, pod).OutputTokens)
		}
		if at > 10 {
			output += float64(w.read(t, late.Name).OutputTokens)
		}
		got := w.recorded(t)
		assert.InEpsilon(t, output/window.Seconds(), got["output_tokens:rate5m"], 0.02, "%d minutes", at)
		assert.InEpsilon(t, output/w.joules(w.now.Add(-window), w.now), got["tokens_per_joule:rate5m"], 0.02, "%d minutes", at)
		now := got["output_tokens:rate5m"] / got["tokens_per_device:rate5m"]
		assert.GreaterOrEqual(t, now, held-1e-9, "devices, on average over five minutes")
		held = now
	}
	assert.InDelta(t, 6, held, 1e-6)
}

// An hour of restarts, an upgrade to other bounds and a swap of the model: counters lack
// what was never read and nothing else, and quantiles are within those of the pods.
func TestAnHourOfEngines(t *testing.T) {
	at := func(d time.Duration) gpusim.Duration { return gpusim.Duration(d) }
	ends := map[string][]time.Duration{ // of what a page counts
		"chat-0": {9*time.Minute + 7*time.Second, 41*time.Minute + 22*time.Second},
		"chat-2": {18*time.Minute + 11*time.Second},
		"chat-3": {27*time.Minute + 12*time.Second},
	}
	w := join(t, chatFleet(
		gpusim.Fault{Kind: gpusim.EngineRestart, Pod: aboutPod("chat-0"), After: at(ends["chat-0"][0]), For: at(20 * time.Second)},
		gpusim.Fault{Kind: gpusim.EngineRestart, Pod: aboutPod("chat-0"), After: at(ends["chat-0"][1]), For: at(time.Second)},
		gpusim.Fault{Kind: gpusim.EngineUpgrade, Pod: aboutPod("chat-2"), After: at(ends["chat-2"][0]), For: at(50 * time.Second), Engine: "vllm-0.21"},
		gpusim.Fault{Kind: gpusim.ModelSwap, Pod: aboutPod("chat-3"), After: at(ends["chat-3"][0]), Model: "Qwen/Qwen3-32B"},
	))
	lost := map[string]gpusim.PodRequests{}
	begin := w.fleet.Start()
	seen, left := map[string]int{}, maps.Clone(ends)
	for minute := time.Duration(6); minute < 60; minute += 5 {
		w.run(t, minute*time.Minute)
		for pod, all := range left {
			for ; len(all) > 0 && begin.Add(all[0]).Before(w.now); all = all[1:] {
				before := w.before(pod)
				last := (all[0] + before).Truncate(scrape) - before
				p, sum := w.truth(t, pod, begin.Add(last), begin.Add(all[0])), lost[pod]
				sum.OutputTokens += p.OutputTokens
				sum.InputTokens += p.InputTokens
				sum.FirstTokens += p.FirstTokens
				lost[pod] = sum
			}
			left[pod] = all
		}
		got, parts := w.recorded(t), w.parts(t, ends)
		for short, histogram := range map[string]string{"ttft": queries.TimeToFirstToken, "itl": queries.InterTokenLatency, "request": queries.RequestDuration} {
			for name, q := range map[string]float64{"p50": .5, "p95": .95, "p99": .99} {
				if value, ok := got[short+"_seconds:"+name]; ok { // else pages are missing
					seen[short+name]++
					w.between(t, histogram, q, value, parts)
				}
			}
		}
	}
	assert.Len(t, seen, 9)
	for name, n := range seen {
		assert.GreaterOrEqual(t, n, 8, name)
	}
	for _, pod := range w.pods {
		truth := w.truth(t, pod, begin.Add(-time.Second), w.last[pod])
		for name, want := range map[string]int{
			queries.InferenceTokens + " output": truth.OutputTokens - lost[pod].OutputTokens,
			queries.InferenceTokens + " input":  truth.InputTokens - lost[pod].InputTokens,
			queries.TimeToFirstToken + "_count": truth.FirstTokens - lost[pod].FirstTokens,
		} {
			assert.Positive(t, want)
			assert.Equal(t, float64(want), w.counted[pod][name], "%s of %s", name, pod)
		}
	}
	assert.Len(t, lost, 3)
	for pod, l := range lost {
		assert.Positive(t, l.OutputTokens, "%s was not read to its end", pod)
	}
}

// parts are what was read of each pod in the window, an engine that began again in it as
// two: its requests may be counted in other buckets then.
func (w *joined) parts(t *testing.T, ends map[string][]time.Duration) map[string][]gpusim.PodRequests {
	t.Helper()
	out := map[string][]gpusim.PodRequests{}
	for _, pod := range w.pods {
		last := w.now.Add(-w.before(pod))
		from := last.Add(-window)
		for _, end := range ends[pod] {
			if at := w.fleet.Start().Add(end); at.After(from) && at.Before(last) {
				out[pod] = append(out[pod], w.truth(t, pod, from, at))
				from = at
			}
		}
		out[pod] = append(out[pod], w.truth(t, pod, from, last))
	}
	return out
}

// between expects a quantile between the lowest and the highest of the pods, each with
// the bucket that it is in.
func (w *joined) between(t *testing.T, histogram string, q, value float64, parts map[string][]gpusim.PodRequests) {
	t.Helper()
	type layout struct{ pod, bounds string }
	layouts := map[layout][]float64{}
	for _, s := range w.ask(t, `group by (k8s_pod_name,inference_bounds,le) (last_over_time(`+histogram+`_bucket{service_name="chat"}[5m]))`) {
		le, err := strconv.ParseFloat(s.Metric.Get("le"), 64)
		require.NoError(t, err)
		key := layout{s.Metric.Get(queries.Pod), s.Metric.Get(queries.Bounds)}
		layouts[key] = append(layouts[key], le)
	}
	lowest, highest := math.Inf(1), 0.0
	for key, bounds := range layouts {
		slices.Sort(bounds)
		for _, p := range parts[key.pod] {
			d := map[string]simulated.Distribution{queries.TimeToFirstToken: p.FirstToken, queries.InterTokenLatency: p.InterToken, queries.RequestDuration: p.Duration}[histogram]
			if d.Count == 0 {
				continue
			}
			i, _ := slices.BinarySearch(bounds, map[float64]float64{.5: d.P50, .95: d.P95, .99: d.P99}[q])
			if i == 0 {
				lowest = 0
			} else {
				lowest = min(lowest, bounds[i-1])
			}
			highest = max(highest, bounds[i])
		}
	}
	assert.GreaterOrEqual(t, value, lowest, "%s %v at %s", histogram, q, w.now)
	assert.LessOrEqual(t, value, highest, "%s %v at %s", histogram, q, w.now)
}
