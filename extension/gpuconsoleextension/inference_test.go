// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// server is an inference server of a pod. Its counters rise by so much every interval.
type server struct {
	w    *world
	tags tags
}

func (w *world) server(service, pod, engine string) server {
	return server{w, tags{
		queries.Cluster: "c1", queries.Namespace: "ml", queries.Service: service, queries.Pod: pod, queries.Engine: engine, "gen_ai_request_model": "llama",
	}}
}

func (s server) gauge(metric string, more tags, v float64) {
	s.w.t.Helper()
	s.w.write(metric, s.tags.with(more), 20*time.Minute, 0, constant(v))
}

func (s server) counter(metric string, more tags, rise float64) {
	s.w.t.Helper()
	s.w.write(metric, s.tags.with(more), 20*time.Minute, 0, func(i int) float64 { return 100 + rise*float64(i) })
}

// histogram has so many new observations in each bucket every interval; the last bucket
// is the one without a bound.
func (s server) histogram(metric, layout string, bounds []float64, counts ...float64) {
	s.w.t.Helper()
	all := 0.0
	for i, n := range counts {
		all += n
		le := "+Inf"
		if i < len(bounds) {
			le = strconv.FormatFloat(bounds[i], 'f', -1, 64)
		}
		s.counter(metric+"_bucket", tags{queries.Bounds: layout, "le": le}, all)
	}
	s.counter(metric+"_count", tags{queries.Bounds: layout}, all)
	s.counter(metric+"_sum", tags{queries.Bounds: layout}, all)
}

func (s server) requests(running, waiting float64) {
	s.w.t.Helper()
	s.gauge(queries.InferenceUp, nil, 1)
	s.gauge(queries.InferenceRequests, tags{queries.RequestState: "running"}, running)
	s.gauge(queries.InferenceRequests, tags{queries.RequestState: "waiting"}, waiting)
}

func (s server) tokens(output float64) {
	s.w.t.Helper()
	s.counter(queries.InferenceTokens, tags{queries.TokenType: "output"}, output)
	s.counter(queries.InferenceTokens, tags{queries.TokenType: "input"}, 10*output)
}

// board is a GPU that a pod holds, with its power or without.
func (w *world) board(service, pod, id string, power float64) {
	w.t.Helper()
	l := device("gpu-1", id, 0, held("ml", service, pod))
	w.write(queries.Allocation, l, 20*time.Minute, 0, constant(1))
	if power > 0 {
		w.gpu(gpu{tags: l, values: map[string]float64{"power": power, "used": gib}})
	}
}

var (
	fine   = []float64{0.1, 0.2, 0.4}
	coarse = []float64{1, 2}
)

// engines has services with inference servers of different kinds.
func engines(w *world) {
	of := func(name string, partial float64) {
		w.service(svc{cluster: "c1", namespace: "ml", name: name, pods: pods{reporting: 1}, devices: 1, partial: partial, figures: map[string]float64{queries.ServicePower: 500}})
		w.board(name, name+"-0", "GPU-"+name, 500)
	}
	of("plain", 0)

	of("vllm", 0)
	s := w.server("vllm", "vllm-0", "vllm")
	s.requests(5, 3)
	s.tokens(1500) // 100 a second
	s.gauge(queries.InferenceKVCache, tags{queries.CacheTier: "device"}, 0.5)
	s.gauge(queries.InferenceKVCache, tags{queries.CacheTier: "host"}, 0.9)
	s.histogram(queries.TimeToFirstToken, "aa", fine, 90, 10, 0, 0)
	s.histogram(queries.TimePerToken, "aa", fine, 100, 0, 0, 0)
	s.histogram(queries.InterTokenLatency, "aa", fine, 100, 0, 0, 0)
	s.histogram(queries.RequestDuration, "aa", fine, 0, 0, 100, 0)
	s.counter(queries.InferenceFinished, tags{queries.Outcome: "success"}, 90)
	s.counter(queries.InferenceFinished, tags{queries.Outcome: "error"}, 8)
	s.counter(queries.InferenceFinished, tags{queries.Outcome: "rejected"}, 2)
	s.counter(queries.InferenceFinished, tags{queries.Outcome: "cancelled"}, 50)
	// Of another kind, and of a client that measures what it uses.
	w.server("vllm", "vllm-0", "").tokens(1e6)
	w.server("vllm", "vllm-0", "").histogram(queries.TimeToFirstToken, "aa", fine, 0, 0, 0, 1000)

	// Two layouts of buckets: the slower quantile counts, and a pod that just came not.
	of("mixed", 0)
	for _, pod := range []string{"mixed-0", "mixed-1", "mixed-2"} {
		w.server("mixed", pod, "vllm").requests(1, 0)
	}
	w.server("mixed", "mixed-0", "vllm").histogram(queries.TimeToFirstToken, "aa", fine, 1000, 0, 0, 0)
	w.server("mixed", "mixed-1", "vllm").histogram(queries.TimeToFirstToken, "bb", coarse, 0, 100, 0)
	w.server("mixed", "mixed-2", "vllm").histogram(queries.TimeToFirstToken, "cc", []float64{60}, 0, 1)
	w.server("mixed", "mixed-0", "vllm").gauge(queries.InferenceKVCache, tags{queries.CacheTier: "device"}, 0.2)
	w.server("mixed", "mixed-1", "vllm").gauge(queries.InferenceKVCache, tags{queries.CacheTier: "device"}, 0.8)

	// Sum and count of durations alone, and no tokens.
	of("sums", 0)
	s = w.server("sums", "sums-0", "triton")
	s.gauge(queries.InferenceUp, nil, 1)
	s.gauge(queries.InferenceRequests, tags{queries.RequestState: "waiting"}, 2)
	s.histogram(queries.RequestDuration, "none", nil, 100)
	s.counter(queries.InferenceFinished, tags{queries.Outcome: "success"}, 90)
	s.counter(queries.InferenceFinished, tags{queries.Outcome: "error"}, 0)

	// No histogram at all.
	of("bare", 0)
	s = w.server("bare", "bare-0", "llamacpp")
	s.requests(1, 0)
	s.tokens(150)
	s.histogram(queries.InterTokenLatency, "none", nil, 150)

	// Two engines of which one has no time to first token.
	of("both", 0)
	for _, engine := range []string{"vllm", "llamacpp"} {
		w.server("both", "both-"+engine, engine).requests(1, 0)
		w.server("both", "both-"+engine, engine).tokens(150)
	}
	w.server("both", "both-vllm", "vllm").histogram(queries.TimeToFirstToken, "aa", fine, 100, 0, 0, 0)

	// A page of two that cannot be read.
	of("silent", 0)
	w.server("silent", "silent-0", "vllm").requests(1, 0)
	w.server("silent", "silent-0", "vllm").tokens(150)
	w.server("silent", "silent-1", "vllm").gauge(queries.InferenceUp, nil, 0)

	// Part of the service is missing.
	of("part", 1)
	s = w.server("part", "part-0", "vllm")
	s.requests(4, 0)
	s.tokens(1500)
	s.histogram(queries.TimeToFirstToken, "aa", fine, 100, 0, 0, 0)

	// A GPU without power, as a MIG instance is.
	of("unmetered", 0)
	w.board("unmetered", "unmetered-1", "GPU-x/3", 0)
	s = w.server("unmetered", "unmetered-0", "vllm")
	s.requests(4, 0)
	s.tokens(1500)
}

func TestInference(t *testing.T) {
	w := newWorld(t)
	engines(w)
	c := serveAPI(t, w.store, w.now, nil)
	of := func(name string) *consoleapi.Inference {
		t.Helper()
		return ok[consoleapi.ServiceAnswer](c, "service", values("cluster", "c1", "namespace", "ml", "service", name)).Service.Inference
	}
	near := func(want float64, got *float64, what string) {
		t.Helper()
		require.NotNil(t, got, what)
		assert.InEpsilon(t, want, *got, 1e-9, what)
	}
	why := func(i *consoleapi.Inference, figure string) (all []string) {
		for _, l := range i.Lacking {
			if l.Figure == figure {
				engine := "-"
				if l.Engine != nil {
					engine = *l.Engine
				}
				all = append(all, engine+": "+l.Reason)
			}
		}
		return all
	}
	assert.Nil(t, of("plain"))

	v := of("vllm")
	assert.Equal(t, []string{"vllm"}, v.Engines)
	assert.Equal(t, &consoleapi.Servers{Up: 1, Of: 1}, v.Servers)
	near(0.15, v.TimeToFirstToken, "half of the ten that are in the second bucket")
	near(0.095, v.TimePerOutputToken, "interpolated as Prometheus does")
	near(0.095, v.InterTokenLatency, "beside it")
	near(0.39, v.RequestDuration, "request")
	near(100, v.OutputTokens, "a second")
	assert.Equal(t, 3.0, *v.Waiting)
	assert.Equal(t, 5.0, *v.Running)
	assert.Equal(t, 0.5, *v.KVCache, "of the GPU's memory alone")
	near(0.1, v.ErrorRatio, "without the cancelled")
	near(0.2, v.TokensPerJoule, "100 a second, 500 W")
	assert.Empty(t, v.Lacking)

	m := of("mixed")
	near(1.95, m.TimeToFirstToken, "of the slower layout")
	near(0.8, m.KVCache, "the fullest")
	assert.Equal(t, &consoleapi.Servers{Up: 3, Of: 3}, m.Servers)
	assert.Equal(t, 3.0, *m.Running)
	assert.Nil(t, m.RequestDuration)
	assert.Equal(t, []string{"-: nothing of it was reported in the last five minutes"}, why(m, "request_duration"))

	s := of("sums")
	assert.Nil(t, s.RequestDuration)
	assert.Equal(t, []string{"triton: it reports sum and count without buckets: there is a mean, and no quantile"}, why(s, "request_duration"))
	assert.Nil(t, s.OutputTokens)
	assert.Equal(t, []string{"triton: " + queries.InferenceCannot("triton", "output_tokens")}, why(s, "output_tokens"))
	assert.Equal(t, why(s, "output_tokens"), why(s, "tokens_per_joule"))
	assert.Equal(t, 2.0, *s.Waiting)
	assert.Zero(t, *s.ErrorRatio, "0 is data")

	b := of("bare")
	assert.Nil(t, b.InterTokenLatency, "a histogram without buckets has no quantile")
	assert.Nil(t, b.TimeToFirstToken)
	assert.NotEmpty(t, why(b, "time_to_first_token"))
	near(10, b.OutputTokens, "a second")
	near(0.02, b.TokensPerJoule, "10 a second, 500 W")
	assert.Zero(t, *b.Waiting)
	assert.Nil(t, b.ErrorRatio)

	e := of("both")
	assert.Equal(t, []string{"llamacpp", "vllm"}, e.Engines)
	assert.Nil(t, e.TimeToFirstToken, "it would be of one engine")
	assert.Equal(t, []string{"llamacpp: " + queries.InferenceCannot("llamacpp", "time_to_first_token")}, why(e, "time_to_first_token"))
	near(20, e.OutputTokens, "of both")

	down := of("silent")
	assert.Equal(t, &consoleapi.Servers{Up: 1, Of: 2}, down.Servers)
	assert.Nil(t, down.OutputTokens)
	for _, figure := range []string{"output_tokens", "tokens_per_joule", "waiting"} {
		assert.Equal(t, []string{"-: 1 of 2 inference servers did not answer, so it would not be of the whole service"}, why(down, figure), figure)
	}

	p := of("part")
	assert.Equal(t, []string{"vllm"}, p.Engines)
	assert.Nil(t, p.TimeToFirstToken)
	assert.Nil(t, p.OutputTokens)
	assert.Nil(t, p.Running)
	assert.Nil(t, p.TokensPerJoule)
	for _, f := range queries.InferenceFigures {
		assert.Equal(t, []string{"-: pods of the service are missing, so it would not be of the whole service"}, why(p, f.Name), f.Name)
	}

	u := of("unmetered")
	assert.Nil(t, u.TokensPerJoule)
	assert.Equal(t, []string{"-: the power of every GPU that the service holds is not known"}, why(u, "tokens_per_joule"))
}

// Every figure has its field and is what the expression of the rules gives; every field
// but three is a figure.
func TestInferenceFiguresHaveFields(t *testing.T) {
	w := newWorld(t)
	engines(w)
	c := serveAPI(t, w.store, w.now, nil)
	s := ok[consoleapi.ServiceAnswer](c, "service", values("cluster", "c1", "namespace", "ml", "service", "vllm")).Service
	text, err := json.Marshal(s.Inference)
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(text, &fields))
	assert.Len(t, fields, len(queries.InferenceFigures)+3)
	for _, f := range queries.InferenceFigures {
		assert.Equal(t, w.ask(f.Service(queries.Whole{Where: queries.OfService("c1", "ml", "vllm"), Over: queries.InferenceWindow})), fields[f.Name], f.Name)
	}
}

// In a list it is there where it was asked for, and with engines alone.
func TestInferenceInTheList(t *testing.T) {
	w := newWorld(t)
	engines(w)
	c := serveAPI(t, w.store, w.now, nil)
	for _, s := range ok[consoleapi.ServicesAnswer](c, "services", nil).Services {
		assert.Nil(t, s.Inference, s.Service)
	}
	got := map[string]bool{}
	for _, s := range ok[consoleapi.ServicesAnswer](c, "services", values("inference", "true")).Services {
		got[s.Service] = s.Inference != nil
		if s.Inference != nil {
			assert.Equal(t, ok[consoleapi.ServiceAnswer](c, "service", values("cluster", "c1", "namespace", "ml", "service", s.Service)).Service.Inference, s.Inference, s.Service)
		}
	}
	assert.Equal(t, map[string]bool{"plain": false, "vllm": true, "mixed": true, "sums": true, "bare": true, "part": true, "unmetered": true, "both": true, "silent": true}, got)
	assert.Empty(t, ok[consoleapi.ServicesAnswer](c, "services", values("inference", "true", "q", "nothing")).Services)
}

func TestInferenceCharts(t *testing.T) {
	w := newWorld(t)
	engines(w)
	c := serveAPI(t, w.store, w.now, nil)
	charts := func(name, by string) consoleapi.RangeAnswer {
		t.Helper()
		return ok[consoleapi.RangeAnswer](c, "range", values("cluster", "c1", "namespace", "ml", "service", name, "window", "30m", "by", by))
	}
	assert.Nil(t, charts("plain", "service").Charts.OutputTokens)

	r := charts("vllm", "service")
	require.NotNil(t, r.Charts.TimeToFirstToken)
	assert.Equal(t, "s", r.Charts.TimeToFirstToken.Unit)
	line := r.Charts.TimeToFirstToken.Series[0]
	assert.Equal(t, "vllm", line.Name)
	assert.InEpsilon(t, 0.15, *at(r, line.Values, 0), 1e-9)
	assert.Nil(t, at(r, line.Values, 25*time.Minute), "before its first sample")
	// From the first minute on what it is: not a rise from nothing.
	tokens := r.Charts.OutputTokens.Series[0].Values
	assert.Nil(t, at(r, tokens, 19*time.Minute+30*time.Second))
	for _, ago := range []time.Duration{17 * time.Minute, 10 * time.Minute, 0} {
		assert.InEpsilon(t, 100, *at(r, tokens, ago), 1e-9, ago)
	}
	w.gpu(gpu{tags: device("gpu-1", "GPU-vllm", 1, held("ml", "vllm", "vllm-0")), values: map[string]float64{"utilization": 0.5}})
	tokens = charts("vllm", "pod").Charts.OutputTokens.Series[0].Values
	assert.Nil(t, at(r, tokens, 17*time.Minute))
	assert.InEpsilon(t, 100, *at(r, tokens, 10*time.Minute), 1e-9)
	assert.NotNil(t, r.Charts.TimePerOutputToken)
	assert.Nil(t, charts("bare", "service").Charts.InterTokenLatency, "no buckets")

	for _, pod := range []string{"mixed-0", "mixed-1"} {
		w.gpu(gpu{tags: device("gpu-1", "GPU-"+pod, 1, held("ml", "mixed", pod)), values: map[string]float64{"utilization": 0.5}})
	}
	r = charts("mixed", "pod")
	require.Len(t, r.Charts.TimeToFirstToken.Series, 2, "the lines of the other charts")
	assert.InEpsilon(t, 0.095, *at(r, r.Charts.TimeToFirstToken.Series[0].Values, 0), 1e-9)
	assert.InEpsilon(t, 1.95, *at(r, r.Charts.TimeToFirstToken.Series[1].Values, 0), 1e-9)
	assert.Nil(t, r.Charts.OutputTokens)
}

// What engines made before they were read is not known: tokens per second are of the last
// minute until five were read, and before that there are none.
func TestInferenceOfNewEngines(t *testing.T) {
	for name, c := range map[string]struct {
		from   time.Duration
		why    string
		tokens float64
	}{
		"half a minute":   {30 * time.Second, "its inference servers have been read for less than five minutes", 0},
		"four minutes":    {4 * time.Minute, "", 100},
		"just above five": {5*time.Minute + 15*time.Second, "", 100},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.service(svc{cluster: "c1", namespace: "ml", name: "vllm", pods: pods{reporting: 1}, devices: 1, figures: map[string]float64{queries.ServicePower: 500}})
			w.board("vllm", "vllm-0", "GPU-0", 500)
			s := w.server("vllm", "vllm-0", "vllm")
			w.write(queries.InferenceUp, s.tags, c.from, 0, constant(1))
			w.write(queries.InferenceTokens, s.tags.with(tags{queries.TokenType: "output"}), c.from, 0, func(i int) float64 { return 1e6 + 1500*float64(i) })
			api := serveAPI(t, w.store, w.now, nil)
			got := ok[consoleapi.ServiceAnswer](api, "service", values("cluster", "c1", "namespace", "ml", "service", "vllm")).Service.Inference
			if c.why == "" {
				require.NotNil(t, got.OutputTokens)
				assert.InEpsilon(t, c.tokens, *got.OutputTokens, 1e-9)
				require.NotNil(t, got.TokensPerJoule)
				assert.InEpsilon(t, c.tokens/500, *got.TokensPerJoule, 1e-9)
				return
			}
			assert.Nil(t, got.OutputTokens)
			assert.Nil(t, got.TokensPerJoule)
			for _, l := range got.Lacking {
				if l.Figure == "output_tokens" || l.Figure == "tokens_per_joule" {
					assert.Equal(t, c.why, l.Reason, l.Figure)
				} else {
					assert.NotEqual(t, c.why, l.Reason, l.Figure)
				}
			}
		})
	}
}
