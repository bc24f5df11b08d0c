// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/node"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

const (
	root        = "../../.." // of the repository
	namespace   = "inference"
	clusterName = "real"

	collection = 2 * time.Second
	evaluation = time.Second
	staleness  = 6 * time.Second // also the start gate
	warmup     = 3 * time.Second
	patience   = 3 * time.Minute // bounds every wait
)

type m = map[string]any

// world is a cluster, its nodes with their agents, and a gateway.
type world struct {
	*cluster.Cluster
	t      *testing.T // the step
	story  *testing.T // with it everything ends
	binary string
	nodes  []*member
	out    *ownership.Recorder // what the gateway forwards, including what the agents reported
	raw    *ownership.Recorder // what went past the gateway
	events *events
	// staleness is the gateway's, and its start gate.
	staleness time.Duration
	ports     collector.Ports // of the gateway, whichever process it is
	state     string          // folder of its state
	access    string          // its kubeconfig
	gateway   *collector.Collector
	starts    int

	stateless      *collector.Collector // config/raw-gateway.yaml
	statelessPorts collector.Ports
}

// member is a node with its agent and a switch for its exporter.
type member struct {
	*node.Node
	receiver string // of its exporter; empty: dcgm
	agent    *collector.Collector
	down     atomic.Bool
}

// startWorld starts a cluster with a gateway.
func startWorld(t *testing.T, staleness time.Duration) *world {
	t.Helper()
	binary, err := filepath.Abs(filepath.Join(root, "bin", "otelcol-gpu"))
	require.NoError(t, err)
	require.FileExists(t, binary, "run make build")
	w := &world{t: t, story: t, binary: binary, events: recordEvents(t), state: filepath.Join(t.TempDir(), "state"), staleness: staleness}
	w.out, w.raw = record(t), record(t)
	w.Cluster, err = cluster.Start(t.Context(), cluster.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, w.Stop()) })
	require.NoError(t, w.CreateNamespace(t.Context(), namespace))
	require.NoError(t, node.CreateDeviceClasses(t.Context(), w.Client()))
	w.access = w.account("gateway-rbac.yaml")
	w.ports, err = collector.FreePorts()
	require.NoError(t, err)
	w.start()
	t.Cleanup(func() { assert.NoError(t, w.gateway.Stop()) })
	return w
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := startWorld(t, staleness)
	agents := w.account("agent-rbac.yaml")
	w.accepted()
	var err error
	w.statelessPorts, err = collector.FreePorts()
	require.NoError(t, err)
	w.startStateless()
	t.Cleanup(func() { assert.NoError(t, w.stateless.Stop()) })
	for _, name := range []string{"whole", "past"} {
		n, err := node.Start(t.Context(), w.Cluster, node.Options{Name: name, Model: "H100", GPUs: 8})
		require.NoError(t, err)
		t.Cleanup(n.Stop)
		w.nodes = append(w.nodes, &member{Node: n})
	}
	w.exporters("nvidia-dcgm-exporter", "app", nil)
	w.startAgent(w.nodes[0], agents, nil)
	// Of this node the gateway gets what the summary needs and nothing else.
	w.startAgent(w.nodes[1], agents, []string{"agent-raw.yaml"},
		"RAW_ENDPOINT="+collector.Loopback+":"+strconv.Itoa(w.statelessPorts.OTLPGRPC), "RAW_INSECURE=true")
	for _, n := range w.nodes {
		require.NoError(t, n.agent.WaitReady(t.Context()))
	}
	return w
}

func record(t *testing.T) *ownership.Recorder {
	t.Helper()
	r, err := ownership.Record()
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

// account creates what a file of config/kubernetes has, and returns a kubeconfig of
// its account.
func (w *world) account(file string) string {
	w.t.Helper()
	kubeconfig, err := cluster.Apply(w.t.Context(), w.Cluster, filepath.Join(root, "config", "kubernetes", file))
	require.NoError(w.t, err)
	return kubeconfig
}

// accepted is that the API server would create what gateway-statefulset.yaml has.
func (w *world) accepted() {
	w.t.Helper()
	o := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
	objects, err := cluster.Objects(filepath.Join(root, "config", "kubernetes", "gateway-statefulset.yaml"))
	require.NoError(w.t, err)
	for _, object := range objects {
		var err error
		switch x := object.(type) {
		case *corev1.Service:
			_, err = w.Client().CoreV1().Services(x.Namespace).Create(w.t.Context(), x, o)
		case *appsv1.StatefulSet:
			_, err = w.Client().AppsV1().StatefulSets(x.Namespace).Create(w.t.Context(), x, o)
		default:
			require.Fail(w.t, "what is it", "%T", x)
		}
		require.NoError(w.t, err)
	}
}

// start starts the gateway on config/gateway.yaml with its addresses moved and
// its intervals short, and sends a copy of all that it forwards to the recorders.
func (w *world) start() {
	w.t.Helper()
	w.starts++
	overlay := w.ports.Overlay()
	overlay["processors"] = m{"gpu_summary": m{
		"interval": evaluation.String(), "staleness": w.staleness.String(), "warmup": warmup.String(), "initial_interval": collection.String(),
	}}
	exporters := overlay["exporters"].(m)
	plain := m{"insecure": true}
	exporters["otlp_grpc/out"] = m{"endpoint": w.out.Addr(), "tls": plain, "sending_queue": m{"num_consumers": 1}}
	exporters["otlp_grpc/events"] = m{"endpoint": w.events.Addr(), "tls": plain, "sending_queue": m{"enabled": false}}
	overlay["service"].(m)["pipelines"] = m{
		"metrics":     m{"exporters": []string{"best_effort/prometheus", "gpu_events", "gpu_cost", "otlp_grpc/out"}},
		"logs/events": m{"exporters": []string{"debug/events", "otlp_grpc/events"}},
	}
	var err error
	w.gateway, err = collector.Start(collector.Options{
		Binary: w.binary, Configs: []string{filepath.Join(root, "config", "gateway.yaml"), text(w.t, overlay)},
		Env: []string{
			"K8S_CLUSTER_NAME=" + clusterName, "K8S_AUTH_TYPE=kubeConfig", "KUBECONFIG=" + w.access, "STATE_DIRECTORY=" + w.state,
		},
		LogPath: filepath.Join(w.story.TempDir(), "gateway-"+strconv.Itoa(w.starts)+".log"), Ports: w.ports,
	})
	require.NoError(w.t, err)
	w.watchLog("the gateway", w.gateway)
	require.NoError(w.t, w.gateway.WaitReady(w.t.Context()))
}

// startStateless starts the collector that raw telemetry goes through on its way
// to the backend, which is the recorder.
func (w *world) startStateless() {
	w.t.Helper()
	w.starts++
	overlay := w.statelessPorts.Overlay()
	delete(overlay, "exporters") // it has none for Prometheus
	var err error
	w.stateless, err = collector.Start(collector.Options{
		Binary: w.binary, Configs: []string{filepath.Join(root, "config", "raw-gateway.yaml"), text(w.t, overlay)},
		Env:     []string{"BACKEND_ENDPOINT=" + w.raw.Addr(), "BACKEND_INSECURE=true"},
		LogPath: filepath.Join(w.story.TempDir(), "stateless-"+strconv.Itoa(w.starts)+".log"), Ports: w.statelessPorts,
	})
	require.NoError(w.t, err)
	w.watchLog("the stateless gateway", w.stateless)
	require.NoError(w.t, w.stateless.WaitReady(w.t.Context()))
}

// kill ends a gateway with SIGKILL: it has no time to write anything.
func (w *world) kill(c *collector.Collector) {
	w.t.Helper()
	require.NoError(w.t, syscall.Kill(c.PID(), syscall.SIGKILL))
	<-c.Exited()
	require.NoError(w.t, c.Stop())
}

// startAgent runs config/agent.yaml, and files or texts over it, on a node.
func (w *world) startAgent(n *member, kubeconfig string, over []string, env ...string) {
	w.t.Helper()
	ports, err := collector.FreePorts()
	require.NoError(w.t, err)
	overlay := ports.Overlay()
	delete(overlay, "exporters") // it has none for Prometheus
	receivers := overlay["receivers"].(m)
	interval := collection.String()
	if n.receiver == "gaudi" {
		interval = "10s" // the least that its exporter bears
	}
	receivers[cmp.Or(n.receiver, "dcgm")] = m{"collection_interval": interval, "kubernetes": m{"port": w.serveExporter(n)}}
	receivers["gpu_allocation"] = m{"socket": n.Socket(), "poll_interval": "1s", "timeout": "1s", "collection_interval": collection.String()}
	overlay["processors"] = m{"gpu_pod": m{"max_age": (3 * collection).String()}}
	configs := []string{filepath.Join(root, "config", "agent.yaml")}
	for _, file := range over {
		if !strings.HasPrefix(file, "yaml:") {
			file = filepath.Join(root, "config", file)
		}
		configs = append(configs, file)
	}
	n.agent, err = collector.Start(collector.Options{
		Binary: w.binary, Configs: append(configs, text(w.t, overlay)),
		Env: append([]string{
			"K8S_NODE_NAME=" + n.Name(), "K8S_CLUSTER_NAME=" + clusterName,
			"GATEWAY_ENDPOINT=" + collector.Loopback + ":" + strconv.Itoa(w.ports.OTLPGRPC), "GATEWAY_INSECURE=true",
			"K8S_AUTH_TYPE=kubeConfig", "KUBECONFIG=" + kubeconfig,
		}, env...),
		LogPath: filepath.Join(w.story.TempDir(), n.Name()+".log"), Ports: ports,
	})
	require.NoError(w.t, err)
	w.watchLog(n.Name(), n.agent)
	agent := n.agent
	w.t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		assert.NoError(w.t, agent.Stop())
	})
}

// watchLog fails the test if a collector was refused anything by Kubernetes: the
// shipped manifests give all rights that it uses.
func (w *world) watchLog(who string, c *collector.Collector) {
	w.story.Cleanup(func() {
		log, err := os.ReadFile(c.LogPath)
		assert.NoError(w.story, err)
		assert.NotContains(w.story, strings.ToLower(string(log)), "forbidden", who)
		if w.story.Failed() {
			w.story.Logf("the end of the log of %s:\n%s", who, log[max(0, len(log)-4000):])
		}
	})
}

// serveExporter puts a server that can be down in front of a node's exporter,
// and returns its port.
func (w *world) serveExporter(n *member) int {
	w.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if n.down.Load() {
			panic(http.ErrAbortHandler)
		}
		request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, n.ExporterURL(), nil)
		if err != nil {
			panic(err)
		}
		page, err := client.Do(request)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer page.Body.Close()
		rw.Header().Set("Content-Type", page.Header.Get("Content-Type"))
		_, _ = io.Copy(rw, page.Body)
	}))
	w.t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	require.NoError(w.t, err)
	port, err := strconv.Atoi(at.Port())
	require.NoError(w.t, err)
	return port
}

// eventually waits until done has no objection.
func (w *world) eventually(what string, done func(context.Context) error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	require.NoError(w.t, w.Wait(ctx, what, done))
}

func text(t *testing.T, overlay m) string {
	t.Helper()
	out, err := json.Marshal(overlay)
	require.NoError(t, err)
	return "yaml:" + string(out)
}
