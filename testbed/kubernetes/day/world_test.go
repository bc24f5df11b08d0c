// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package day

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/node"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

const (
	root = "../../.." // of the repository

	// As short as the agent takes them; a collection is longer than a poll, as it
	// is by default.
	poll       = time.Second
	collection = 2 * time.Second
	// What the agent asks for has its time from before the question.
	slack = time.Second

	namespace   = "inference"
	clusterName = "day"
)

type m = map[string]any

// world is a cluster with its nodes and their agents, what these report, and what
// is true.
type world struct {
	*cluster.Cluster
	t         *testing.T
	nodes     []*member
	recorder  *ownership.Recorder
	ledger    *ownership.Ledger
	chronicle *ownership.Chronicle
	rules     ownership.Rules
	latest    *latest
	looking   sync.Mutex // one look at the truth at a time

	judged   int // points
	verdict  ownership.Verdict
	excluded []ownership.Silence // times at which an exporter had a frozen page
}

// member is a node with what runs on it.
type member struct {
	*node.Node
	agent    *collector.Collector
	replicas atomic.Int32 // of each device, for the ledger; 1: whole
}

// newWorld starts a cluster with these nodes, an exporter and an agent on each,
// and watches. Everything ends with the test.
func newWorld(t *testing.T, options ...node.Options) *world {
	t.Helper()
	binary, err := filepath.Abs(filepath.Join(root, "bin", "otelcol-gpu"))
	require.NoError(t, err)
	require.FileExists(t, binary, "run make build")
	w := &world{
		t: t, ledger: ownership.NewLedger(), chronicle: &ownership.Chronicle{}, latest: newLatest(),
		rules: ownership.Rules{Interval: poll + collection, Slack: slack},
	}
	w.Cluster, err = cluster.Start(t.Context(), cluster.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, w.Stop()) })
	w.recorder, err = ownership.Record()
	require.NoError(t, err)
	t.Cleanup(w.recorder.Close)
	require.NoError(t, w.CreateNamespace(t.Context(), namespace))
	require.NoError(t, node.CreateDeviceClasses(t.Context(), w.Client()))
	kubeconfig, err := cluster.Apply(t.Context(), w.Cluster, filepath.Join(root, "config", "kubernetes", "agent-rbac.yaml"))
	require.NoError(t, err)
	for _, o := range options {
		n, err := node.Start(t.Context(), w.Cluster, o)
		require.NoError(t, err)
		t.Cleanup(n.Stop)
		member := &member{Node: n}
		member.replicas.Store(int32(max(o.TimeSlicing, 1)))
		w.nodes = append(w.nodes, member)
	}
	w.exporters()
	w.watch()
	for _, n := range w.nodes {
		w.startAgent(n, binary, kubeconfig)
	}
	for _, n := range w.nodes {
		require.NoError(t, n.agent.WaitReady(t.Context()))
	}
	return w
}

// exporters puts a pod of dcgm-exporter on every node, in the node's network as
// gpu-operator can: its address is the node's, where the simulated exporter is.
func (w *world) exporters() {
	w.t.Helper()
	require.NoError(w.t, w.CreateNamespace(w.t.Context(), "gpu-operator"))
	labels := map[string]string{"app": "nvidia-dcgm-exporter"}
	_, err := w.Client().AppsV1().DaemonSets("gpu-operator").Create(w.t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "nvidia-dcgm-exporter"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{
					{Name: "nvidia-dcgm-exporter", Image: "example.com/dcgm-exporter"},
				}},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// startAgent runs config/agent.yaml on a node, with its addresses moved and its
// intervals as short as they can be.
func (w *world) startAgent(n *member, binary, kubeconfig string) {
	w.t.Helper()
	ports, err := collector.FreePorts()
	require.NoError(w.t, err)
	address := func(port int) m { return m{"endpoint": collector.Loopback + ":" + strconv.Itoa(port)} }
	overlay, err := json.Marshal(m{
		"receivers": m{
			"dcgm":           m{"collection_interval": collection.String(), "kubernetes": m{"port": w.serveExporter(n)}},
			"gpu_allocation": m{"socket": n.Socket(), "poll_interval": poll.String(), "timeout": poll.String(), "collection_interval": collection.String()},
			"otlp":           m{"protocols": m{"grpc": address(ports.OTLPGRPC), "http": address(ports.OTLPHTTP)}},
		},
		"processors": m{"gpu_pod": m{"max_age": (3 * collection).String()}},
		"extensions": m{"health_check": address(ports.Health)},
		"service": m{"telemetry": m{"metrics": m{"readers": []any{
			m{"pull": m{"exporter": m{"prometheus": m{"host": collector.Loopback, "port": ports.Own}}}},
		}}}},
	})
	require.NoError(w.t, err)
	n.agent, err = collector.Start(collector.Options{
		Binary:  binary,
		Configs: []string{filepath.Join(root, "config", "agent.yaml"), "yaml:" + string(overlay)},
		Env: []string{
			"K8S_NODE_NAME=" + n.Name(), "K8S_CLUSTER_NAME=" + clusterName,
			"GATEWAY_ENDPOINT=" + w.recorder.Addr(), "GATEWAY_INSECURE=true",
			"K8S_AUTH_TYPE=kubeConfig", "KUBECONFIG=" + kubeconfig,
		},
		LogPath: filepath.Join(w.t.TempDir(), n.Name()+".log"),
		Ports:   ports,
	})
	require.NoError(w.t, err)
	agent := n.agent
	w.t.Cleanup(func() {
		assert.NoError(w.t, agent.Stop())
		text, err := os.ReadFile(agent.LogPath)
		assert.NoError(w.t, err)
		if w.t.Failed() {
			w.t.Logf("the end of %s's log:\n%s", n.Name(), tail(string(text), 40))
		}
	})
}

// permitted is that no agent was refused anything: agent-rbac.yaml lists all that
// it uses.
func (w *world) permitted() {
	w.t.Helper()
	for _, n := range w.nodes {
		text, err := os.ReadFile(n.agent.LogPath)
		require.NoError(w.t, err)
		for line := range strings.Lines(strings.ToLower(string(text))) {
			if strings.Contains(line, "forbidden") {
				w.t.Errorf("%s: %s", n.Name(), line)
			}
		}
	}
}

func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// label sets a label of a node, as GPU feature discovery and the MIG manager do.
func (w *world) label(node, key, value string) {
	w.t.Helper()
	patch, err := json.Marshal(m{"metadata": m{"labels": m{key: value}}})
	require.NoError(w.t, err)
	_, err = w.Client().CoreV1().Nodes().Patch(w.t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(w.t, err)
}
