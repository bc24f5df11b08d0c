// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	manifests := filepath.Join(root, "config", "kubernetes")
	kubeconfig, err := cluster.Apply(t.Context(), c, filepath.Join(manifests, "agent-rbac.yaml"))
	require.NoError(t, err)
	_, err = cluster.Apply(t.Context(), c, filepath.Join(manifests, "agent-daemonset.yaml"))
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

// serve answers on a free port of loopback until the test ends.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// eventually fails the test if it is not so after three minutes: a CronJob may take
// one.
func eventually(t *testing.T, what string, done func(context.Context) error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); {
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
