// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheusremotewrite"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/prompage"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines"
	simulated "github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
)

// joined is an hour of a fleet as Prometheus has it, without a clock: its engines' pages
// through the processor, its devices as they are, and what the rules make of both.
type joined struct {
	cfg    gpusim.Config
	fleet  *gpusim.Fleet
	now    time.Time
	db     *teststorage.TestStorage
	engine *promql.Engine
	rules  *judge
	pods   []string // with engines
	pages  map[string]*prompage.Target
	into   processor.Metrics
	out    *consumertest.MetricsSink
	last   map[string]time.Time // when each page was read last
	first  time.Time
	// counted is what a store adds up of counters, by pod and series.
	counted map[string]map[string]float64
	values  map[string]float64
}

// chatFleet is a service whose pods have a device and an engine each: of two layouts.
func chatFleet(faults ...gpusim.Fault) gpusim.Config {
	labels := map[string]string{"app": "chat"}
	pod := func(i int, engine string) gpusim.Pod {
		return gpusim.Pod{
			Namespace: "ml", Name: "chat-" + strconv.Itoa(i), Container: "main", Labels: labels, Devices: []string{strconv.Itoa(i)}, Load: gpusim.Inference, Engine: engine,
			Requests: &simulated.Config{Rate: 1, Aborts: .03, Errors: .01, PrefixHits: .4},
		}
	}
	for i := range faults {
		faults[i].Node = "n1"
	}
	return gpusim.Config{Seed: 3, Faults: faults, Nodes: []gpusim.Node{{
		Name: "n1", Version: "4.6", Model: "H100", Devices: 6,
		Pods: []gpusim.Pod{pod(0, "vllm-0.21"), pod(1, "sglang-0.5"), pod(2, "vllm-0.5"), pod(3, "vllm-0.21"), pod(4, "vllm-0.21")},
	}}}
}

func aboutPod(name string) *gpusim.Pod { return &gpusim.Pod{Namespace: "ml", Name: name} }

func join(t *testing.T, cfg gpusim.Config) *joined {
	t.Helper()
	w := &joined{
		cfg: cfg, now: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), db: teststorage.New(t), engine: newEngine(), pages: map[string]*prompage.Target{}, out: &consumertest.MetricsSink{},
		last: map[string]time.Time{}, counted: map[string]map[string]float64{}, values: map[string]float64{},
	}
	var err error
	w.fleet, err = gpusim.New(cfg, func() time.Time { return w.now })
	require.NoError(t, err)
	for _, p := range cfg.Nodes[0].Pods {
		w.pods = append(w.pods, p.Name)
		w.pages[p.Name], w.counted[p.Name] = &prompage.Target{}, map[string]float64{}
	}
	factory := inferenceprocessor.NewFactory()
	w.into, err = factory.CreateMetrics(t.Context(), processortest.NewNopSettings(factory.Type()), factory.CreateDefaultConfig(), w.out)
	require.NoError(t, err)
	require.NoError(t, w.into.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, w.into.Shutdown(t.Context())) })
	w.rules = newJudge(t, w.db, w.engine, func(group string) bool { return group == "otelcol-gpu.inference" || group == "otelcol-gpu.usage" })
	return w
}

// run reads everything every fifteen seconds until a time since the start, without is
// what is left out, and evaluates the rules then.
func (w *joined) run(t *testing.T, until time.Duration, without ...string) {
	t.Helper()
	for end := w.fleet.Start().Add(until); w.now.Before(end); {
		at := w.now.Add(scrape)
		for _, pod := range w.pods {
			w.now = at.Add(-w.before(pod))
			w.page(t, pod)
		}
		w.now = at
		w.devices(t, at, without)
		if at.Unix()%60 == 0 {
			for _, g := range w.rules.groups {
				if g.Name() == "otelcol-gpu.usage" {
					g.Eval(t.Context(), at)
				}
			}
		}
	}
}

// before is how long before its devices a pod's page is read.
func (w *joined) before(pod string) time.Duration {
	return time.Duration(len(w.pods)-1-slices.Index(w.pods, pod)) * time.Second
}

// devices writes what the collector has of devices and of the service.
func (w *joined) devices(t *testing.T, at time.Time, without []string) {
	t.Helper()
	app := w.db.Appender(t.Context())
	add := func(value float64, name string, more ...string) {
		if slices.Contains(without, name) {
			return
		}
		_, err := app.Append(0, labels.FromStrings(append([]string{"__name__", name}, more...)...), at.UnixMilli(), value)
		require.NoError(t, err)
	}
	service := []string{queries.Namespace, "ml", queries.Service, "chat"}
	n := 0.0
	for _, d := range w.fleet.TruthAt(at).Nodes[0].Devices {
		of := []string{queries.Device, d.UUID}
		if d.Service != "" {
			n++
			of = append(of, append(service, queries.Pod, d.Pod)...)
		}
		add(d.PowerWatts, queries.Power, of...)
		add(d.EnergyMilliJoule/1000, queries.Energy, of...)
	}
	add(n, queries.ServiceDevices, append(service, queries.StateOfDevice, "reporting")...)
	add(0, queries.ServiceDevices, append(service, queries.StateOfDevice, "missing")...)
	add(0, queries.ServicePartial, service...)
	require.NoError(t, app.Commit())
}

// page reads an engine's page and writes what the processor makes of it.
func (w *joined) page(t *testing.T, pod string) {
	t.Helper()
	if i := slices.IndexFunc(w.cfg.Nodes[0].Pods, func(p gpusim.Pod) bool { return p.Name == pod }); w.now.Sub(w.fleet.Start()) < time.Duration(w.cfg.Nodes[0].Pods[i].Start) {
		return
	}
	text, err := w.fleet.EnginePage("ml", pod, w.now)
	if !errors.Is(err, engines.ErrDown) {
		require.NoError(t, err)
		w.last[pod] = w.now
	}
	md, err := w.pages[pod].Scrape(text, w.now)
	require.NoError(t, err)
	md.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.instance.id", pod)
	w.out.Reset()
	require.NoError(t, w.into.ConsumeMetrics(t.Context(), md))
	app := w.db.Appender(t.Context())
	seen := map[string]float64{}
	for _, md := range w.out.AllMetrics() {
		all, err := prometheusremotewrite.FromMetrics(md, prometheusremotewrite.Settings{
			TranslationStrategy: "UnderscoreEscapingWithSuffixes", AddMetricSuffixes: true, DisableTargetInfo: true, DisableScopeInfo: true,
		})
		require.NoError(t, err)
		for _, series := range all {
			b := labels.NewBuilder(labels.EmptyLabels())
			for _, l := range series.Labels {
				b.Set(l.Name, l.Value)
			}
			ls := b.Del("job", "instance").Set(queries.Namespace, "ml").Set(queries.Service, "chat").Set(queries.Pod, pod).Labels()
			for _, s := range series.Samples {
				_, err := app.Append(0, ls, s.Timestamp, s.Value)
				require.NoError(t, err, ls)
				if !math.IsNaN(s.Value) { // no marker
					seen[ls.String()] = s.Value
				}
				w.count(ls, s.Value)
			}
		}
	}
	require.NoError(t, app.Commit())
}

// count adds a sample to what a store has of a counter: one that falls began again, as
// does one that ended.
func (w *joined) count(ls labels.Labels, v float64) {
	name := ls.Get("__name__")
	counter := name == queries.InferenceTokens || strings.HasSuffix(name, "_count") && ls.Get(queries.Engine) != ""
	if !counter {
		return
	}
	key := ls.String()
	if math.IsNaN(v) {
		return // it may go on
	}
	rise := v - w.values[key]
	if rise < 0 {
		rise = v
	}
	w.values[key] = v
	if kind := ls.Get(queries.TokenType); kind != "" {
		name += " " + kind
	}
	w.counted[ls.Get(queries.Pod)][name] += rise
}

// recorded evaluates the rules of inference and returns what they record.
func (w *joined) recorded(t *testing.T) map[string]float64 {
	t.Helper()
	for _, g := range w.rules.groups {
		if g.Name() == "otelcol-gpu.inference" {
			g.Eval(t.Context(), w.now)
		}
		for _, r := range g.Rules() {
			require.NoError(t, r.LastError(), r.Name())
		}
	}
	out := map[string]float64{}
	for _, s := range w.ask(t, `{__name__=~"namespace_service:inference_.*",service_name="chat"}`) {
		out[strings.TrimPrefix(s.Metric.Get("__name__"), "namespace_service:inference_")] = s.F
	}
	return out
}

func (w *joined) ask(t *testing.T, q string) promql.Vector {
	t.Helper()
	query, err := w.engine.NewInstantQuery(t.Context(), w.db, nil, q, w.now)
	require.NoError(t, err, q)
	defer query.Close()
	vector, err := query.Exec(t.Context()).Vector()
	require.NoError(t, err, q)
	return append(promql.Vector(nil), vector...)
}

// truth is what a pod's engine did in a time.
func (w *joined) truth(t *testing.T, pod string, from, to time.Time) gpusim.PodRequests {
	t.Helper()
	all, err := w.fleet.RequestsOf("ml", "chat", from.Sub(w.fleet.Start()), to.Sub(w.fleet.Start()))
	require.NoError(t, err)
	i := slices.IndexFunc(all.Pods, func(p gpusim.PodRequests) bool { return p.Pod == pod })
	require.GreaterOrEqual(t, i, 0, pod)
	return all.Pods[i]
}

// window is what is read of five minutes: from the first reading within them to the last.
const window = 5*time.Minute - scrape

// read is what a pod's engine did in the window.
func (w *joined) read(t *testing.T, pod string) gpusim.PodRequests {
	t.Helper()
	last := w.now.Add(-w.before(pod))
	return w.truth(t, pod, last.Add(-window), last)
}

// joules is the energy that the service's devices took in a time, each since it is the
// service's.
func (w *joined) joules(from, to time.Time) (sum float64) {
	for _, p := range w.cfg.Nodes[0].Pods {
		begin := from
		if came := w.fleet.Start().Add(time.Duration(p.Start)); came.After(from) {
			begin = came
		}
		if begin.After(to) {
			continue
		}
		for at, sign := range map[time.Time]float64{begin: -1, to: 1} {
			for _, d := range w.fleet.TruthAt(at).Nodes[0].Devices {
				if strconv.Itoa(d.Index) == p.Devices[0] {
					sum += sign * d.EnergyMilliJoule / 1000
				}
			}
		}
	}
	return sum
}

// Tokens of a service by time, device and joule are what its engines made and its devices
// took, within 1 %.
func TestTokensOfAServiceAreItsEnginesTruth(t *testing.T) {
	w := join(t, chatFleet())
	w.run(t, 4*time.Minute)
	assert.Empty(t, figures(w.recorded(t), "output_tokens", "input_tokens", "tokens_per"), "before five minutes were read")
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
	assert.Empty(t, figures(got, "tokens_per_joule"), "the power is missing")
	assert.NotEmpty(t, figures(got, "output_tokens"))
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
