// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package alarm measures how long it takes until a webhook arrives: from the
// moment that an exporter dies, or that an XID is on its page, to the moment that
// the webhook arrives. The collector is the real one, with the configurations
// that are shipped; exporters and receiver are in this process.
package alarm

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/webhook"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

const (
	root     = "../../.."
	services = 20 // each on a node of its own; their exporters die
	boards   = 20 // on further nodes, one each, with an XID
	fatal    = 79 // fallen off the bus
)

type m = map[string]any

// setting is a configuration and its times.
type setting struct {
	configs    []string
	evaluation time.Duration // of gpu_summary
	staleness  time.Duration // computed by gpu_summary, or configured
	settled    time.Duration // from the start until every service is judged
	scrape     time.Duration // collection interval
}

var settings = map[string]setting{
	"demo": {
		configs:    []string{"standalone.yaml", "demo.yaml"},
		evaluation: 5 * time.Second, staleness: 10 * time.Second, settled: 35 * time.Second, scrape: 2 * time.Second,
	},
	"defaults": {
		configs:    []string{"standalone.yaml", "webhooks.yaml"},
		evaluation: 15 * time.Second, staleness: 45 * time.Second, settled: 125 * time.Second, scrape: 15 * time.Second,
	},
}

// BenchmarkAlarm reports the distribution of both times. Deaths and XIDs come at
// random moments, so at random phases of scrapes and evaluations. Run it with
// -benchtime 1x.
func BenchmarkAlarm(b *testing.B) {
	for _, name := range []string{"demo", "defaults"} {
		b.Run(name, func(b *testing.B) {
			s := settings[name]
			w := start(b, s)
			time.Sleep(s.settled)
			limit := s.staleness + s.evaluation + time.Second
			deaths, xids := w.strike(b, max(s.evaluation, s.scrape)*2, limit+s.evaluation)
			b.ReportMetric(0, "ns/op") // means nothing here
			report(b, "death", deaths)
			report(b, "xid", xids)
			late := 0
			for _, d := range deaths {
				if d > limit {
					late++
				}
			}
			b.ReportMetric(limit.Seconds(), "goal-s")
			b.ReportMetric(float64(late), "late")
		})
	}
}

func report(b *testing.B, what string, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(len(took)), what+"s")
	b.ReportMetric(took[0].Seconds(), what+"-min-s")
	b.ReportMetric(took[len(took)/2].Seconds(), what+"-median-s")
	b.ReportMetric(took[len(took)-1].Seconds(), what+"-max-s")
}

// world is a fleet, a collector that scrapes it, and its webhook's requests.
type world struct {
	fleet  *gpusim.Fleet
	server *exporters.Server
	sink   *webhook.Sink
}

func node(n int) string { return fmt.Sprintf("node-%02d", n) }

func service(n int) string { return fmt.Sprintf("service-%02d", n) }

func start(b *testing.B, s setting) *world {
	var cfg gpusim.Config
	for n := range services + boards {
		cfg.Nodes = append(cfg.Nodes, gpusim.Node{
			Name: node(n), Version: "4.6", Model: "H100", Devices: 1, PodLabels: true,
			Pods: []gpusim.Pod{{
				Namespace: "inference", Name: service(n) + "-0", Container: "server",
				Labels: map[string]string{"app": service(n)}, Devices: []string{"0"}, Load: gpusim.Inference,
			}},
		})
	}
	fleet, err := gpusim.New(cfg, time.Now)
	require.NoError(b, err)
	server, err := exporters.Serve(fleet, collector.Loopback, 0)
	require.NoError(b, err)
	b.Cleanup(server.Close)
	w := &world{fleet: fleet, server: server, sink: webhook.NewSink(time.Now)}
	receiver := httptest.NewServer(w.sink)
	b.Cleanup(receiver.Close)

	ports, err := collector.FreePorts()
	require.NoError(b, err)
	overlay := ports.Overlay()
	var endpoints []string
	for _, name := range fleet.Nodes() {
		endpoints = append(endpoints, server.URL(name))
	}
	overlay["receivers"].(m)["dcgm"] = m{"endpoints": endpoints}
	webhook := m{"allow_cidrs": []string{"127.0.0.0/8"}}
	if s.scrape < 15*time.Second { // the demo's receivers
		webhook["receivers"] = m{
			"sink":   m{"url": receiver.URL + "/ops"},
			"convox": m{"url": receiver.URL + "/convox"},
			"slack":  m{"url": receiver.URL + "/slack"},
		}
	}
	overlay["exporters"].(m)["webhook"] = webhook
	top, err := json.Marshal(overlay)
	require.NoError(b, err)
	bin, err := filepath.Abs(filepath.Join(root, "bin", "otelcol-gpu"))
	require.NoError(b, err)
	o := collector.Options{
		Binary: bin, Env: []string{"WEBHOOK_URL=" + receiver.URL + "/ops"}, Ports: ports,
		LogPath: filepath.Join(b.TempDir(), "collector.log"),
	}
	for _, name := range s.configs {
		o.Configs = append(o.Configs, filepath.Join(root, "config", name))
	}
	o.Configs = append(o.Configs, "yaml:"+string(top)) // JSON is YAML
	c, err := collector.Start(o)
	require.NoError(b, err)
	b.Cleanup(func() {
		select {
		case <-c.Exited():
			require.NoError(b, c.Died())
		default:
			require.NoError(b, c.Stop())
		}
	})
	require.NoError(b, c.WaitReady(b.Context()))
	return w
}

// strike lets every exporter of a service die, and every other board report an
// XID, each at a random moment of the window. It returns how long it took until
// the webhook arrived, and waits for each no longer than patience.
func (w *world) strike(b *testing.B, window, patience time.Duration) (deaths, xids []time.Duration) {
	var wg sync.WaitGroup
	at := make([]time.Time, services+boards)
	errs := make([]error, services+boards)
	for n := range at {
		wg.Go(func() {
			time.Sleep(rand.N(window))
			fault := gpusim.Fault{Node: node(n), Kind: gpusim.ExporterDown}
			if n >= services {
				fault = gpusim.Fault{Node: node(n), Kind: gpusim.XID, Device: "0", Code: fatal}
			}
			_, errs[n] = w.fleet.StartFault(fault)
			at[n] = time.Now()
			w.server.Reconcile()
		})
	}
	wg.Wait()
	require.NoError(b, errors.Join(errs...))
	for end := time.Now().Add(patience); time.Now().Before(end) && len(w.arrivals()) < len(at); {
		time.Sleep(time.Second)
	}
	arrivals := w.arrivals()
	for n, since := range at {
		devices, err := w.fleet.Devices(node(n))
		require.NoError(b, err)
		arrived, ok := arrivals[devices[0].UUID]
		if n < services {
			arrived, ok = arrivals[service(n)]
		}
		require.True(b, ok, "nobody was told of %s", node(n))
		took := arrived.Sub(since)
		require.Positive(b, took, "of what was no fault yet")
		if n < services {
			deaths = append(deaths, took)
		} else {
			xids = append(xids, took)
		}
	}
	return deaths, xids
}

// arrivals is when the first webhook about a service that is partial, or about an
// XID of a board, arrived.
func (w *world) arrivals() map[string]time.Time {
	arrivals := map[string]time.Time{}
	for _, r := range w.sink.Received() {
		var body struct {
			Type string
			Data struct {
				State    string
				Resource map[string]any
			}
		}
		if r.Path != "/ops" || json.Unmarshal([]byte(r.Body), &body) != nil || body.Data.State != "raised" {
			continue
		}
		var about any
		switch body.Type {
		case "gpu.service.partial":
			about = body.Data.Resource["service.name"]
		case "gpu.xid":
			about = body.Data.Resource["hw.id"]
		}
		name, ok := about.(string)
		if _, before := arrivals[name]; ok && !before {
			arrivals[name] = r.Time
		}
	}
	return arrivals
}
