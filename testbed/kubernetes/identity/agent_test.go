// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/otlp"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
)

type m = map[string]any

// agent is a running otelcol-gpu on config/agent.yaml.
type agent struct {
	collector *collector.Collector
	gpu, apps *otlp.Sink // what left the pipeline of GPU telemetry, and those of applications
}

// startAgent runs the agent under its own service account with the rights of
// config/kubernetes and nothing else. Only addresses are changed, and what is
// sent to it goes through both kinds of pipelines.
func startAgent(t *testing.T, c *cluster.Cluster) *agent {
	t.Helper()
	account := apply(t, c.Client(), "agent-rbac.yaml", "agent-daemonset.yaml")
	kubeconfig, err := c.Kubeconfig(t.Context(), account.Namespace, account.Name)
	require.NoError(t, err)
	a := &agent{gpu: &otlp.Sink{}, apps: &otlp.Sink{}}
	ports, err := collector.FreePorts()
	require.NoError(t, err)
	overlays := []m{ports.Overlay(), {
		"receivers": m{"gpu_allocation": m{"socket": filepath.Join(t.TempDir(), "kubelet.sock")}},
		"exporters": m{"otlp_http": otlp.Exporter(serve(t, a.gpu)), "otlp_http/apps": otlp.Exporter(serve(t, a.apps))},
		"service": m{"pipelines": m{
			"metrics":     m{"receivers": []string{"dcgm", "gpu_allocation", "otlp"}, "exporters": []string{"otlp_http", "gpu_events"}},
			"logs/events": m{"exporters": []string{"otlp_http"}},
			// Without app_guard, which drops names as long as some are here.
			"metrics/apps": m{"processors": []string{"transform/said", "k8s_attributes", "transform/service"}, "exporters": []string{"otlp_http/apps"}},
			"logs/apps":    m{"exporters": []string{"otlp_http/apps"}},
			"traces/apps":  m{"exporters": []string{"otlp_http/apps"}},
		}},
	}}
	configs := []string{filepath.Join(root, "config", "agent.yaml"), filepath.Join(root, "config", "applications.yaml")}
	for _, o := range overlays {
		text, err := json.Marshal(o)
		require.NoError(t, err)
		configs = append(configs, "yaml:"+string(text))
	}
	a.collector, err = collector.Start(collector.Options{
		Binary: filepath.Join(root, "bin", "otelcol-gpu"), Configs: configs,
		Env: []string{
			"K8S_NODE_NAME=" + node, "K8S_CLUSTER_NAME=real", "GATEWAY_ENDPOINT=localhost:1", "APPS_ENDPOINT=localhost:1",
			"K8S_AUTH_TYPE=kubeConfig", "KUBECONFIG=" + kubeconfig,
		},
		LogPath: filepath.Join(t.TempDir(), "agent.log"), Ports: ports,
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		assert.NoError(t, a.collector.Stop())
		if t.Failed() {
			text, _ := os.ReadFile(a.collector.LogPath)
			t.Logf("%s", text[max(0, len(text)-8000):])
		}
	})
	require.NoError(t, a.collector.WaitReady(t.Context()))
	return a
}

// url is where the agent takes OTLP over HTTP.
func (a *agent) url() string {
	return fmt.Sprintf("http://%s:%d", collector.Loopback, a.collector.Ports.OTLPHTTP)
}

// apply creates what is in these manifests of config/kubernetes and returns the
// service account. The API server checks every field.
func apply(t *testing.T, client kubernetes.Interface, files ...string) (account *corev1.ServiceAccount) {
	t.Helper()
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, "config", "kubernetes", file))
		require.NoError(t, err)
		documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			object, _, err := strict.Decode(document, nil, nil)
			require.NoError(t, err, file)
			require.NoError(t, post(t.Context(), client, object), file)
			if a, ok := object.(*corev1.ServiceAccount); ok {
				account = a
			}
		}
	}
	require.NotNil(t, account)
	return account
}

func post(ctx context.Context, client kubernetes.Interface, object runtime.Object) (err error) {
	o := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	switch x := object.(type) {
	case *corev1.Namespace:
		_, err = client.CoreV1().Namespaces().Create(ctx, x, o)
	case *corev1.ServiceAccount:
		_, err = client.CoreV1().ServiceAccounts(x.Namespace).Create(ctx, x, o)
	case *rbacv1.ClusterRole:
		_, err = client.RbacV1().ClusterRoles().Create(ctx, x, o)
	case *rbacv1.ClusterRoleBinding:
		_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, x, o)
	case *appsv1.DaemonSet:
		_, err = client.AppsV1().DaemonSets(x.Namespace).Create(ctx, x, o)
	default:
		err = fmt.Errorf("no idea how to create a %T", object)
	}
	return err
}

// serve answers on a free port of loopback until the test ends.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// eventually fails the test if it is not so after a minute and a half: a CronJob
// may take one.
func eventually(t *testing.T, what string, done func(context.Context) error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(90 * time.Second); time.Now().Before(deadline); {
		if err = done(t.Context()); err == nil {
			return
		}
		select {
		case <-t.Context().Done():
			require.NoError(t, t.Context().Err())
		case <-time.After(pause):
		}
	}
	require.NoError(t, err, what)
}
