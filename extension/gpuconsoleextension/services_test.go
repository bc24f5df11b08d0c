// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

const gib = 1 << 30

// averages are the figures of a service.
func averages(utilization float64) map[string]float64 {
	return map[string]float64{
		queries.ServiceUtilization: utilization, queries.ServiceUtilizationMin: utilization / 2, queries.ServiceUtilizationMax: utilization,
		queries.ServiceSM: utilization * 0.8, queries.ServiceDRAM: 0,
		queries.ServicePodMemory: 60 * gib, queries.ServicePodLimit: 80 * gib, queries.ServicePodPower: 512.5,
		queries.ServiceMemory: 120 * gib, queries.ServiceLimit: 160 * gib, queries.ServicePower: 1025,
	}
}

// Pages that follow the first are of its moment and order, and only what they show is read for
// them.
func TestPagesThatFollow(t *testing.T) {
	w := newWorld(t)
	for i := range 7 {
		w.service(svc{cluster: "c1", namespace: "ml", name: fmt.Sprint("s", i), pods: pods{reporting: 1}, devices: 1, figures: averages(0.5)})
	}
	counted := &countingStore{Store: w.store}
	now := w.now
	c := serveAPIAt(t, counted, func() time.Time { return now }, func(c *Config) { c.ShareFor = time.Second })
	var names []string
	var first int64
	query := values("limit", "3", "trend", "true")
	for page := range 3 {
		before := counted.asked.Load()
		got := ok[consoleapi.ServicesAnswer](c, "services", query)
		asked := counted.asked.Load() - before
		for _, s := range got.Services {
			names = append(names, s.Service)
			assert.Equal(t, 0.5, *s.Values.Utilization)
		}
		if page == 0 {
			first = asked
			for i := range 3 { // they would come first now
				w.service(svc{cluster: "c1", namespace: "ml", name: fmt.Sprint("a", i), pods: pods{missing: 1}, partial: 1, ratio: 1, devices: 1, figures: averages(0.5)})
			}
		} else {
			assert.Less(t, asked, first/2)
		}
		if got.Next != nil {
			query.Set("cursor", *got.Next)
		}
		assert.Equal(t, w.now.UTC().Truncate(time.Millisecond), got.Freshness.EvaluatedAt)
		now = now.Add(2 * time.Second) // responses are shared no longer
	}
	assert.Equal(t, []string{"s0", "s1", "s2", "s3", "s4", "s5", "s6"}, names)
	query.Set("q", "a")
	assert.NotEqual(t, 7, ok[consoleapi.ServicesAnswer](c, "services", query).Total, "others are read again")
}

// countingStore counts the queries of a moment.
type countingStore struct {
	store.Store
	asked atomic.Int64
}

func (s *countingStore) Instant(ctx context.Context, query string, at time.Time) (*store.Result, error) {
	s.asked.Add(1)
	return s.Store.Instant(ctx, query, at)
}

// fleetOfServices has a service of every kind.
func fleetOfServices(w *world) {
	at := func(name string, s svc) svc {
		s.cluster, s.namespace, s.name = "c1", "ml", name
		return s
	}
	w.service(at("well", svc{pods: pods{reporting: 2}, devices: 2, figures: averages(0.5), age: 10}))
	w.write(queries.ServicePipe, tags{queries.Cluster: "c1", queries.Namespace: "ml", queries.Service: "well", queries.Pipe: "tensor"}, 20*time.Minute, 0, constant(0.25))
	w.write(queries.ServicePipe, tags{queries.Cluster: "c1", queries.Namespace: "ml", queries.Service: "well", queries.Pipe: "fp16"}, 20*time.Minute, 0, constant(0))
	w.service(at("partial", svc{pods: pods{reporting: 1, missing: 2}, devices: 1, silent: 2, partial: 1, ratio: 2.0 / 3, figures: averages(0.25),
		states: map[string]string{"partial-1": "missing", "partial-0": "reporting", "partial-10": "missing"}}))
	w.service(at("dark", svc{pods: pods{missing: 2}, silent: 2, partial: 1, ratio: 1}))
	w.service(at("missing", svc{pods: pods{reporting: 3, missing: 1}, devices: 3, silent: 1, ratio: 0.25, figures: averages(0.9)}))
	w.service(at("degraded", svc{pods: pods{degraded: 1}, devices: 7, silent: 1, figures: averages(0.9)}))
	w.service(at("pending", svc{pods: pods{notRunning: 2, pending: 2}}))
	w.service(at("idle-1", svc{pods: pods{reporting: 1}, devices: 2, idle: 1, figures: averages(0.01)}))
	w.service(at("idle-2", svc{pods: pods{reporting: 2}, devices: 2, idle: 2, figures: averages(0.01)}))
	w.service(at("off", svc{pods: pods{notRunning: 1}}))
	w.service(at("warming", svc{pods: pods{warming: 1, notRunning: 1}}))
	w.service(at("unknown", svc{pods: pods{reporting: 1}, devices: 1, unknown: true}))
	w.service(at("silent", svc{pods: pods{reporting: 1}, devices: 1, figures: averages(0.5), age: 12, until: 2 * time.Minute}))
	w.service(svc{namespace: "ml", name: "well", pods: pods{reporting: 1}, devices: 1, figures: averages(0.75), age: 5})
}

func TestServices(t *testing.T) {
	w := newWorld(t)
	fleetOfServices(w)
	c := serveAPI(t, w.store, w.now, nil)
	got := ok[consoleapi.ServicesAnswer](c, "services", nil)
	require.Equal(t, 13, got.Total)
	assert.Nil(t, got.Next)
	assert.Equal(t, w.now.UTC(), got.Freshness.EvaluatedAt)
	assert.Equal(t, w.now.UTC(), *got.Freshness.DataTime)
	assert.False(t, got.Freshness.Stale)

	var order []string
	reasons := map[string][]consoleapi.Attention{}
	for _, s := range got.Services {
		order = append(order, s.Service)
		if s.Cluster != nil {
			reasons[s.Service] = s.Attention
		}
	}
	assert.Equal(t, []string{"silent", "dark", "partial", "missing", "degraded", "pending", "idle-2", "idle-1", "off", "warming", "unknown", "well", "well"}, order)
	assert.Equal(t, map[string][]consoleapi.Attention{
		"silent": {consoleapi.Stale}, "dark": {consoleapi.NoData, consoleapi.MissingPods},
		"partial": {consoleapi.Partial, consoleapi.MissingPods}, "missing": {consoleapi.MissingPods},
		"degraded": {consoleapi.DegradedPods}, "pending": {consoleapi.PendingPods, consoleapi.NotRunning},
		"idle-2": {consoleapi.IdleDevices}, "idle-1": {consoleapi.IdleDevices}, "off": {consoleapi.NotRunning},
		"warming": {consoleapi.Warming}, "unknown": {consoleapi.Unknown}, "well": {},
	}, reasons)
	assert.Equal(t, 13, *got.Summary.Services)
	assert.Equal(t, 6, *got.Summary.Attention)
	assert.Equal(t, 2, *got.Summary.PodsPending)
	assert.Nil(t, got.Summary.Devices, "no device has reported anything")
	assert.Nil(t, got.Summary.Power)
	assert.Nil(t, got.Trend)
}

// Every figure is the one that was written, absent ones are null, and 0 is 0.
func TestServiceFigures(t *testing.T) {
	w := newWorld(t)
	fleetOfServices(w)
	c := serveAPI(t, w.store, w.now.Add(5*time.Second), nil)
	of := func(cluster, name string) consoleapi.Service {
		return ok[consoleapi.ServiceAnswer](c, "service", values("cluster", cluster, "namespace", "ml", "service", name)).Service
	}
	s := of("c1", "well")
	selector := `{k8s_cluster_name="c1",k8s_namespace_name="ml",service_name="well"}`
	assert.Equal(t, w.ask("gpu_service_utilization_ratio"+selector), *s.Values.Utilization)
	assert.Equal(t, 0.5, *s.Values.Utilization)
	assert.Equal(t, 0.25, *s.UtilizationMin)
	assert.Equal(t, 0.5, *s.UtilizationMax)
	assert.Equal(t, 0.25, *s.Values.Tensor)
	assert.Zero(t, *s.Values.FP16)
	assert.Nil(t, s.Values.FP32)
	assert.Equal(t, 0.4, *s.Values.SM)
	assert.Zero(t, *s.Values.DRAM)
	assert.Equal(t, 60.0*gib, *s.Values.MemoryUsed)
	assert.Equal(t, 80.0*gib, *s.Values.MemoryTotal)
	assert.Equal(t, 512.5, *s.Values.Power)
	assert.Equal(t, 160.0*gib, *s.Totals.MemoryTotal)
	assert.Equal(t, 1025.0, *s.Totals.Power)
	assert.False(t, *s.Partial)
	assert.Zero(t, *s.MissingRatio)
	assert.Equal(t, w.now.Add(-10*time.Second).UTC(), *s.DataTime, "of the oldest point in the averages")
	assert.Equal(t, 15.0, *s.DataAge)
	assert.Equal(t, 2, *s.Pods.Total)
	assert.Zero(t, *s.Pods.Missing)
	assert.Equal(t, 2, *s.Devices.Held)
	assert.Nil(t, s.Devices.Busy, "there are devices, and none has reported its utilization")

	assert.Equal(t, 0.75, *of("", "well").Values.Utilization, "without a cluster it is another service")
	assert.Equal(t, consoleapi.Values{}, of("c1", "dark").Values)
	assert.Equal(t, 0, *of("c1", "dark").Devices.Busy)
	assert.Nil(t, of("c1", "dark").DataTime)
	assert.False(t, of("c1", "dark").Stale)
	assert.True(t, *of("c1", "dark").Partial)
	assert.Nil(t, of("c1", "unknown").Partial)
	assert.Nil(t, of("c1", "unknown").MissingRatio)
	assert.Nil(t, of("c1", "warming").MissingRatio)
	assert.True(t, of("c1", "silent").Stale)
	assert.Equal(t, 137.0, *of("c1", "silent").DataAge)

	partial := ok[consoleapi.ServiceAnswer](c, "service", values("cluster", "c1", "namespace", "ml", "service", "partial"))
	assert.Equal(t, []string{"partial-1", "partial-10"}, partial.MissingPods)
	assert.InDelta(t, 2.0/3, *partial.Service.MissingRatio, 1e-12)
	got := c.get("service", values("namespace", "ml", "service", "partial"))
	assert.Equal(t, 404, got.status, "in no cluster there is none of this name")
	assert.Contains(t, string(got.body), `"not_found"`)
}

// When the summary has been silent for longer than the store looks back, its
// services are shown as they were, and as stale.
func TestServicesOfASilentGateway(t *testing.T) {
	w := newWorld(t)
	fleetOfServices(w)
	gone := svc{cluster: "c1", namespace: "ml", name: "ended", pods: pods{reporting: 1}, from: 20 * time.Minute, until: 10 * time.Minute}
	w.service(gone)
	w.end(queries.ServicePods, gone.tags().with(tags{queries.StateOfPod: "reporting"}), 10*time.Minute-interval)
	w.now = w.now.Add(30 * time.Minute)
	c := serveAPI(t, w.store, w.now, nil)
	got := ok[consoleapi.ServicesAnswer](c, "services", nil)
	require.Equal(t, 13, got.Total)
	for _, s := range got.Services {
		assert.Contains(t, s.Attention, consoleapi.Stale)
		assert.True(t, s.Stale)
	}
	assert.Equal(t, 1800.0, *got.Freshness.DataAge)
	assert.True(t, got.Freshness.Stale)
	assert.Equal(t, 13, *got.Summary.Attention)

	later := serveAPI(t, w.store, w.now.Add(40*time.Minute), nil)
	empty := ok[consoleapi.ServicesAnswer](later, "services", nil)
	assert.Zero(t, empty.Total, "that is longer ago than remembered")
	assert.Nil(t, empty.Summary.Services)
	assert.Nil(t, empty.Freshness.DataTime)
}
