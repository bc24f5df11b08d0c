// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor/processortest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient/k8sfake"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/metadata"
)

func kubernetesConfig() *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.ExpectedPods, cfg.Interval = expectedKubernetes, time.Second
	cfg.AuthType = k8sclient.KubeConfig
	return cfg
}

// A pod that never reported is there because the Kubernetes API has it, as soon as
// the API answers; start and data path do not wait for that.
func TestPodsOfTheKubernetesAPI(t *testing.T) {
	api := k8sfake.New(t)
	api.Set("pods", &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api-0", OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "api"}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
		}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	})
	api.Status("resourceclaims", http.StatusNotFound) // no DRA
	api.Leave()
	t.Setenv("KUBECONFIG", api.KubeConfig(t))
	next := &recorder{}
	p := start(t, processortest.NewNopSettings(metadata.Type), kubernetesConfig(), next)
	require.NoError(t, p.ConsumeMetrics(t.Context(), utilBatch("other")))
	api.Return()

	require.Eventually(t, func() bool {
		next.mu.Lock()
		defer next.mu.Unlock()
		if len(next.summaries) == 0 {
			return false
		}
		md := next.summaries[len(next.summaries)-1].md
		at := numbers(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)).At(0).Timestamp().AsTime()
		reported := flatten(t, md, at)
		return reported.values["shop/api gpu.service.pods not_running"] == 1 &&
			reported.values["shop/api gpu.service.pods.pending"] == 1 &&
			reported.values["shop/api/api-0 gpu.pod.state not_running"] == 1
	}, 30*time.Second, 10*time.Millisecond)
	_, _, expected := p.(*summaryProcessor).tracked()
	require.Equal(t, 1, expected, "the pod that was heard and that nobody expects is not counted")
}

func TestKubernetesThatCannotBeReachedFailsAtStart(t *testing.T) {
	for name, tt := range map[string]struct {
		auth k8sclient.AuthType
		want string
	}{
		"no kubeconfig":      {k8sclient.KubeConfig, "auth_type: kubeConfig"},
		"no service account": {k8sclient.ServiceAccount, "auth_type: serviceAccount"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			cfg := kubernetesConfig()
			cfg.AuthType = tt.auth
			p, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
			require.NoError(t, err)
			require.ErrorContains(t, p.Start(t.Context(), componenttest.NewNopHost()), tt.want)
			require.NoError(t, p.Shutdown(context.Background()))
		})
	}
}

// A pod that starts and is used is measured once, by the queue that it waited in.
func TestFirstUse(t *testing.T) {
	api := k8sfake.New(t)
	api.Status("resourceclaims", http.StatusNotFound)
	t.Setenv("KUBECONFIG", api.KubeConfig(t))
	cfg := kubernetesConfig()
	cfg.FirstUseThreshold = 0.01
	next := &recorder{}
	began := time.Now().Add(3 * time.Second).Truncate(time.Second) // after the start
	api.Set("pods", &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api-0", Labels: map[string]string{"kueue.x-k8s.io/queue-name": "research"}},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
		}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(began)}}},
		}},
	})
	p := start(t, processortest.NewNopSettings(metadata.Type), cfg, next)
	require.Eventually(t, func() bool {
		require.NoError(t, p.ConsumeMetrics(t.Context(), utilBatchAt(began.Add(5*time.Second), "api-0")))
		next.mu.Lock()
		defer next.mu.Unlock()
		if len(next.summaries) == 0 {
			return false
		}
		rms := next.summaries[len(next.summaries)-1].md.ResourceMetrics()
		ms := rms.At(rms.Len() - 1).ScopeMetrics().At(0).Metrics()
		if ms.At(0).Name() != names.SchedulingFirstUse.Name {
			return false
		}
		used := ms.At(0).Histogram().DataPoints().At(0)
		if used.Count() == 0 {
			return false // it is waited for
		}
		require.Equal(t, map[string]any{names.K8sNamespaceName: "shop", names.GPUQueueName: "research"}, used.Attributes().AsRaw())
		require.InDelta(t, 5, used.Sum(), 1e-9)
		require.Equal(t, uint64(1), used.Count())
		require.Zero(t, ms.At(1).Sum().DataPoints().At(0).IntValue())
		return true
	}, 30*time.Second, 10*time.Millisecond)
}
