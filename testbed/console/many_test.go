// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// manyServices is how many services gpu_summary has at most by default (max_services).
const manyServices = 20_000

// Store and console are as they are by default. Every endpoint answers, and the log of the test has
// the time that each takes.
func TestAsManyServicesAsThereCanBe(t *testing.T) {
	const namespaces = 100
	s := newStore(t, func(c *gpustoreextension.Config) { c.API.NetAddr.Endpoint = "" })
	for namespace := range namespaces {
		var batch []store.Series
		for i := range manyServices / namespaces {
			batch = append(batch, seriesOfService(fmt.Sprint("team-", namespace), fmt.Sprint("notebook-", i))...)
		}
		a, err := s.Append(t.Context(), batch)
		require.NoError(t, err)
		require.Empty(t, a.Refused)
	}
	address := console(t, s) + "/api/v1/"
	timed := func(path string) []byte {
		began, cpu := time.Now(), cpuTime(t)
		status, body := get(t, address+path)
		t.Logf("%.2f s, %.2f s of a CPU, %d bytes: %s", time.Since(began).Seconds(), (cpuTime(t) - cpu).Seconds(), len(body), path)
		require.Equal(t, http.StatusOK, status, "%s: %.300s", path, body)
		return body
	}
	timed("services?limit=100&trend=true&inference=true")
	timed("status")
	seen, cursor := map[string]bool{}, ""
	for range 3 {
		var got consoleapi.ServicesAnswer
		require.NoError(t, json.Unmarshal(timed("services?limit=100&trend=true&inference=true"+cursor), &got))
		assert.Equal(t, manyServices, got.Total)
		assert.Equal(t, manyServices, *got.Summary.Services)
		require.Len(t, got.Services, 100)
		require.NotNil(t, got.Next)
		cursor = "&cursor=" + url.QueryEscape(*got.Next)
		for _, one := range got.Services {
			name := one.Namespace + "/" + one.Service
			assert.False(t, seen[name], name)
			seen[name] = true
			require.NotNil(t, one.Values.Utilization, name)
			assert.Equal(t, 0.5, *one.Values.Utilization)
			assert.Equal(t, 0.5, *one.Values.Tensor)
			assert.Equal(t, 1, *one.Pods.Total)
			assert.True(t, slices.ContainsFunc(one.Trend, func(v *float64) bool { return v != nil }), name)
		}
	}
	const service = "cluster=c1&namespace=team-7&service=notebook-7"
	for _, path := range []string{"services?q=notebook-77&limit=50", "nodes", "capacity", "events", "service?" + service, "pods?" + service, "range?window=1h&" + service} {
		timed(path)
	}
}

// A page of nodes whose telemetry names no node of Kubernetes selects devices by their ids, and is
// read in parts that the store answers.
func TestManyDevicesOnAPage(t *testing.T) {
	const nodes, boards = 100, 8
	s := newStore(t, func(c *gpustoreextension.Config) {
		c.API.NetAddr.Endpoint = ""
		c.Query.MaxSamples = 21 * 3 * nodes * boards // three series of each device
	})
	var batch []store.Series
	for node := range nodes {
		for board := range boards {
			batch = append(batch, seriesOfDevice(fmt.Sprint("host-", node), fmt.Sprintf("GPU-%08d-0000-0000-0000-%012d", node, board))...)
		}
	}
	a, err := s.Append(t.Context(), batch)
	require.NoError(t, err)
	require.Empty(t, a.Refused)
	status, body := get(t, console(t, s)+"/api/v1/nodes?limit=100")
	require.Equal(t, http.StatusOK, status, "%.300s", body)
	var got consoleapi.NodesAnswer
	require.NoError(t, json.Unmarshal(body, &got))
	require.Len(t, got.Nodes, nodes)
	for _, n := range got.Nodes {
		require.Len(t, n.Devices, boards)
		for _, d := range n.Devices {
			assert.Equal(t, 300.0, *d.Values.Power)
			assert.Equal(t, 0.5, *d.Values.Tensor)
		}
	}
}

// seriesOfDevice is a minute of a device on a host.
func seriesOfDevice(host, id string) (all []store.Series) {
	now := time.Now()
	put := func(metric string, v float64, more ...string) {
		s := store.Series{Labels: labels.FromStrings(append(more, model.MetricNameLabel, metric, queries.Host, host, queries.Device, id, queries.Model, "H100")...)}
		for _, ago := range []time.Duration{time.Minute / 2, 0} {
			s.Samples = append(s.Samples, store.Sample{Time: now.Add(-ago).UnixMilli(), Value: v})
		}
		all = append(all, s)
	}
	put(queries.Utilization, 0.5, queries.Task, "general")
	for metric, v := range map[string]float64{
		queries.MemoryUsage: 1 << 30, queries.MemoryLimit: 1 << 36, queries.SMActive: 0.5, queries.DRAMActive: 0.5, queries.Power: 300, queries.XIDLast: 0,
	} {
		put(metric, v)
	}
	put(queries.PipeActive, 0.5, queries.Pipe, "tensor")
	put(queries.PipeActive, 0, queries.Pipe, "fp16")
	return all
}

// cpuTime is what this process has used.
func cpuTime(t *testing.T) time.Duration {
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// seriesOfService is a minute of what gpu_summary has of a service of one pod.
func seriesOfService(namespace, name string) (all []store.Series) {
	now := time.Now()
	put := func(metric string, v float64, more ...string) {
		s := store.Series{Labels: labels.FromStrings(append(more, model.MetricNameLabel, metric, queries.Cluster, "c1", queries.Namespace, namespace, queries.Service, name)...)}
		for _, ago := range []time.Duration{time.Minute, time.Minute / 2, 0} {
			s.Samples = append(s.Samples, store.Sample{Time: now.Add(-ago).UnixMilli(), Value: v})
		}
		all = append(all, s)
	}
	for _, state := range []string{"degraded", "missing", "warming", "not_running"} {
		put(queries.ServicePods, 0, queries.StateOfPod, state)
	}
	put(queries.ServicePods, 1, queries.StateOfPod, "reporting")
	put(queries.ServiceDevices, 1, queries.StateOfDevice, "reporting")
	put(queries.ServiceDevices, 0, queries.StateOfDevice, "missing")
	put(queries.ServicePipe, 0.5, queries.Pipe, "tensor")
	for metric, v := range map[string]float64{
		queries.ServicePending: 0, queries.ServiceIdle: 0, queries.ServicePartial: 0, queries.ServiceMissingRatio: 0, queries.ServiceDataAge: 5,
		queries.ServiceUtilization: 0.5, queries.ServiceUtilizationMin: 0.5, queries.ServiceUtilizationMax: 0.5, queries.ServiceSM: 0.4, queries.ServiceDRAM: 0.1,
		queries.ServicePodMemory: 1 << 30, queries.ServicePodLimit: 1 << 36, queries.ServicePodPower: 300,
		queries.ServiceMemory: 1 << 30, queries.ServiceLimit: 1 << 36, queries.ServicePower: 300,
	} {
		put(metric, v)
	}
	return all
}
