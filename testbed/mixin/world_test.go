// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/webhook"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/judge"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
)

const root = "../.."

type m = map[string]any

// fast is how much faster time goes: what is scraped every second is stored as if
// it had been scraped every fifteen, and the fleet's clock runs as fast.
const (
	fast   = 15
	scrape = time.Second * fast
	// earlier is for how long applications had run when a run began: what they cost is
	// about an hour.
	earlier = 80 * time.Minute
)

// world is a run of the binary over a simulated fleet, as a Prometheus server
// that scraped both of its pages has it.
type world struct {
	fleet  *gpusim.Fleet
	sink   *webhook.Sink
	c      *collector.Collector
	began  time.Time // the run's first moment, in its own time
	real   time.Time
	db     *teststorage.TestStorage
	engine *promql.Engine
	// reconcile applies the faults to the exporters' listeners.
	reconcile func()

	mu     sync.Mutex
	before map[string]labels.Labels
}

// now is the time of the run.
func (w *world) now() time.Time { return w.began.Add(time.Since(w.real) * fast) }

// healthyFleet is two nodes: a service over both, a training job, notebooks on
// MIG instances of which one is idle, and free devices; and a desk with a GPU that has the
// memory of its machine.
func healthyFleet() gpusim.Config {
	labels := func(name string) map[string]string { return map[string]string{"app.kubernetes.io/name": name} }
	pod := func(namespace, service, suffix string, load gpusim.Load, devices ...string) gpusim.Pod {
		return gpusim.Pod{Namespace: namespace, Name: service + "-" + suffix, Container: "main", Labels: labels(service), Devices: devices, Load: load}
	}
	return gpusim.Config{Seed: 11, Nodes: []gpusim.Node{
		{
			Name: "node-a", Version: "4.6", Model: "H100", Devices: 4, Fields: "all", PodLabels: true,
			Pods: []gpusim.Pod{pod("inference", "llama", "0", gpusim.Inference, "0", "1"), pod("training", "trainer", "0", gpusim.Training, "2")},
		},
		{
			Name: "node-b", Version: "4.5", Model: "A100-SXM4-80GB", Devices: 4, Fields: "all", PodLabels: true,
			MIG: map[string][]string{"3": {"3g.40gb", "1g.10gb"}},
			Pods: []gpusim.Pod{
				pod("inference", "llama", "1", gpusim.Inference, "0"),
				pod("notebooks", "jupyter", "0", gpusim.Inference, "3:0"), pod("notebooks", "jupyter", "1", gpusim.Idle, "3:1"),
			},
		},
		{
			Name: "desk", Version: "4.5", Model: "GB10", Devices: 1, PodLabels: true,
			Pods: []gpusim.Pod{pod("notebooks", "lab", "0", gpusim.Inference, "0")},
		},
	}}
}

// start begins a run that ends with the test.
func start(t *testing.T, cfg gpusim.Config) *world {
	t.Helper()
	w := &world{
		began: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), real: time.Now(),
		db: teststorage.New(t), engine: judge.NewEngine(), before: map[string]labels.Labels{},
	}
	var err error
	w.fleet, err = gpusim.New(cfg, w.now)
	require.NoError(t, err)
	server, err := exporters.Serve(w.fleet, collector.Loopback, 0)
	require.NoError(t, err)
	t.Cleanup(server.Close)
	w.reconcile = server.Reconcile
	w.sink = webhook.NewSink(time.Now)
	hooks := httptest.NewServer(w.sink)
	t.Cleanup(hooks.Close)

	var endpoints []string
	for _, node := range w.fleet.Nodes() {
		endpoints = append(endpoints, server.URL(node))
	}
	binary, err := filepath.Abs(filepath.Join(root, "bin", "otelcol-gpu"))
	require.NoError(t, err)
	require.FileExists(t, binary, "run make build")
	ports, err := collector.FreePorts()
	require.NoError(t, err)
	folder, err := os.MkdirTemp("", "m") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(folder)) })
	overlay := m{
		"receivers": m{
			"dcgm": m{"endpoints": endpoints, "collection_interval": "1s", "cluster_name": "c1"},
			"gpu_allocation": m{
				"socket": podResources(t, w.fleet, "node-a", folder), "node_name": "node-a", "auth_type": "none", "cluster_name": "c1",
				"poll_interval": "1s", "timeout": "1s", "collection_interval": "1s",
				"node_info": m{"region": "eu-north1", "host_type": "gpu-h100-4", "capacity_type": "spot"},
			},
		},
		"connectors": m{"gpu_cost": m{
			"flush_interval": "10s", // two and a half minutes
			"prices":         []m{{"match": m{"hw.model": "*"}, "gpu_hour": "2.95"}},
			"budgets":        []m{{"name": "all", "cost": "1000000", "period": "month"}},
			"carbon":         m{"pue": 1.2, "intensity": []m{{"region": "*", "grams_per_kwh": 45, "kind": "average"}}},
		}},
		"processors": m{"gpu_summary": m{
			"interval": "1s", "initial_interval": "1s", "staleness": "3s", "warmup": "2s", "idle_for": "4s", "service_ttl": "1m",
		}},
		"exporters": m{
			"prometheus": m{"metric_expiration": "6s"}, // a minute and a half
			"webhook": m{
				"receivers":   m{"sink": m{"url": hooks.URL + "/hook"}, "broken": m{"url": hooks.URL + "/broken"}},
				"allow_cidrs": []string{"127.0.0.0/8"},
				"audit":       m{"path": filepath.Join(folder, "audit.jsonl")},
			},
		},
		"service": m{"pipelines": m{
			"metrics":     m{"receivers": []string{"dcgm", "gpu_allocation"}},
			"logs/events": m{"exporters": []string{"debug/events", "gpu_store", "webhook"}},
		}},
	}
	var texts []string
	for _, o := range []any{ports.Overlay(), overlay} {
		text, err := json.Marshal(o)
		require.NoError(t, err)
		texts = append(texts, "yaml:"+string(text))
	}
	w.c, err = collector.Start(collector.Options{
		Binary: binary, Configs: append([]string{filepath.Join(root, "config", "standalone.yaml")}, texts...),
		LogPath: filepath.Join(t.TempDir(), "collector.log"), Ports: ports,
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, w.c.Stop())
		if t.Failed() {
			text, _ := os.ReadFile(w.c.LogPath)
			t.Log(string(text[max(0, len(text)-20000):]))
		}
	})
	require.NoError(t, w.c.WaitReady(t.Context()))

	w.past(t)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { w.scrape(ctx) })
	t.Cleanup(func() { cancel(); done.Wait() })
	return w
}

// podResources is the socket of a kubelet that gave the node's pods their devices.
func podResources(t *testing.T, fleet *gpusim.Fleet, node, folder string) (socket string) {
	t.Helper()
	k := kubelet.New(kubelet.Options{})
	for _, n := range fleet.TruthAt(fleet.Start()).Nodes {
		if n.Name != node {
			continue
		}
		var ids []string
		for _, d := range n.Devices {
			ids = append(ids, d.UUID)
		}
		k.SetDevices("nvidia.com/gpu", kubelet.Devices(ids...))
		for _, d := range n.Devices {
			if d.Pod != "" {
				require.NoError(t, k.Force(kubelet.Pod{Namespace: d.Namespace, Name: d.Pod}, d.Container, "nvidia.com/gpu", kubelet.Devices(d.UUID)...))
			}
		}
	}
	socket = filepath.Join(folder, "kubelet.sock")
	require.NoError(t, k.Serve(socket))
	t.Cleanup(k.Stop)
	return socket
}

// scrape stores both pages of the collector every second until the context ends.
func (w *world) scrape(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		w.store(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// past stores what applications reported before the run began.
func (w *world) past(t *testing.T) {
	t.Helper()
	app := w.db.Appender(t.Context())
	for age := time.Duration(0); age < earlier; age += scrape {
		for _, s := range application(age.Seconds()) {
			_, err := app.Append(0, s.labels, w.began.Add(age-earlier).UnixMilli(), s.value)
			require.NoError(t, err)
		}
	}
	require.NoError(t, app.Commit())
}

// store is what Prometheus does with a scrape: a series that is no longer on a
// page has ended, and up is whether there was one.
func (w *world) store(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, page := w.now().UnixMilli(), map[string]labels.Labels{}
	app := w.db.Appender(ctx)
	add := func(ls labels.Labels, v float64) {
		page[ls.String()] = ls
		_, _ = app.Append(0, ls, at, v)
	}
	for job, read := range map[string]func(context.Context) (map[string]*dto.MetricFamily, error){
		"otelcol-gpu": w.c.Metrics, "otelcol-gpu-own": w.c.OwnMetrics,
	} {
		families, err := read(ctx)
		up := 1.0
		if err != nil {
			up = 0
		}
		add(labels.FromStrings("__name__", "up", "job", job, "instance", "collector"), up)
		for name, f := range families {
			for _, metric := range f.GetMetric() {
				b := labels.NewBuilder(labels.FromStrings("job", job, "instance", "collector"))
				for _, l := range metric.GetLabel() {
					b.Set(l.GetName(), l.GetValue())
				}
				if h := metric.GetHistogram(); h != nil {
					for _, bucket := range h.GetBucket() {
						ls := labels.NewBuilder(b.Labels()).Set("__name__", name+"_bucket").Set("le", fmt.Sprint(bucket.GetUpperBound())).Labels()
						add(ls, float64(bucket.GetCumulativeCount()))
					}
					add(labels.NewBuilder(b.Labels()).Set("__name__", name+"_bucket").Set("le", "+Inf").Labels(), float64(h.GetSampleCount()))
					continue
				}
				add(b.Set("__name__", name).Labels(), collector.Value(metric))
			}
		}
	}
	for _, s := range application((earlier + w.now().Sub(w.began)).Seconds()) {
		add(s.labels, s.value)
	}
	for key, ls := range w.before {
		if _, ok := page[key]; !ok {
			_, _ = app.Append(0, ls, at, math.Float64frombits(value.StaleNaN))
		}
	}
	w.before = page
	_ = app.Commit()
}

// run lets the run's time pass.
func (w *world) run(d time.Duration) { time.Sleep(d / fast) }

// ask evaluates PromQL at a time.
func (w *world) ask(t *testing.T, q string, at time.Time) promql.Vector {
	t.Helper()
	query, err := w.engine.NewInstantQuery(t.Context(), w.db, nil, q, at)
	require.NoError(t, err, q)
	defer query.Close()
	vector, err := query.Exec(t.Context()).Vector()
	require.NoError(t, err, q)
	return append(promql.Vector(nil), vector...)
}
