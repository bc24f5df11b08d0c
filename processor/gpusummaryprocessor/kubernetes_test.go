// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
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
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/metadata"
)

// podServer is a Kubernetes API that has one pod of service api, and no DRA. It
// answers nothing while it is away.
func podServer(t *testing.T, away *atomic.Bool) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		status := func(code int, reason metav1.StatusReason) {
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason,
			})
		}
		switch {
		case away.Load():
			panic(http.ErrAbortHandler)
		case !strings.HasSuffix(r.URL.Path, "/pods"):
			status(http.StatusNotFound, metav1.StatusReasonNotFound)
		case r.URL.Query().Get("sendInitialEvents") != "":
			status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		case r.URL.Query().Get("watch") != "":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			_ = json.NewEncoder(w).Encode(corev1.PodList{
				TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"},
				Items: []corev1.Pod{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api-0", OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "api"}}},
					Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
						Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
					}}}},
					Status: corev1.PodStatus{Phase: corev1.PodPending},
				}},
			})
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: me}}]
clusters: [{name: here, cluster: {server: %q}}]
users: [{name: me, user: {}}]
`, server.URL), 0o600))
	t.Setenv("KUBECONFIG", file)
}

func kubernetesConfig() *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.ExpectedPods, cfg.Interval = expectedKubernetes, time.Second
	cfg.AuthType = k8sclient.KubeConfig
	return cfg
}

// A pod that never reported is there because the Kubernetes API has it, as soon as
// the API answers; start and data path do not wait for that.
func TestPodsOfTheKubernetesAPI(t *testing.T) {
	var away atomic.Bool
	away.Store(true)
	podServer(t, &away)
	next := &recorder{}
	p := start(t, processortest.NewNopSettings(metadata.Type), kubernetesConfig(), next)
	require.NoError(t, p.ConsumeMetrics(t.Context(), utilBatch("other")))
	away.Store(false)

	require.Eventually(t, func() bool {
		next.mu.Lock()
		defer next.mu.Unlock()
		if len(next.summaries) == 0 {
			return false
		}
		md := next.summaries[len(next.summaries)-1].md
		at := numbers(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)).At(0).Timestamp().AsTime()
		said := flatten(t, md, at)
		return said.values["shop/api gpu.service.pods not_running"] == 1 &&
			said.values["shop/api gpu.service.pods.pending"] == 1 &&
			said.values["shop/api/api-0 gpu.pod.state not_running"] == 1
	}, 30*time.Second, 10*time.Millisecond)
	_, _, expected := p.(*summaryProcessor).tracked()
	require.Equal(t, 1, expected, "the pod that was heard and that nobody expects is not counted")
}

func TestKubernetesThatCannotBeComeToFailsAtStart(t *testing.T) {
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
