// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuschedulingreceiver

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	corev1 "k8s.io/api/core/v1"
	runtimeobject "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient/k8sfake"
	"github.com/otelcol-gpu/otelcol-gpu/internal/places"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/capacity"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/durations"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/metadata"
)

// fleet has n/10 nodes and n pods with devices, a tenth of which wait.
func fleet(n int) (nodes []*capacity.Node, pods *gpupods.Snapshot) {
	now := time.Now()
	pods = &gpupods.Snapshot{Others: map[string]gpupods.Amount{}}
	for i := range n / 10 {
		node := &capacity.Node{Name: fmt.Sprint("node-", i), CPU: 128_000, Memory: 1 << 40, Closed: capacity.Schedulable}
		node.Devices = []capacity.Devices{{Kind: capacity.Kind{Resource: "nvidia.com/gpu", Model: fmt.Sprint("model ", i%4)}, Allocatable: 16}}
		nodes = append(nodes, node)
		pods.Others[node.Name] = gpupods.Amount{CPU: 4000, Memory: 8 << 30}
	}
	for i := range n {
		p := &gpupods.Pod{
			Namespace: fmt.Sprint("team-", i%100), Name: fmt.Sprint("pod-", i), UID: fmt.Sprintf("%036d", i), Devices: 1, LastRun: -1,
			Phase: corev1.PodPending,
			Scheduling: &gpupods.Scheduling{
				Created: now.Add(-time.Duration(i) * time.Second), Queue: fmt.Sprint("queue-", i%50),
				Requests: []gpupods.Request{{Resource: "nvidia.com/gpu", Count: 1 + i%2}},
				Amount:   gpupods.Amount{CPU: int64(1000 + i%7*100), Memory: int64(8+i%5) << 30},
			},
		}
		if i%10 == 0 {
			p.Scheduling.Reason = "Unschedulable"
			p.Scheduling.Message = "0/5000 nodes are available: 3 node(s) had untolerated taint {a: }, 4997 Insufficient nvidia.com/gpu. preemption: 0/5000 nodes are available: 5000 No preemption victims found for incoming pod."
		} else {
			p.Node, p.Phase, p.Up = nodes[i%len(nodes)].Name, corev1.PodRunning, true
			p.Scheduling.Scheduled = p.Scheduling.Created.Add(time.Second)
			p.Started = p.Scheduling.Scheduled.Add(time.Second)
		}
		pods.Pods = append(pods.Pods, p)
	}
	return nodes, pods
}

// BenchmarkEvaluation is one evaluation of 50,000 pods on 5,000 nodes, with what is sent on
// and the transitions of pods. MB are those in use afterwards, without nodes and pods.
func BenchmarkEvaluation(b *testing.B) {
	nodes, pods := fleet(50_000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	set := places.New(2000)
	evaluator := capacity.New(capacity.Config{
		Window: 24 * time.Hour, MaxPods: 200_000, Places: set, IsDevice: func(r string) bool { return r == "nvidia.com/gpu" },
	})
	tracker := durations.New(set)
	last := pmetric.NewMetrics()
	now := time.Now()
	b.ResetTimer()
	for b.Loop() {
		md := pmetric.NewMetrics()
		ms := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
		tracker.Observe(now, pods.Pods)
		evaluator.Evaluate(now, nodes, pods).Put(ms, now, true)
		tracker.Put(ms, now)
		sent := pmetric.NewMetrics()
		md.CopyTo(sent)
		end(metricsOf(last), ms, pcommon.NewTimestampFromTime(now))
		last = sent
		now = now.Add(15 * time.Second)
	}
	b.StopTimer()
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
	runtime.KeepAlive(evaluator)
	runtime.KeepAlive(tracker)
	runtime.KeepAlive(last)
	runtime.KeepAlive(pods)
}

// BenchmarkStart is from the start of the receiver until its first figures, with the same fleet
// in a Kubernetes API of this process. MB are those in use then, beyond what the API keeps.
func BenchmarkStart(b *testing.B) {
	const pods = 50_000
	api := k8sfake.New(b)
	var nodes, all []runtimeobject.Object
	for i := range pods / 10 {
		nodes = append(nodes, gpuNode(fmt.Sprint("node-", i), 16))
	}
	for i := range pods {
		node := fmt.Sprint("node-", i/10)
		if i%10 == 0 {
			node = ""
		}
		p := gpuPod(fmt.Sprint("pod-", i), node, 1)
		p.UID = types.UID(fmt.Sprintf("%036d", i))
		all = append(all, p)
	}
	api.Set("nodes", nodes...)
	api.Set("pods", all...)
	for _, kind := range []string{"resourceclaims", "resourceslices"} {
		api.Status(kind, http.StatusNotFound)
	}
	b.Setenv("KUBECONFIG", api.KubeConfig(b))
	cfg := createDefaultConfig().(*Config)
	cfg.AuthType, cfg.Interval = k8sclient.KubeConfig, time.Second
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		first := make(chan struct{}, 1)
		next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error {
			select {
			case first <- struct{}{}:
			default:
			}
			return nil
		})
		require.NoError(b, err)
		r, err := NewFactory().CreateMetrics(b.Context(), receivertest.NewNopSettings(metadata.Type), cfg, next)
		require.NoError(b, err)
		require.NoError(b, r.Start(b.Context(), componenttest.NewNopHost()))
		<-first
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
		require.NoError(b, r.Shutdown(b.Context()))
	}
}
