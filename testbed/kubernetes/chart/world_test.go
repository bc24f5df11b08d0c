// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/node"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/runner"
)

// processes are the pods that run as processes: the chart's, and exporters.
const processes = "app.kubernetes.io/name in (otelcol-gpu, dcgm-exporter)"

const kubeletPath = "/var/lib/kubelet/pod-resources"

// world is a cluster in which the chart's pods run as processes.
type world struct {
	*api
	t      *testing.T // the step
	story  *testing.T // with it everything ends
	runner *runner.Runner
	binary string
	// validate is whether a pod's collector is only to check its configuration.
	validate func(pod *corev1.Pod) bool

	mu    sync.Mutex
	nodes map[string]*node.Node
}

func newWorld(t *testing.T) *world {
	t.Helper()
	binary, err := filepath.Abs(filepath.Join(root, "bin", "otelcol-gpu"))
	require.NoError(t, err)
	require.FileExists(t, binary, "run make build")
	w := &world{t: t, story: t, binary: binary, nodes: map[string]*node.Node{}, validate: func(*corev1.Pod) bool { return false }}
	w.api = startCluster(t, cluster.Options{Unplayed: processes})
	require.NoError(t, node.CreateDeviceClasses(t.Context(), w.Client()))
	dir := t.TempDir()
	w.runner, err = runner.Start(t.Context(), runner.Options{
		Cluster: w.Cluster, Selector: processes, Dir: dir, Program: w.program, HostPath: func(name, path string) (string, error) {
			if path == kubeletPath {
				return w.kubelet(name)
			}
			at := filepath.Join(dir, "nodes", name, path)
			return at, os.MkdirAll(at, 0o755)
		}, Adapt: adapt,
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		w.runner.Stop()
		assert.NoError(t, w.runner.Err())
		w.checkLogs(dir)
	})
	return w
}

// addNode adds a node with eight GPUs, as GPU feature discovery labels one.
func (w *world) addNode(name string) *node.Node {
	w.t.Helper()
	n, err := node.Start(w.t.Context(), w.Cluster, node.Options{
		Name: name, Model: "H100", GPUs: 8, Labels: map[string]string{"nvidia.com/gpu.present": "true", "pool": "gpu"},
	})
	require.NoError(w.t, err)
	w.story.Cleanup(n.Stop)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[name] = n
	return n
}

func (w *world) node(name string) *node.Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[name]
}

// kubelet is the folder of a node's pod-resources socket.
func (w *world) kubelet(name string) (string, error) {
	if n := w.node(name); n != nil {
		return filepath.Dir(n.Socket()), nil
	}
	return "", errors.New("there is no " + kubeletPath)
}

// program is what runs for a container: the real binary, and for an exporter the
// simulated one of its node.
func (w *world) program(pod *corev1.Pod, c *corev1.Container) (runner.Program, error) {
	switch {
	case strings.Contains(c.Image, "dcgm-exporter"):
		n := w.node(pod.Spec.NodeName)
		if n == nil {
			return runner.Program{}, errors.New("the node has no GPUs")
		}
		return runner.Program{Proxy: strings.TrimSuffix(strings.TrimPrefix(n.ExporterURL(), "http://"), "/metrics")}, nil
	case strings.Contains(c.Image, "otelcol-gpu") && w.validate(pod):
		return runner.Program{Path: w.binary, Args: []string{"validate"}}, nil
	case strings.Contains(c.Image, "otelcol-gpu"):
		return runner.Program{Path: w.binary}, nil
	}
	return runner.Program{}, errors.New("no such image: " + c.Image)
}

// adapt gives a collector what it would find at fixed paths of a container: the
// kubelet's socket, and the account's token.
func adapt(in *runner.Inside) (args, env []string) {
	if in.Kubeconfig != "" {
		env = append(env, "K8S_AUTH_TYPE=kubeConfig", "KUBECONFIG="+in.Kubeconfig,
			"K8S_KUBELET_AUTH_TYPE=none") // there is no kubelet to ask
	}
	if dir := in.Mounts[kubeletPath]; dir != "" {
		args = append(args, "--config", "yaml:receivers::gpu_allocation::socket: "+filepath.Join(dir, "kubelet.sock"))
	}
	return args, env
}

// eventually waits until done has no objection.
func (w *world) eventually(what string, done func(context.Context) error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	require.NoError(w.t, w.Wait(ctx, what, done))
}

// pods are those with labels, in the order of their names.
func (w *world) pods(ctx context.Context, namespace, selector string) ([]corev1.Pod, error) {
	list, err := w.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// state describes a pod, for people.
func state(pod *corev1.Pod) string {
	text := fmt.Sprintf("%s: %s", pod.Name, pod.Status.Phase)
	for _, c := range pod.Status.Conditions {
		if c.Status != corev1.ConditionTrue && c.Message != "" {
			text += ", " + c.Message
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if s := c.State.Waiting; s != nil {
			text += ", " + s.Reason + " " + s.Message
		}
	}
	return text
}

// log is what a pod's container printed.
func (w *world) log(namespace, pod string) (string, error) {
	in, err := w.runner.Pod(namespace, pod)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(in.Log)
	return string(text), err
}

// checkLogs fails the test if Kubernetes refused a collector anything: the chart
// gives all rights that are used.
func (w *world) checkLogs(dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.log"))
	assert.NoError(w.story, err)
	assert.NotEmpty(w.story, files)
	for _, f := range files {
		text, err := os.ReadFile(f)
		assert.NoError(w.story, err)
		name := strings.TrimPrefix(f, dir)
		assert.NotContains(w.story, strings.ToLower(string(text)), "forbidden", name)
		if w.story.Failed() {
			w.story.Logf("the end of %s:\n%s", name, text[max(0, len(text)-2500):])
		}
	}
}

// secrets creates every Secret that the drawings name.
func (w *world) secrets(namespace string) {
	w.t.Helper()
	cert, key := certificate(w.t)
	for name, data := range map[string]map[string]string{
		"gateway-tls":    {"ca.crt": cert, "tls.crt": cert, "tls.key": key},
		"gateway-token":  {"token": "0123456789abcdef0123456789abcdef"},
		"backend-token":  {"token": "abc"},
		"backend":        {"api-key": "abc"},
		"backend-ca":     {"ca.crt": cert},
		"backend-client": {"tls.crt": cert, "tls.key": key},
		"mimir":          {"header": "Bearer abc"},
		"vendor":         {"token": "abc"},
		"console-token":  {"token": "0123456789abcdef0123456789abcdef"},
		"hooks": {
			"ops": "https://hooks.example.com/T0/B0/abc", "convox": "https://console.example.com/hook", "pager": "https://events.pagerduty.com/v2/enqueue",
			"ops-whsec": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "routing": "0123456789abcdef0123456789abcdef",
		},
		"hooks-files":   {"ops": "https://hooks.example.com/T0/B0/abc"},
		"prices":        {"prices.yaml": "- {match: {hw.model: \"*\"}, gpu_hour: \"1.10\"}\n"},
		"audit-keys":    auditKeys(w.t),
		"proxy":         {"url": "http://proxy.example.com:3128"},
		"control-token": {"token": "0123456789abcdef"},
	} {
		_, err := w.Client().CoreV1().Secrets(namespace).Create(w.t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: data,
		}, metav1.CreateOptions{})
		require.NoError(w.t, err)
	}
}

// auditKeys are made as docs/audit.md describes.
func auditKeys(t *testing.T) map[string]string {
	t.Helper()
	dir, keys := t.TempDir(), map[string]string{}
	checkpoint, fingerprint := filepath.Join(dir, "checkpoint.key"), filepath.Join(dir, "fingerprint.key")
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "gpuctl"), "audit", "keygen",
		"--name", "test", "--checkpoint", checkpoint, "--fingerprint", fingerprint).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, file := range []string{checkpoint, fingerprint} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		keys[filepath.Base(file)] = string(text)
	}
	return keys
}

// certificate is one that signs itself, in PEM, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"otelcol-gpu-gateway"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	encode := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", keyDER)
}
