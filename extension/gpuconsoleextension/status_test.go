// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// What a store holds, and which state the whole is in.
func TestStates(t *testing.T) {
	well := func(w *world) {
		w.exporter("n", 1, 0)
		w.gpu(gpu{tags: device("n", uuid+"0", 0, held("ml", "chat", "chat-0")), values: busy(0.5)})
	}
	for name, test := range map[string]struct {
		fill func(*world)
		want consoleapi.State
	}{
		"nothing": {func(*world) {}, consoleapi.NotEnabled},
		"other metrics alone": {func(w *world) {
			w.write("http_requests_total", tags{"job": "shop"}, time.Minute, 0, constant(1))
		}, consoleapi.NotEnabled},
		"devices without services": {well, consoleapi.NoServices},
		"an exporter without devices": {func(w *world) {
			w.exporter("n", 1, 0)
		}, consoleapi.NoServices},
		"warming": {func(w *world) {
			well(w)
			w.service(svc{cluster: "c1", namespace: "ml", name: "chat", pods: pods{warming: 2}})
		}, consoleapi.WarmingUp},
		"settled": {func(w *world) {
			well(w)
			w.service(svc{cluster: "c1", namespace: "ml", name: "chat", pods: pods{reporting: 1}, figures: averages(0.5)})
			w.service(svc{cluster: "c1", namespace: "ml", name: "new", pods: pods{warming: 1}})
		}, consoleapi.Ready},
		"pending alone": {func(w *world) {
			w.service(svc{cluster: "c1", namespace: "ml", name: "chat", pods: pods{notRunning: 1, pending: 1}})
		}, consoleapi.Ready},
		"the only exporter is down": {func(w *world) {
			w.exporter("n", 0, 0)
			w.gpu(gpu{tags: device("n", uuid+"0", 0, nil), values: busy(0.5), until: time.Minute})
			w.service(svc{cluster: "c1", namespace: "ml", name: "chat", pods: pods{missing: 1}, partial: 1, ratio: 1})
		}, consoleapi.ScraperDown},
		"one of two exporters is down": {func(w *world) {
			well(w)
			w.exporter("m", 0, 0)
			w.service(svc{cluster: "c1", namespace: "ml", name: "chat", pods: pods{reporting: 1}, figures: averages(0.5)})
		}, consoleapi.Ready},
		"an exporter that is no longer heard of": {func(w *world) {
			w.exporter("n", 1, 600)
			w.gpu(gpu{tags: device("n", uuid+"0", 0, nil), values: busy(0.5), until: 10 * time.Minute})
		}, consoleapi.ScraperDown},
		"telemetry of yesterday": {func(w *world) {
			w.write(queries.Utilization, device("n", uuid+"0", 0, nil).with(tags{queries.Task: "general"}), 6*time.Hour, 5*time.Hour, constant(1))
		}, consoleapi.ScraperDown},
		"telemetry without an exporter": {func(w *world) {
			w.gpu(gpu{tags: device("n", uuid+"0", 0, nil), values: busy(0.5)})
		}, consoleapi.NoServices},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.fill(w)
			got := ok[consoleapi.StatusAnswer](serveAPI(t, w.store, w.now, nil), "status", nil)
			assert.Equal(t, test.want, got.State)
			assert.True(t, got.Store.Reachable)
			assert.Nil(t, got.Store.Error)
		})
	}
}

func TestStatusCounts(t *testing.T) {
	w := newWorld(t)
	fleetOfNodes(w)
	w.service(svc{cluster: "c1", namespace: "ml", name: "chat", pods: pods{reporting: 1, missing: 2, warming: 2}, partial: 1, ratio: 2.0 / 3, figures: averages(0.5)})
	w.service(svc{cluster: "c1", namespace: "ml", name: "dark", pods: pods{missing: 2}, partial: 1, ratio: 1})
	c := serveAPI(t, w.store, w.now, func(c *Config) {
		c.Grafana = GrafanaConfig{URL: "https://grafana.example.com/g/", Dashboard: "gpu_1", Variables: map[string]string{"ns": "namespace", "app": "service"}}
	})
	got := ok[consoleapi.StatusAnswer](c, "status", nil)
	assert.Equal(t, consoleapi.Ready, got.State)
	down := func(node string, state consoleapi.ExporterState, age float64) consoleapi.Exporter {
		return consoleapi.Exporter{Cluster: pointer("c1"), Node: &node, Address: "10.0.0.1:9400", State: state, DataTime: w.now.Add(-time.Duration(age) * time.Second).UTC(), DataAge: age}
	}
	assert.Equal(t, consoleapi.Telemetry{
		ExportersUp: pointer(3), ExportersDown: pointer(2), ExportersFrozen: pointer(1), ExportersUnrecognized: pointer(0), DownExporters: []consoleapi.Exporter{
			down("down", consoleapi.ExporterDown, 0), down("lost", consoleapi.ExporterUnknown, 600), down("shared", consoleapi.ExporterFrozen, 0),
		},
		Devices: pointer(10), Services: pointer(2), ServicesPartial: pointer(2), ServicesNoData: pointer(1), PodsWarming: pointer(2), RaisedEvents: pointer(0), Notices: pointer(0),
		Kubernetes: pointer(true), Window: pointer("30m"),
	}, got.Telemetry)
	assert.Equal(t, "embedded", got.Store.Engine)
	assert.Equal(t, 86400.0, *got.Store.Retention)
	assert.Equal(t, []string{"5m", "30m", "1h", "24h"}, got.Config.Windows)
	assert.Equal(t, &consoleapi.Grafana{
		DashboardURL: "https://grafana.example.com/g/d/gpu_1",
		Variables:    []consoleapi.GrafanaVariable{{Name: "app", Value: "service"}, {Name: "ns", Value: "namespace"}},
	}, got.Config.Grafana)
}

// A young store is opened with the smallest window that has all its data, and so
// are the trends of services.
func TestWindowToOpenWith(t *testing.T) {
	for since, want := range map[time.Duration]string{
		time.Minute: "5m", 4 * time.Minute: "5m", 6 * time.Minute: "30m", 25 * time.Minute: "30m", 31 * time.Minute: "1h", 20 * time.Hour: "1h",
	} {
		w := newWorld(t)
		w.service(svc{namespace: "ml", name: "chat", pods: pods{reporting: 1}, figures: averages(0.5), from: min(since, time.Hour)})
		if since > time.Hour {
			w.write(queries.ExporterUp, tags{queries.Address: "localhost"}, since, 0, constant(1))
		}
		c := serveAPI(t, w.store, w.now, nil)
		status := ok[consoleapi.StatusAnswer](c, "status", nil)
		assert.Equal(t, want, *status.Telemetry.Window, since)
		assert.False(t, *status.Telemetry.Kubernetes)
		trend := func(window string) ([]*float64, *consoleapi.Grid) {
			query := values("trend", "true")
			if window != "" {
				query.Set("window", window)
			}
			got := ok[consoleapi.ServicesAnswer](c, "services", query)
			return got.Services[0].Trend, got.Trend
		}
		unasked, grid := trend("")
		asked, same := trend(want)
		assert.Equal(t, asked, unasked)
		assert.Equal(t, same, grid)
		require.Len(t, unasked, 31)
		filled := 0
		for _, v := range unasked {
			if v != nil {
				filled++
			}
		}
		assert.Greater(t, filled, 4, "%v: the line is more than a dot", since)
		_, day := trend("24h")
		assert.Equal(t, 48*60.0, day.Step)
	}
}
