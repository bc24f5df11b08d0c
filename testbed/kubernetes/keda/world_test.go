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
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/node"
)

const (
	root        = "../../.." // of the repository
	namespace   = "inference"
	clusterName = "real"
	nodeName    = "gpu-node"
	token       = "only-for-keda"
	patience    = 3 * time.Minute // bounds every wait
)

type m = map[string]any

func TestMain(main *testing.M) {
	goleak.VerifyTestMain(main, goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

// world is a cluster with a GPU node, its agent, the gateway and KEDA.
type world struct {
	*cluster.Cluster
	story  *testing.T // with it everything ends
	fed    string     // where the gateway's store takes series as they are
	server *server    // what KEDA takes for Prometheus
	logged []string   // paths

	applying sync.Mutex // with kubectl
}

func start(t *testing.T) *world {
	t.Helper()
	c, err := cluster.Start(t.Context(), cluster.Options{Dir: t.TempDir(), Unplayed: label})
	require.NoError(t, err)
	w := &world{Cluster: c, story: t}
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	n, err := node.Start(t.Context(), c, node.Options{Name: nodeName, Model: "H100", GPUs: 1})
	require.NoError(t, err)
	t.Cleanup(n.Stop)
	require.NoError(t, c.CreateNamespace(t.Context(), namespace))
	w.observe(n)
	w.startKEDA()
	return w
}

// collector starts one on files of the repository until the test ends.
func (w *world) collector(name string, overlay m, env []string, files ...string) *collector.Collector {
	w.story.Helper()
	binary, err := filepath.Abs(filepath.Join(root, "bin", "otelcol-gpu"))
	require.NoError(w.story, err)
	require.FileExists(w.story, binary, "run make build")
	ports, err := collector.FreePorts()
	require.NoError(w.story, err)
	var configs []string
	for _, file := range files {
		configs = append(configs, filepath.Join(root, file))
	}
	moved := ports.Overlay()
	if name == "agent" {
		delete(moved, "exporters") // it has none for Prometheus
	}
	for _, o := range []m{moved, overlay} {
		text, err := json.Marshal(o)
		require.NoError(w.story, err)
		configs = append(configs, "yaml:"+string(text))
	}
	c, err := collector.Start(collector.Options{
		Binary: binary, Configs: configs, Env: append(env, "K8S_CLUSTER_NAME="+clusterName, "K8S_AUTH_TYPE=kubeConfig"),
		LogPath: filepath.Join(w.story.TempDir(), name+".log"), Ports: ports,
	})
	require.NoError(w.story, err)
	w.logged = append(w.logged, c.LogPath)
	w.story.Cleanup(func() { assert.NoError(w.story, c.Stop()) })
	require.NoError(w.story, c.WaitReady(w.story.Context()))
	return c
}

// account is a kubeconfig with the rights that a file of config/kubernetes gives.
func (w *world) account(file string) string {
	w.story.Helper()
	kubeconfig, err := cluster.Apply(w.story.Context(), w.Cluster, filepath.Join(root, "config", "kubernetes", file))
	require.NoError(w.story, err)
	return kubeconfig
}

// observe starts the gateway, with its store open to KEDA, and the node's agent.
func (w *world) observe(n *node.Node) {
	w.story.Helper()
	free, err := collector.Free(3)
	require.NoError(w.story, err)
	at := func(i int) string { return fmt.Sprintf("%s:%d", collector.Loopback, free[i]) }
	w.fed = "http://" + at(2) + "/v1/metrics"
	gateway := w.collector("gateway", m{
		"receivers": m{
			"otlp/apps": m{"protocols": m{"grpc": m{"endpoint": at(0)}}},
			"otlp/fed":  m{"protocols": m{"http": m{"endpoint": at(2)}}},
		},
		"exporters": m{"prometheus/apps": m{"endpoint": at(1)}},
		"service":   m{"pipelines": m{"metrics/fed": m{"receivers": []string{"otlp/fed"}, "exporters": []string{"gpu_store"}}}},
	}, []string{"KUBECONFIG=" + w.account("gateway-rbac.yaml"), "STORE_API_TOKEN=" + token},
		"config/gateway.yaml", "config/gateway-applications.yaml", "docs/examples/keda/store-api.yaml")
	w.server = serve(w.story, fmt.Sprintf("http://%s:%d", collector.Loopback, gateway.Ports.Store))
	w.collector("agent", m{
		"receivers": m{"gpu_allocation": m{"socket": n.Socket()}},
		"exporters": m{"otlp_grpc/apps": m{"sending_queue": m{"batch": m{"flush_timeout": "500ms"}}}},
	}, []string{
		"K8S_NODE_NAME=" + nodeName, "KUBECONFIG=" + w.account("agent-rbac.yaml"), "INFERENCE_INTERVAL=3s", "INFERENCE_NAMES=normalised",
		fmt.Sprintf("GATEWAY_ENDPOINT=%s:%d", collector.Loopback, gateway.Ports.OTLPGRPC), "GATEWAY_INSECURE=true",
		"APPS_ENDPOINT=" + at(0), "APPS_INSECURE=true",
	}, "config/agent.yaml", "config/inference.yaml")
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

// repeat does something every so often until the test ends; an error is logged.
func (w *world) repeat(every time.Duration, do func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for ctx.Err() == nil {
			if err := do(ctx); err != nil && ctx.Err() == nil {
				w.story.Log(err)
			}
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	})
	w.story.Cleanup(func() { cancel(); done.Wait() })
}

// logs prints the ends of the logs, before what failed.
func (w *world) logs(t *testing.T) {
	t.Helper()
	for _, path := range append([]string{filepath.Join(w.Dir(), "keda-operator.log"), filepath.Join(w.Dir(), "keda-adapter.log")}, w.logged...) {
		text, err := os.ReadFile(path)
		t.Logf("the end of %s (%v):\n%s", filepath.Base(path), err, text[max(0, len(text)-1500):])
	}
}
