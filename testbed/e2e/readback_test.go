// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/otlp"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
)

const readBackNode = "gpu-node-r"

// readBack is a node with time that stands still unless a test moves it, its kubelet,
// and three outputs of one collector.
type readBack struct {
	fleet *gpusim.Fleet
	node  *kubelet.Kubelet
	otlp  *otlpHistory
	write *history // prometheus_remote_write
	page  *history // prometheus
	uuids []string

	mu     sync.Mutex
	now    time.Time
	truths []fact
}

// fact is the truth from a moment on.
type fact struct {
	at       time.Time
	devices  float64            // bytes in use on all devices
	services map[string]float64 // bytes in use by the pods of each service
	truth    gpusim.Truth
}

func (r *readBack) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// note records the truth of now.
func (r *readBack) note() fact {
	now := fact{at: time.Now(), services: map[string]float64{}, truth: r.fleet.TruthAt(r.clock())}
	for _, d := range now.truth.Nodes[0].Devices {
		now.devices += float64(d.MemoryUsedMiB << 20)
	}
	for _, s := range now.truth.Services {
		now.services[s.Name] = float64(s.MemoryUsedMiB << 20)
	}
	r.truths = append(r.truths, now)
	return now
}

// allocated is a pod with the devices that the kubelet gave it: "<index>" or
// "<index>::<replica>".
func allocated(service, pod string, devices ...string) gpusim.Pod {
	return gpusim.Pod{
		Namespace: "ml", Name: pod, Container: "main", Devices: devices, Load: gpusim.Training,
		Labels: map[string]string{"app": service}, Warmup: gpusim.Duration(time.Second),
	}
}

// hand makes these the pods of the node, assigns the devices in the kubelet, and lets
// them warm up.
func (r *readBack) hand(t *testing.T, before, after []gpusim.Pod) {
	t.Helper()
	require.NoError(t, r.fleet.SetPods(readBackNode, after))
	if before != nil {
		r.note() // the devices' new owners have used nothing yet
	}
	key := func(p gpusim.Pod) kubelet.Pod { return kubelet.Pod{Namespace: p.Namespace, Name: p.Name} }
	for _, p := range before {
		if !slices.ContainsFunc(after, func(q gpusim.Pod) bool { return q.Name == p.Name }) {
			r.node.Release(key(p))
		}
	}
	for _, p := range after {
		if slices.ContainsFunc(before, func(q gpusim.Pod) bool { return q.Name == p.Name }) {
			continue
		}
		for _, d := range p.Devices {
			id := r.uuids[d[0]-'0'] + d[1:]
			require.NoError(t, r.node.Force(key(p), p.Container, "nvidia.com/gpu", kubelet.Devices(id)...))
		}
	}
	r.mu.Lock()
	r.now = r.now.Add(time.Minute)
	r.mu.Unlock()
	r.note()
}

func newReadBack(t *testing.T, pods []gpusim.Pod) *readBack {
	t.Helper()
	r := &readBack{now: time.Now().Truncate(time.Second), node: kubelet.New(kubelet.Options{})}
	var err error
	r.fleet, err = gpusim.New(gpusim.Config{Seed: 7, Nodes: []gpusim.Node{{
		Name: readBackNode, Version: "4.6", Model: "H100", Devices: 4, PodLabels: true, VirtualGPUs: true,
	}}}, r.clock)
	require.NoError(t, err)
	infos, err := r.fleet.Devices(readBackNode)
	require.NoError(t, err)
	for _, d := range infos {
		r.uuids = append(r.uuids, d.UUID)
	}
	r.node.SetDevices("nvidia.com/gpu", slices.Concat(
		kubelet.Devices(r.uuids[:3]...), kubelet.Replicas(kubelet.Devices(r.uuids[3]), 2)))
	r.hand(t, nil, pods)

	folder, err := os.MkdirTemp("", "k") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(folder)) })
	socket := filepath.Join(folder, "kubelet.sock")
	require.NoError(t, r.node.Serve(socket))
	t.Cleanup(r.node.Stop)
	server, err := exporters.Serve(r.fleet, "127.0.0.1", 0)
	require.NoError(t, err)
	t.Cleanup(server.Close)

	r.otlp = &otlpHistory{history: newHistory(t, "otlp")}
	r.write, r.page = newHistory(t, "prometheus_remote_write"), newHistory(t, "prometheus")
	summary := maps.Clone(quick)
	maps.Copy(summary, m{"expected_pods": "allocation", "storage": nil, "allocation_ttl": "5s", "service_ttl": "6s"})
	c := start(t, m{
		"receivers": m{
			"dcgm": m{"endpoints": []string{server.URL(readBackNode)}, "collection_interval": "1s"},
			"gpu_allocation": m{
				"socket": socket, "node_name": readBackNode, "auth_type": "none",
				"poll_interval": "1s", "timeout": "1s", "collection_interval": "1s",
			},
		},
		"processors": m{
			"gpu_summary": summary,
			// The service comes from elsewhere, as k8s_attributes sets it behind an agent.
			"gpu_pod": m{"service_name": "none"},
			"transform/service": m{"metric_statements": []m{{"context": "resource", "statements": []string{
				`set(resource.attributes["service.name"], Split(resource.attributes["k8s.pod.name"], "-")[0]) where resource.attributes["k8s.pod.name"] != nil`,
			}}}},
		},
		"exporters": m{
			"otlp_http": otlp.Exporter(serve(t, otlp.Handler{Metrics: r.otlp.take})),
			"prometheus_remote_write": m{
				"endpoint":                         serve(t, http.HandlerFunc(r.write.remoteWrite)),
				"translation_strategy":             "UnderscoreEscapingWithSuffixes",
				"disable_scope_info":               true,
				"resource_to_telemetry_conversion": m{"enabled": true},
				"target_info":                      m{"enabled": false},
			},
		},
		"service": m{"pipelines": m{
			"metrics": m{
				"receivers":  []string{"dcgm", "gpu_allocation"},
				"processors": []string{"memory_limiter", "gpu_pod", "transform/service", "gpu_summary"},
				"exporters":  []string{"best_effort/prometheus", "gpu_events", "gpu_cost", "otlp_http"},
			},
			"metrics/prometheus": m{"exporters": []string{"prometheus", "prometheus_remote_write"}},
		}},
	}, nil, config("standalone.yaml"))
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { r.page.scrape(ctx, c, 300*time.Millisecond) })
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return r
}

func (r *readBack) outputs() []*history { return []*history{r.otlp.history, r.write, r.page} }

// inBytes are the names of a metric of bytes in the three outputs.
func inBytes(h *history, name string) string {
	if h.name == "otlp" {
		return name
	}
	return name + "_bytes"
}

// settled waits until every output shows the newest truth, looks on for some
// evaluations, and returns when that was.
func (r *readBack) settled(t *testing.T, what string) (at time.Time) {
	t.Helper()
	want := r.truths[len(r.truths)-1]
	var seen string
	ok := func() bool {
		seen = ""
		for _, h := range r.outputs() {
			q := "sum by (service_name) (" + inBytes(h, "gpu_service_memory_usage") + ")"
			got := h.query(t, q, time.Now())
			expect := map[string]float64{}
			for s, v := range want.services {
				expect[fmt.Sprintf(`{service_name=%q}`, s)] = v
			}
			states := h.sum(t, `sum(gpu_service_pods{gpu_pod_state!="reporting"})`, time.Now())
			others := h.query(t, `count by (__name__, service_name) ({service_name!="",service_name!~"`+
				strings.Join(slices.Collect(maps.Keys(want.services)), "|")+`"} != 0)`, time.Now())
			if !maps.Equal(expect, got) || states != 0 || len(others) > 0 {
				seen += fmt.Sprintf("%s: %v and not %v, %v pods do not report, gone: %v\n", h.name, got, expect, states, others)
			}
		}
		return seen == ""
	}
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			require.Fail(t, what, seen)
		}
		time.Sleep(200 * time.Millisecond)
	}
	later := float64(time.Now().Add(3 * time.Second).Unix())
	for _, h := range r.outputs() {
		require.Eventually(t, func() bool { return h.sum(t, "max(timestamp(gpu_service_pods))", time.Now()) >= later },
			patience, 200*time.Millisecond, "%s: no more evaluations in %s", what, h.name)
	}
	return time.Now()
}

// What leaves is read back from OTLP, remote write and the exporter's page, each
// in Prometheus' own storage: a GPU goes from one service to another, a replica
// becomes free, a service goes away.
func TestReadBack(t *testing.T) {
	t.Parallel()
	phases := []struct {
		name string
		pods []gpusim.Pod
	}{
		{"before", []gpusim.Pod{allocated("chat", "chat-0", "0"), allocated("chat", "chat-1", "1"), allocated("batch", "batch-0", "2"), allocated("note", "note-0", "3::0"), allocated("note", "note-1", "3::1")}},
		{"a GPU changes hands", []gpusim.Pod{allocated("chat", "chat-0", "0"), allocated("batch", "batch-1", "1"), allocated("batch", "batch-0", "2"), allocated("note", "note-0", "3::0"), allocated("note", "note-1", "3::1")}},
		{"a replica changes hands", []gpusim.Pod{allocated("chat", "chat-0", "0"), allocated("batch", "batch-1", "1"), allocated("batch", "batch-0", "2"), allocated("note", "note-0", "3::0"), allocated("batch", "batch-2", "3::1")}},
		{"a replica goes free", []gpusim.Pod{allocated("chat", "chat-0", "0"), allocated("batch", "batch-1", "1"), allocated("batch", "batch-0", "2"), allocated("note", "note-0", "3::0")}},
		{"a service is gone", []gpusim.Pod{allocated("batch", "batch-1", "1"), allocated("batch", "batch-0", "2"), allocated("note", "note-0", "3::0")}},
	}
	r := newReadBack(t, phases[0].pods)
	began := r.settled(t, phases[0].name)
	known := map[string]map[string]bool{}
	r.check(t, phases[0].name, began, known)
	end := began
	for i, phase := range phases[1:] {
		r.hand(t, phases[i].pods, phase.pods)
		end = r.settled(t, phase.name)
		r.check(t, phase.name, end, known)
	}

	for _, h := range r.outputs() {
		assert.Empty(t, h.refused(), "every sample of %s is one of its series and time, and newer than the last", h.name)
		r.always(t, h, began.Add(-2*time.Second), end)
		r.stable(t, h, known[h.name])
	}
	r.oneCall(t)
}
