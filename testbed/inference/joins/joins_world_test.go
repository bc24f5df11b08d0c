// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package joins

import (
	"errors"
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
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/judge"
)

const (
	root   = "../../.."       // of the repository
	scrape = 15 * time.Second // between two
)

// joined is an hour of a fleet as Prometheus has it, without a clock: its engines' pages
// through the processor, its devices as they are, and what the rules make of both.
type joined struct {
	cfg    gpusim.Config
	fleet  *gpusim.Fleet
	now    time.Time
	db     *teststorage.TestStorage
	engine *promql.Engine
	rules  *judge.Judge
	pods   []string // with engines
	pages  map[string]*prompage.Target
	into   processor.Metrics
	out    *consumertest.MetricsSink
	last   map[string]time.Time // when each page was read last
	// counted is what a store adds up of counters, by pod and series.
	counted map[string]map[string]float64
	values  map[string]float64
}

// chatFleet is a service of pods with a device and an engine each: of two layouts.
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
		cfg: cfg, now: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), db: teststorage.New(t), engine: judge.NewEngine(), pages: map[string]*prompage.Target{}, out: &consumertest.MetricsSink{},
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
	w.rules = judge.New(t, w.db, w.engine, judge.Files(t, root), func(group string) bool { return group == "otelcol-gpu.inference" || group == "otelcol-gpu.usage" })
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
			for _, g := range w.rules.Groups {
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
	for _, g := range w.rules.Groups {
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
