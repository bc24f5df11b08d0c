// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package attribution compares what it costs to put a pod's identity on a
// resource: gpu_pod, which joins with gpu.allocation, and contrib's
// k8s_attributes, which joins with the Kubernetes API.
package attribution

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/k8sattributesprocessor"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor"
)

const devices = 8 // of a node, each held by a pod of its own

func deviceID(i int) string { return fmt.Sprintf("GPU-c4529c8d-69c4-b61d-e0bc-7b246009600%d", i) }

func podName(i int) string { return fmt.Sprintf("chat-7d9c6b5f4-x2x9%d", i) }

// batch is a node's telemetry: a resource a device, one point each. named decides
// whether the pod is on it already, which k8s_attributes needs to find it.
func batch(named bool) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for i := range devices {
		rm := md.ResourceMetrics().AppendEmpty()
		attrs := rm.Resource().Attributes()
		attrs.PutStr("hw.id", deviceID(i))
		attrs.PutStr("hw.type", "gpu")
		attrs.PutStr("hw.vendor", "NVIDIA")
		attrs.PutStr("hw.model", "NVIDIA H100 80GB HBM3")
		attrs.PutStr("hw.driver_version", "580.105.08")
		attrs.PutInt("gpu.index", int64(i))
		attrs.PutStr("gpu.pci.address", "0000:03:00.0")
		attrs.PutStr("host.name", "node-1")
		attrs.PutStr("k8s.node.name", "node-1")
		if named {
			attrs.PutStr("k8s.namespace.name", "ml")
			attrs.PutStr("k8s.pod.name", podName(i))
			attrs.PutStr("k8s.container.name", "main")
		}
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("hw.power")
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.Timestamp(1e9))
		p.SetDoubleValue(300)
		p.Attributes().PutStr("hw.id", deviceID(i))
	}
	return md
}

func allocations() pmetric.Metrics {
	md := pmetric.NewMetrics()
	snapshot := pcommon.NewTimestampFromTime(time.Now())
	for i := range devices {
		rm := md.ResourceMetrics().AppendEmpty()
		attrs := rm.Resource().Attributes()
		attrs.PutStr("k8s.node.name", "node-1")
		attrs.PutStr("k8s.namespace.name", "ml")
		attrs.PutStr("k8s.pod.name", podName(i))
		attrs.PutStr("k8s.container.name", "main")
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("gpu.allocation")
		p := m.SetEmptySum().DataPoints().AppendEmpty()
		p.SetTimestamp(snapshot)
		p.SetDoubleValue(1)
		p.Attributes().PutStr("hw.id", deviceID(i))
	}
	return md
}

// kubernetes serves the pods of the node, and nothing else, and never changes.
func kubernetes(tb testing.TB) (kubeconfig string) {
	tb.Helper()
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			if r.URL.Query().Get("sendInitialEvents") != "" {
				http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`, http.StatusUnprocessableEntity)
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-stop:
			}
			return
		}
		items := []any{}
		if strings.HasSuffix(r.URL.Path, "/pods") {
			for i := range devices {
				items = append(items, map[string]any{
					"metadata": map[string]any{
						"name": podName(i), "namespace": "ml", "uid": fmt.Sprintf("uid-%d", i),
						"creationTimestamp": "2026-01-01T00:00:00Z", "labels": map[string]string{"app": "chat"},
						"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "chat-7d9c6b5f4", "uid": "rs", "controller": true}},
					},
					"spec":   map[string]any{"nodeName": "node-1", "containers": []any{map[string]any{"name": "main", "image": "chat:1"}}},
					"status": map[string]any{"phase": "Running", "podIP": fmt.Sprintf("10.0.0.%d", i+1), "startTime": "2026-01-01T00:00:00Z"},
				})
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"resourceVersion": "1"}, "items": items})
	}))
	tb.Cleanup(func() { close(stop); server.Close() })
	kubeconfig = filepath.Join(tb.TempDir(), "kubeconfig")
	require.NoError(tb, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"c",
		"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u"}]}`, server.URL), 0o600))
	tb.Setenv("KUBECONFIG", kubeconfig)
	return kubeconfig
}

func startProcessor(tb testing.TB, factory processor.Factory, config map[string]any, next consumer.Metrics) processor.Metrics {
	tb.Helper()
	cfg := factory.CreateDefaultConfig()
	require.NoError(tb, confmap.NewFromStringMap(config).Unmarshal(cfg))
	p, err := factory.CreateMetrics(tb.Context(), processortest.NewNopSettings(component.MustNewType(factory.Type().String())), cfg, next)
	require.NoError(tb, err)
	require.NoError(tb, p.Start(tb.Context(), componenttest.NewNopHost()))
	tb.Cleanup(func() { require.NoError(tb, p.Shutdown(context.Background())) })
	return p
}

func gpuPod(tb testing.TB, next consumer.Metrics) processor.Metrics {
	p := startProcessor(tb, gpupodprocessor.NewFactory(), map[string]any{"service_name": "none", "max_age": "10m"}, next)
	require.NoError(tb, p.ConsumeMetrics(tb.Context(), allocations()))
	return p
}

// k8sAttributes is set up as in an agent: pods of one node, found by name; uid,
// start time, owner, service and a label are added.
func k8sAttributes(tb testing.TB, next consumer.Metrics) processor.Metrics {
	kubernetes(tb)
	return startProcessor(tb, k8sattributesprocessor.NewFactory(), map[string]any{
		"auth_type":         "kubeConfig",
		"wait_for_metadata": true,
		"filter":            map[string]any{"node": "node-1"},
		"extract": map[string]any{
			"metadata": []any{"k8s.namespace.name", "k8s.pod.name", "k8s.pod.uid", "k8s.pod.start_time", "k8s.deployment.name", "service.name"},
			"labels":   []any{map[string]any{"tag_name": "k8s.pod.label.app", "key": "app", "from": "pod"}},
		},
		"pod_association": []any{map[string]any{"sources": []any{map[string]any{"from": "resource_attribute", "name": "k8s.namespace.name"}, map[string]any{"from": "resource_attribute", "name": "k8s.pod.name"}}}},
	}, next)
}

// TestBothAttribute: what is compared is attribution that happens.
func TestBothAttribute(t *testing.T) {
	sink := new(consumertest.MetricsSink)
	require.NoError(t, gpuPod(t, sink).ConsumeMetrics(t.Context(), batch(false)))
	out := sink.AllMetrics()[1].ResourceMetrics()
	for i := range devices {
		name, _ := out.At(i).Resource().Attributes().Get("k8s.pod.name")
		require.Equal(t, podName(i), name.AsString())
	}
	sink.Reset()
	require.NoError(t, k8sAttributes(t, sink).ConsumeMetrics(t.Context(), batch(true)))
	out = sink.AllMetrics()[0].ResourceMetrics()
	for i := range devices {
		uid, _ := out.At(i).Resource().Attributes().Get("k8s.pod.uid")
		require.Equal(t, fmt.Sprintf("uid-%d", i), uid.AsString())
	}
}

// BenchmarkDecision is gpu_pod's answer alone, from the attributes of a resource:
// for a device that is free, so that there is nothing to be written.
func BenchmarkDecision(b *testing.B) {
	cfg := gpupodprocessor.NewFactory().CreateDefaultConfig()
	require.NoError(b, confmap.NewFromStringMap(map[string]any{"max_age": "10m"}).Unmarshal(cfg))
	set := processortest.NewNopSettings(component.MustNewType("gpu_pod"))
	metrics, err := gpupodprocessor.NewFactory().CreateMetrics(b.Context(), set, cfg, consumertest.NewNop())
	require.NoError(b, err)
	logs, err := gpupodprocessor.NewFactory().CreateLogs(b.Context(), set, cfg, consumertest.NewNop())
	require.NoError(b, err)
	for _, c := range []component.Component{metrics, logs} {
		require.NoError(b, c.Start(b.Context(), componenttest.NewNopHost()))
		b.Cleanup(func() { require.NoError(b, c.Shutdown(context.Background())) })
	}
	md := allocations()
	for _, rm := range md.ResourceMetrics().All() {
		rm.Resource().Attributes().RemoveIf(func(key string, _ pcommon.Value) bool { return key != "k8s.node.name" })
		rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).SetDoubleValue(0)
	}
	require.NoError(b, metrics.ConsumeMetrics(b.Context(), md))
	ld := plog.NewLogs()
	for _, rm := range batch(false).ResourceMetrics().All() {
		rm.Resource().CopyTo(ld.ResourceLogs().AppendEmpty().Resource())
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := logs.ConsumeLogs(context.Background(), ld); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/devices, "ns/resource")
}

// BenchmarkGPUPod is the whole: the decision, the names written, and the series
// remembered so that they can be ended.
func BenchmarkGPUPod(b *testing.B) { measure(b, gpuPod(b, consumertest.NewNop()), false) }

func BenchmarkK8sAttributes(b *testing.B) { measure(b, k8sAttributes(b, consumertest.NewNop()), true) }

// measure times batches of a node; making them is not timed.
func measure(b *testing.B, p processor.Metrics, named bool) {
	const prepared = 512
	all := make([]pmetric.Metrics, prepared)
	in := batch(named)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		if i%prepared == 0 {
			b.StopTimer()
			for j := range all {
				all[j] = pmetric.NewMetrics()
				in.CopyTo(all[j])
			}
			b.StartTimer()
		}
		if err := p.ConsumeMetrics(context.Background(), all[i%prepared]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/devices, "ns/resource")
}
