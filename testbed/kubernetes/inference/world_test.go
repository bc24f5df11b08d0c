// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
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
	root     = "../../.." // of the repository
	nodeName = "gpu-node"
	patience = 3 * time.Minute // bounds every wait
)

type m = map[string]any

func TestMain(main *testing.M) {
	goleak.VerifyTestMain(main, goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

// world is a cluster with a node of GPUs, its agent and the gateway.
type world struct {
	*cluster.Cluster
	t              *testing.T // the step
	story          *testing.T // with it everything ends
	node           *node.Node
	agent, gateway *collector.Collector
}

// start starts what the pods do not need: the agent comes when they are there.
func start(t *testing.T) *world {
	t.Helper()
	c, err := cluster.Start(t.Context(), cluster.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	w := &world{Cluster: c, t: t, story: t}
	require.NoError(t, c.AddNode(t.Context(), cluster.NodeSpec{Name: "elsewhere"}))
	w.node, err = node.Start(t.Context(), c, node.Options{Name: nodeName, Model: "H100", GPUs: 8})
	require.NoError(t, err)
	t.Cleanup(w.node.Stop)
	for _, name := range []string{"inference", "gpu-operator"} {
		require.NoError(t, c.CreateNamespace(t.Context(), name))
	}
	return w
}

// account is a kubeconfig with the rights that a file of config/kubernetes gives.
func (w *world) account(file string) string {
	w.t.Helper()
	kubeconfig, err := cluster.Apply(w.t.Context(), w.Cluster, filepath.Join(root, "config", "kubernetes", file))
	require.NoError(w.t, err)
	return kubeconfig
}

// run starts a collector on files of config/ until the test ends.
func (w *world) run(name string, overlay m, env []string, files ...string) *collector.Collector {
	w.t.Helper()
	binary, err := filepath.Abs(filepath.Join(root, "bin", "otelcol-gpu"))
	require.NoError(w.t, err)
	require.FileExists(w.t, binary, "run make build")
	ports, err := collector.FreePorts()
	require.NoError(w.t, err)
	var configs []string
	for _, file := range files {
		configs = append(configs, filepath.Join(root, "config", file))
	}
	moved := ports.Overlay()
	if files[0] == "agent.yaml" {
		delete(moved, "exporters") // it has none for Prometheus
	}
	for _, o := range []m{moved, overlay} {
		text, err := json.Marshal(o)
		require.NoError(w.t, err)
		configs = append(configs, "yaml:"+string(text))
	}
	c, err := collector.Start(collector.Options{
		Binary: binary, Configs: configs, Env: append(env, "K8S_CLUSTER_NAME=real", "K8S_AUTH_TYPE=kubeConfig"),
		LogPath: filepath.Join(w.story.TempDir(), name+".log"), Ports: ports,
	})
	require.NoError(w.t, err)
	w.story.Cleanup(func() {
		assert.NoError(w.story, c.Stop())
		assert.NotContains(w.story, strings.ToLower(w.log(c)), "forbidden", name)
		if w.story.Failed() {
			text := w.log(c)
			w.story.Logf("the end of the log of %s:\n%s", name, text[max(0, len(text)-6000):])
		}
	})
	require.NoError(w.t, c.WaitReady(w.t.Context()))
	return c
}

func (w *world) log(c *collector.Collector) string {
	text, err := os.ReadFile(c.LogPath)
	require.NoError(w.story, err)
	return string(text)
}

// observe starts the gateway and the node's agent.
func (w *world) observe() {
	w.t.Helper()
	free, err := collector.Free(2)
	require.NoError(w.t, err)
	apps := fmt.Sprintf("%s:%d", collector.Loopback, free[0])
	w.gateway = w.run("gateway", m{
		"receivers": m{"otlp/apps": m{"protocols": m{"grpc": m{"endpoint": apps}}}},
		"exporters": m{"prometheus/apps": m{"endpoint": fmt.Sprintf("%s:%d", collector.Loopback, free[1])}},
		"processors": m{"gpu_summary": m{
			"interval": "1s", "staleness": "6s", "warmup": "2s", "initial_interval": "2s",
		}},
	}, []string{"KUBECONFIG=" + w.account("gateway-rbac.yaml"), "INFERENCE_INTERVAL=2s"}, "gateway.yaml", "gateway-applications.yaml", "inference-gateways.yaml")
	exporter, err := url.Parse(w.node.ExporterURL())
	require.NoError(w.t, err)
	port, err := strconv.Atoi(exporter.Port())
	require.NoError(w.t, err)
	w.agent = w.run("agent", m{"receivers": m{
		"dcgm":           m{"collection_interval": "2s", "kubernetes": m{"port": port}},
		"gpu_allocation": m{"socket": w.node.Socket(), "poll_interval": "1s", "timeout": "1s", "collection_interval": "2s"},
	}}, []string{
		"K8S_NODE_NAME=" + nodeName, "KUBECONFIG=" + w.account("agent-rbac.yaml"), "INFERENCE_INTERVAL=2s", "INFERENCE_INSECURE_SKIP_VERIFY=true",
		fmt.Sprintf("GATEWAY_ENDPOINT=%s:%d", collector.Loopback, w.gateway.Ports.OTLPGRPC), "GATEWAY_INSECURE=true",
		"APPS_ENDPOINT=" + apps, "APPS_INSECURE=true",
	}, "agent.yaml", "inference.yaml")
}

// place creates a pod, waits until it runs and gives it the address of its number.
func (w *world) place(number int, pod *corev1.Pod) {
	w.t.Helper()
	pods := w.Client().CoreV1().Pods(pod.Namespace)
	_, err := pods.Create(w.t.Context(), pod, metav1.CreateOptions{})
	require.NoError(w.t, err)
	if number < 0 {
		return
	}
	w.eventually(pod.Name+" runs at its address", func(ctx context.Context) error {
		p, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if p.Status.Phase != corev1.PodRunning || p.Status.PodIP == "" {
			return fmt.Errorf("it is %s", p.Status.Phase)
		}
		p.Status.PodIP, p.Status.PodIPs = address(number), []corev1.PodIP{{IP: address(number)}}
		_, err = pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
		return err
	})
}

// ask asks the gateway's store.
func (w *world) ask(query string) (model.Vector, error) {
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet,
		fmt.Sprintf("http://%s:%d/api/v1/query?query=%s", collector.Loopback, w.gateway.Ports.Store, url.QueryEscape(query)), nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var body struct {
		Error string
		Data  struct{ Result model.Vector }
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return nil, err
	}
	if body.Error != "" {
		return nil, fmt.Errorf("%s: %s", query, body.Error)
	}
	return body.Data.Result, nil
}

// eventually waits until done has no objection.
func (w *world) eventually(what string, done func(context.Context) error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	require.NoError(w.t, w.Wait(ctx, what, done))
}
