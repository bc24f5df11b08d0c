// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

const (
	everything = `{__name__=~".+"}`
	tenant     = "gpu-fleet"
	secret     = "Bearer not-in-any-log"
)

// balancer is a Service of several pods: each new connection goes to the next of
// the backends that takes it.
type balancer struct {
	address string
	next    atomic.Int64
	went    [2]atomic.Int64 // connections by backend
}

func balance(t *testing.T, backends [2]string) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", collector.Loopback+":0")
	require.NoError(t, err)
	b := &balancer{address: l.Addr().String()}
	var open sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); open.Wait() })
	open.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { b.forward(from, backends) })
		}
	})
	return b
}

func (b *balancer) forward(from net.Conn, backends [2]string) {
	defer from.Close()
	for range backends {
		i := int(b.next.Add(1)-1) % len(backends)
		to, err := net.Dial("tcp", backends[i])
		if err != nil {
			continue
		}
		defer to.Close()
		b.went[i].Add(1)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = io.Copy(to, from) // ends when either side does
			_ = to.Close()
		}()
		_, _ = io.Copy(from, to)
		_ = from.Close()
		<-done
		return
	}
}

// tee hands remote write on to a server and keeps in history what came twice.
type tee struct {
	*history
	server string

	tenants, secrets sync.Map // values of these headers
}

func (w *tee) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.tenants.Store(r.Header.Get("X-Scope-OrgID")+r.Header.Get("THANOS-TENANT"), true)
	w.secrets.Store(r.Header.Get("Authorization"), true)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	on, err := http.NewRequestWithContext(r.Context(), http.MethodPost, w.server+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	on.Header = r.Header.Clone()
	answer, err := http.DefaultClient.Do(on)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		rw.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(rw, answer.Body)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	w.remoteWrite(rw, r)
}

// nodes are APIs of the first nodes of a fleet and the ports of their exporters.
func nodes(t *testing.T, f *gpusim.Fleet, endpoints []string, n int) (apis []*kubeapi.API, ports []int) {
	t.Helper()
	for i, name := range f.Nodes()[:n] {
		exporter, err := url.Parse(endpoints[i])
		require.NoError(t, err)
		port, err := strconv.Atoi(exporter.Port())
		require.NoError(t, err)
		api := kubeapi.New(name)
		api.AddPod("gpu-operator", "exporter-"+name, m{"labels": m{"app": "nvidia-dcgm-exporter"}}, exporter.Hostname())
		for _, s := range f.TruthAt(f.Start()).Services {
			for j, p := range s.Pods {
				if p.Node == name {
					api.AddPod(s.Namespace, p.Name, m{"labels": m{"app.kubernetes.io/name": s.Name}}, fmt.Sprintf("10.0.%d.%d", i, j+1))
				}
			}
		}
		apis, ports = append(apis, api), append(ports, port)
	}
	return apis, ports
}

func grpcOf(c *collector.Collector) string {
	return fmt.Sprintf("%s:%d", collector.Loopback, c.Ports.OTLPGRPC)
}

// Agents, two stateless gateways and the gateway write into one Prometheus
// server, each series once and under the names of the embedded store, and the
// console reads there. A stateless gateway that goes away takes nothing with it.
func TestScaleOut(t *testing.T) {
	t.Parallel()
	f, _, endpoints := frozenFleet(t)
	server := startPrometheus(t, "storage: {tsdb: {out_of_order_time_window: 10m}}\n")
	written := &tee{history: newHistory(t, "remote write"), server: server}
	env := []string{
		"K8S_CLUSTER_NAME=c1", "REMOTE_WRITE_URL=" + serve(t, written) + "/api/v1/write", "QUERY_URL=" + server,
		"REMOTE_WRITE_TENANT=" + tenant, "REMOTE_WRITE_AUTHORIZATION=" + secret,
	}
	// What a slow machine lets time out would be sent again.
	patient := m{"timeout": "1m"}
	writes := m{"exporters": m{"prometheus_remote_write": m{"http": patient}}}
	raw := []*collector.Collector{start(t, writes, env, config("scale-out.yaml")), start(t, writes, env, config("scale-out.yaml"))}
	service := balance(t, [2]string{grpcOf(raw[0]), grpcOf(raw[1])})
	// Which pods there should be is seen, since nothing plays the API server here.
	summary := maps.Clone(quick)
	summary["expected_pods"] = "seen"
	overlay := m{"processors": m{"gpu_summary": summary}}
	gateway := start(t, m{"processors": overlay["processors"], "exporters": writes["exporters"]}, env, config("gateway.yaml"), config("scale-out-gateway.yaml"))
	embedded := start(t, overlay, env, config("gateway.yaml"))

	apis, ports := nodes(t, f, endpoints, 2)
	for i, api := range apis {
		agent := start(t, m{
			"receivers": m{
				"gpu_allocation": m{"socket": filepath.Join(t.TempDir(), "kubelet.sock")},
				"dcgm":           m{"kubernetes": m{"port": ports[i]}, "collection_interval": "1s", "frozen_after": never},
			},
			// The same telemetry into a gateway with a store of its own.
			"exporters": m{
				"otlp_grpc/embedded": m{"endpoint": grpcOf(embedded), "tls": m{"insecure": true}, "sending_queue": m{"num_consumers": 1}},
				"otlp_grpc/raw":      patient,
			},
			"service": m{"pipelines": m{
				"metrics":        m{"exporters": []string{"otlp_grpc/raw", "forward/summary", "gpu_events", "otlp_grpc/embedded"}},
				"metrics/health": m{"exporters": []string{"otlp_grpc/raw", "otlp_grpc", "otlp_grpc/embedded"}},
			}},
		}, append(agentEnv(t, api, grpcOf(gateway)), "K8S_CLUSTER_NAME=c1", "RAW_ENDPOINT="+service.address, "RAW_INSECURE=true"),
			config("agent.yaml"), config("agent-raw.yaml"))
		defer func() { assert.NotContains(t, log(t, agent), "deprecated") }()
	}
	own := fmt.Sprintf("http://%s:%d", collector.Loopback, embedded.Ports.Store)

	// What is the same in both when all stands still.
	settles := func(series string) bool {
		return slices.ContainsFunc([]string{"hw_gpu_memory_usage_bytes{", "gpu_service_memory_usage_bytes{", "gpu_service_pods{"}, func(name string) bool {
			return strings.HasPrefix(series, name)
		})
	}
	var ours, theirs map[string]float64
	require.Eventually(t, func() bool {
		var err, err2 error
		ours, err = samples(t.Context(), own, everything)
		theirs, err2 = samples(t.Context(), server, everything)
		whole := true
		for _, all := range []map[string]float64{ours, theirs} {
			whole = whole && all[`gpu_service_pods{gpu_pod_state="reporting", k8s_cluster_name="c1", k8s_namespace_name="inference", service_name="llama"}`] == 2
		}
		for series, v := range theirs {
			whole = whole && (!settles(series) || ours[series] == v)
		}
		return err == nil && err2 == nil && whole && slices.Equal(slices.Sorted(maps.Keys(ours)), slices.Sorted(maps.Keys(theirs)))
	}, patience, 500*time.Millisecond, "the same series in both: %v", difference(&ours, &theirs))
	assert.Greater(t, len(theirs), 200)
	for series, v := range theirs {
		assert.NotRegexp(t, `target_info|job=|otel_scope`, series)
		if settles(series) {
			assert.Equal(t, ours[series], v, series)
		}
	}
	assert.Positive(t, service.went[0].Load(), "both stateless gateways have work")
	assert.Positive(t, service.went[1].Load(), "both stateless gateways have work")
	assert.Empty(t, written.refused(), "nothing is written twice")
	assert.Equal(t, []any{tenant + tenant}, keys(&written.tenants))
	assert.Equal(t, []any{secret}, keys(&written.secrets))

	require.Eventually(t, func() bool {
		shown := console(t, gateway)
		return shown != "" && shown == console(t, embedded)
	}, patience, 500*time.Millisecond, "the console shows the same over both")

	// One of two goes: its agent's connection moves, and everything goes on.
	require.NoError(t, raw[0].Stop())
	gone := time.Now()
	require.Eventually(t, func() bool {
		fresh, err := samples(t.Context(), server, fmt.Sprintf("timestamp(hw_gpu_memory_usage_bytes) > %d", gone.Unix()+1))
		all := 0
		for series := range theirs {
			if strings.HasPrefix(series, "hw_gpu_memory_usage_bytes{") {
				all++
			}
		}
		return err == nil && all > 0 && len(fresh) == all
	}, patience, 500*time.Millisecond, "every device is fresh again")
	for _, c := range []*collector.Collector{raw[1], gateway} {
		text := log(t, c)
		assert.Empty(t, lines(text, "\terror\t"))
		assert.NotContains(t, text, "deprecated")
		assert.NotContains(t, text, "not-in-any-log")
	}
}

func keys(all *sync.Map) (found []any) {
	all.Range(func(k, _ any) bool { found = append(found, k); return true })
	return found
}

// differing prints what is in one alone.
type differing struct{ ours, theirs *map[string]float64 }

func difference(ours, theirs *map[string]float64) fmt.Stringer { return differing{ours, theirs} }

func (d differing) String() string {
	return fmt.Sprint(apart(slices.Collect(maps.Keys(*d.ours)), slices.Collect(maps.Keys(*d.theirs))))
}

// console is what the console shows of services, without ages and notices; "" before
// it shows anything.
func console(t *testing.T, c *collector.Collector) string {
	t.Helper()
	status, body, err := get(t.Context(), fmt.Sprintf("http://%s:%d/api/v1/services", collector.Loopback, c.Ports.Console))
	if err != nil || status != http.StatusOK {
		return ""
	}
	var answer struct {
		Services []map[string]any `json:"services"`
	}
	require.NoError(t, json.Unmarshal(body, &answer))
	if len(answer.Services) == 0 {
		return ""
	}
	for _, s := range answer.Services {
		for key := range s {
			if !slices.Contains([]string{"cluster", "namespace", "service", "partial", "missing_ratio", "values", "totals", "pods", "devices"}, key) {
				delete(s, key)
			}
		}
	}
	text, err := json.Marshal(answer.Services)
	require.NoError(t, err)
	return string(text)
}
