// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuschedulingreceiver

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient/k8sfake"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/metadata"
)

func gpuNode(name string, devices int64) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"nvidia.com/gpu.product": "NVIDIA-L4"}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(devices, resource.DecimalSI)},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func gpuPod(name, node string, devices int64) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Minute))},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Limits:   corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(devices, resource.DecimalSI)},
			Requests: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(devices, resource.DecimalSI)},
		}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if node == "" {
		p.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "research"}
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
			Message: "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
		}}
	}
	return p
}

// text is every point of a batch but ages: the metric, its attributes and its value.
func text(md pmetric.Metrics) []string {
	var out []string
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if strings.Contains(m.Name(), ".duration") || strings.HasSuffix(m.Name(), ".age.max") {
					continue
				}
				all, _ := points.Numbers(m)
				for _, p := range all.All() {
					value := fmt.Sprint(p.IntValue())
					switch {
					case p.Flags().NoRecordedValue():
						value = "ends"
					case p.ValueType() == pmetric.NumberDataPointValueTypeDouble:
						value = fmt.Sprint(p.DoubleValue())
					}
					out = append(out, m.Name()+" "+attributes(p.Attributes())+" "+value)
				}
			}
		}
	}
	return out
}

func attributes(m pcommon.Map) string {
	raw := m.AsRaw()
	var out []string
	for _, k := range slices.Sorted(maps.Keys(raw)) {
		out = append(out, fmt.Sprint(raw[k]))
	}
	return strings.Join(out, ",")
}

func startReceiver(t *testing.T, api *k8sfake.API, next *consumertest.MetricsSink, change ...func(*Config)) {
	t.Setenv("KUBECONFIG", api.KubeConfig(t))
	cfg := createDefaultConfig().(*Config)
	cfg.AuthType, cfg.Interval, cfg.ClusterName = k8sclient.KubeConfig, time.Second, "c"
	for _, do := range change {
		do(cfg)
	}
	r, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, next)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, r.Shutdown(t.Context())) })
}

func last(next *consumertest.MetricsSink) pmetric.Metrics {
	if all := next.AllMetrics(); len(all) > 0 {
		return all[len(all)-1]
	}
	return pmetric.NewMetrics()
}

const patience = 30 * time.Second

func TestFiguresOfTheKubernetesAPI(t *testing.T) {
	api := k8sfake.New(t)
	api.Set("nodes", gpuNode("a", 8))
	held, waits := gpuPod("held", "a", 6), gpuPod("waits", "", 4)
	held.UID, waits.UID = "1", "2"
	api.Set("pods", held, waits)
	for _, kind := range []string{"resourceclaims", "resourceslices", "deviceclasses"} { // no DRA
		api.Status(kind, http.StatusNotFound)
	}
	next := &consumertest.MetricsSink{}
	startReceiver(t, api, next)
	want := []string{
		"gpu.node.devices allocatable,NVIDIA L4,a,nvidia.com/gpu 8",
		"gpu.node.devices requested,NVIDIA L4,a,nvidia.com/gpu 6",
		"gpu.node.devices free,NVIDIA L4,a,nvidia.com/gpu 2",
		"gpu.node.devices stranded,NVIDIA L4,a,nvidia.com/gpu 0",
		"gpu.scheduling.stranded cordoned,NVIDIA L4,nvidia.com/gpu 0",
		"gpu.scheduling.stranded not_ready,NVIDIA L4,nvidia.com/gpu 0",
		"gpu.scheduling.stranded tainted,NVIDIA L4,nvidia.com/gpu 0",
		"gpu.scheduling.stranded cpu,NVIDIA L4,nvidia.com/gpu 0",
		"gpu.scheduling.stranded memory,NVIDIA L4,nvidia.com/gpu 0",
		"gpu.scheduling.fit 1,NVIDIA L4,nvidia.com/gpu 2",
		"gpu.scheduling.fit 2,NVIDIA L4,nvidia.com/gpu 1",
		"gpu.scheduling.fit 4,NVIDIA L4,nvidia.com/gpu 0",
		"gpu.scheduling.fit 8,NVIDIA L4,nvidia.com/gpu 0",
		"gpu.scheduling.fragmentation 1,NVIDIA L4,nvidia.com/gpu 0",
		"gpu.scheduling.fragmentation 2,NVIDIA L4,nvidia.com/gpu 0",
		"gpu.scheduling.fragmentation 4,NVIDIA L4,nvidia.com/gpu 1",
		"gpu.scheduling.fragmentation 8,NVIDIA L4,nvidia.com/gpu 1",
		"gpu.scheduling.fragmentation expected,NVIDIA L4,nvidia.com/gpu 1",
		"gpu.scheduling.pending.pods insufficient_gpu,research,ml,nvidia.com/gpu 1",
		"gpu.scheduling.pending.devices insufficient_gpu,research,ml,nvidia.com/gpu 4",
	}
	var got []string
	assert.Eventually(t, func() bool {
		got = text(last(next))
		return len(got) > 0
	}, patience, 10*time.Millisecond)
	assert.ElementsMatch(t, want, got)

	// The pod gets its node: what waited ends, and the duration is recorded.
	require.Eventually(t, func() bool { return api.Watching("pods", "nodes") == 2 }, patience, 10*time.Millisecond)
	scheduled := waits.DeepCopy()
	scheduled.Spec.NodeName = "b"
	scheduled.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(waits.CreationTimestamp.Add(42 * time.Second)),
	}}
	api.Send("pods", "MODIFIED", scheduled)
	api.Send("nodes", "ADDED", gpuNode("b", 4))
	require.Eventually(t, func() bool {
		for _, md := range next.AllMetrics() {
			all := text(md)
			if slices.Contains(all, "gpu.scheduling.pending.devices insufficient_gpu,research,ml,nvidia.com/gpu ends") {
				return true
			}
		}
		return false
	}, patience, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		for _, m := range metricsOf(last(next)).All() {
			if m.Name() == "gpu.scheduling.schedule.duration" && m.Histogram().DataPoints().At(0).Sum() == 42 {
				return true
			}
		}
		return false
	}, patience, 10*time.Millisecond)
	assert.Contains(t, text(last(next)), "gpu.node.devices requested,NVIDIA L4,b,nvidia.com/gpu 4")
	for _, md := range next.AllMetrics() {
		cluster, _ := md.ResourceMetrics().At(0).Resource().Attributes().Get("k8s.cluster.name")
		assert.Equal(t, "c", cluster.AsString())
	}

	// An API that is away for three intervals: the figures end, and are not repeated.
	api.Leave()
	require.Eventually(t, func() bool {
		return slices.Contains(text(last(next)), "gpu.node.devices allocatable,NVIDIA L4,a,nvidia.com/gpu ends")
	}, patience, 10*time.Millisecond)
}

func TestNothingIsEmittedUntilAllIsKnown(t *testing.T) {
	api := k8sfake.New(t)
	api.Set("pods", gpuPod("waits", "", 1))
	api.Status("nodes", http.StatusForbidden)
	next := &consumertest.MetricsSink{}
	startReceiver(t, api, next)
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(api.Asked(), func(u *url.URL) bool { return strings.Contains(u.String(), "/nodes") })
	}, patience, 10*time.Millisecond)
	assert.Empty(t, next.AllMetrics())
}

// A pod that the limit leaves out may hold any device.
func TestPodsBeyondTheLimit(t *testing.T) {
	api := k8sfake.New(t)
	api.Set("nodes", gpuNode("a", 8))
	api.Set("pods", gpuPod("one", "a", 2))
	next := &consumertest.MetricsSink{}
	startReceiver(t, api, next, func(c *Config) { c.MaxPods, c.DRA.Enabled = 1, false })
	free := func(value string) func() bool {
		return func() bool {
			return slices.Contains(text(last(next)), "gpu.node.devices free,NVIDIA L4,a,nvidia.com/gpu "+value)
		}
	}
	require.Eventually(t, free("6"), patience, 10*time.Millisecond)
	require.Eventually(t, func() bool { return api.Watching("pods") == 1 }, patience, 10*time.Millisecond)
	api.Send("pods", "ADDED", gpuPod("two", "a", 6))
	require.Eventually(t, free("ends"), patience, 10*time.Millisecond)
	api.Send("pods", "DELETED", gpuPod("two", "a", 6))
	require.Eventually(t, free("6"), patience, 10*time.Millisecond)
}

func TestStartWithoutAPI(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	r, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), createDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	require.ErrorContains(t, r.Start(t.Context(), componenttest.NewNopHost()), "auth_type: serviceAccount")
	require.NoError(t, r.Shutdown(t.Context()))
}
