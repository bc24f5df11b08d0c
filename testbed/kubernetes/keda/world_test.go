// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
)

const (
	root        = "../../.." // of the repository
	namespace   = "inference"
	clusterName = "real"
	token       = "only-for-keda"
	patience    = 2 * time.Minute // bounds every wait
)

type m = map[string]any

func TestMain(main *testing.M) {
	goleak.VerifyTestMain(main, goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

// world is a cluster with KEDA, and a store with what the engines report.
type world struct {
	*cluster.Cluster
	story  *testing.T // with it everything ends
	store  *collector.Collector
	server *server // what KEDA takes for Prometheus

	applying sync.Mutex // with kubectl
}

func start(t *testing.T) *world {
	t.Helper()
	c, err := cluster.Start(t.Context(), cluster.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	w := &world{Cluster: c, story: t}
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	require.NoError(t, c.AddNode(t.Context(), cluster.NodeSpec{Name: "gpu-node"}))
	require.NoError(t, c.CreateNamespace(t.Context(), namespace))
	w.startStore()
	w.startKEDA()
	return w
}

// startStore starts a collector with the embedded store, its API behind the token.
func (w *world) startStore() {
	w.story.Helper()
	binary, err := filepath.Abs(filepath.Join(root, "bin", "otelcol-gpu"))
	require.NoError(w.story, err)
	require.FileExists(w.story, binary, "run make build")
	ports, err := collector.FreePorts()
	require.NoError(w.story, err)
	overlay := ports.Overlay()
	overlay["exporters"] = m{"gpu_store": nil}
	delete(overlay["extensions"].(m), "gpu_console")
	overlay["extensions"].(m)["bearertokenauth/store"] = m{"token": token}
	overlay["extensions"].(m)["gpu_store"] = m{
		"directory": filepath.Join(w.story.TempDir(), "store"),
		"api":       m{"endpoint": fmt.Sprintf("%s:%d", collector.Loopback, ports.Store), "auth": m{"authenticator": "bearertokenauth/store"}},
	}
	overlay["service"].(m)["extensions"] = []string{"health_check", "bearertokenauth/store", "gpu_store"}
	overlay["service"].(m)["pipelines"] = m{"metrics": m{"receivers": []string{"otlp"}, "exporters": []string{"gpu_store"}}}
	text, err := json.Marshal(overlay)
	require.NoError(w.story, err)
	w.store, err = collector.Start(collector.Options{
		Binary: binary, Configs: []string{"yaml:" + string(text)},
		LogPath: filepath.Join(w.story.TempDir(), "store.log"), Ports: ports,
	})
	require.NoError(w.story, err)
	w.story.Cleanup(func() { assert.NoError(w.story, w.store.Stop()) })
	require.NoError(w.story, w.store.WaitReady(w.story.Context()))
	w.server = serve(w.story, fmt.Sprintf("http://%s:%d", collector.Loopback, ports.Store))
}

// aggregated is where the API server finds KEDA's metrics server: KEDA's own
// manifest has a Service of pods in its place.
const aggregated = `
apiVersion: v1
kind: Service
metadata: {name: keda-metrics-apiserver, namespace: keda}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.external.metrics.k8s.io}
spec:
  service: {name: keda-metrics-apiserver, namespace: keda, port: %d}
  group: external.metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  caBundle: %s
`

// startKEDA starts KEDA's programs with KEDA's own definitions and rights, and returns
// when the API server has its metrics.
func (w *world) startKEDA() {
	w.story.Helper()
	keda, err := filepath.Abs(filepath.Join(root, "bin", "keda"))
	require.NoError(w.story, err)
	require.FileExists(w.story, filepath.Join(keda, "stamp"), "run make keda")
	ctx := w.story.Context()
	kubeconfig, err := w.Kubeconfig(ctx, "keda", "keda-operator")
	require.NoError(w.story, err)
	manifests := filepath.Join(keda, "config")
	w.kubectl(w.story, "", "apply", "--server-side", "-k", filepath.Join(manifests, "crd"))
	w.kubectl(w.story, "", "apply", "-k", filepath.Join(manifests, "rbac"))
	w.kubectl(w.story, "", "apply", "-f", filepath.Join(manifests, "metrics-server", "role.yaml"), "-f", filepath.Join(manifests, "metrics-server", "role_binding.yaml"))

	certs := w.story.TempDir()
	require.NoError(w.story, w.Certificate(certs, "keda-operator.keda.svc", "keda-metrics-apiserver.keda.svc"))
	ca, err := os.ReadFile(filepath.Join(certs, "ca.crt"))
	require.NoError(w.story, err)
	ports, err := collector.Free(3)
	require.NoError(w.story, err)
	at := func(port int) string { return collector.Loopback + ":" + strconv.Itoa(port) }
	env := []string{"POD_NAMESPACE=keda", "KEDA_CLUSTER_OBJECT_NAMESPACE=keda", "WATCH_NAMESPACE="}
	require.NoError(w.story, w.Run(filepath.Join(keda, "keda-operator"), env,
		"--kubeconfig="+kubeconfig, "--cert-dir="+certs, "--zap-log-level=info", "--zap-encoder=console",
		"--metrics-service-bind-address="+at(ports[0]), "--health-probe-bind-address="+at(ports[1]), "--enable-prometheus-metrics=false",
	))
	require.NoError(w.story, w.Run(filepath.Join(keda, "keda-adapter"), env,
		"--kubeconfig="+kubeconfig, "--lister-kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--bind-address="+collector.Loopback, "--secure-port="+strconv.Itoa(ports[2]), "--port=0", // any
		"--cert-dir="+certs, "--client-ca-file="+filepath.Join(certs, "ca.crt"),
		"--tls-cert-file="+filepath.Join(certs, "tls.crt"), "--tls-private-key-file="+filepath.Join(certs, "tls.key"),
		"--metrics-service-address="+at(ports[0]), "--zap-log-level=info",
	))
	w.kubectl(w.story, fmt.Sprintf(aggregated, ports[2], base64.StdEncoding.EncodeToString(ca)), "apply", "-f", "-")
	w.eventually(w.story, "external metrics", func(context.Context) error {
		_, err := w.Client().Discovery().ServerResourcesForGroupVersion("external.metrics.k8s.io/v1beta1")
		return err
	})
	// The token that the examples' TriggerAuthentication names.
	_, err = w.Client().CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "otelcol-gpu-store"}, StringData: map[string]string{"token": token},
	}, metav1.CreateOptions{})
	require.NoError(w.story, err)
}

// kubectl runs the real one as the administrator.
func (w *world) kubectl(t *testing.T, input string, args ...string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "bin", "clients", "kubectl", "kubectl"))
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + w.AdminKubeconfig()}
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// eventually waits until done has no objection.
func (w *world) eventually(t *testing.T, what string, done func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := w.Wait(ctx, what, done); err != nil {
		w.logs(t)
		require.NoError(t, err)
	}
}

// logs prints the ends of the logs, before what failed.
func (w *world) logs(t *testing.T) {
	t.Helper()
	for _, path := range []string{filepath.Join(w.Dir(), "keda-operator.log"), filepath.Join(w.Dir(), "keda-adapter.log"), w.store.LogPath} {
		text, err := os.ReadFile(path)
		t.Logf("the end of %s (%v):\n%s", filepath.Base(path), err, text[max(0, len(text)-1500):])
	}
}
