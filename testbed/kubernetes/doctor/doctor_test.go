// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
)

const (
	root      = "../../.."
	namespace = "otelcol-gpu"
	nodeName  = "gpu-1"

	eventually = 2 * time.Minute
	tick       = 500 * time.Millisecond
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type world struct {
	*cluster.Cluster
	gpuctl string
}

type finding struct{ Check, Subject, Status, Seen, Remedy string }

// doctor asks for these checks under a kubeconfig, and returns findings and the
// exit code.
func (w *world) doctor(t *testing.T, kubeconfig string, args ...string) ([]finding, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), w.gpuctl, append([]string{"doctor", "-o", "json"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "K8S_AUTH_TYPE=kubeConfig", "K8S_NODE_NAME="+nodeName, "GATEWAY_ENDPOINT=localhost:1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	var report struct{ Results []finding }
	require.NoError(t, json.Unmarshal(out, &report), "%s%s", out, stderr.String())
	return report.Results, cmd.ProcessState.ExitCode()
}

// rights is the status of each right by its subject.
func rights(results []finding) map[string]string {
	all := map[string]string{}
	for _, f := range results {
		if f.Check == "rbac" {
			all[f.Subject] = f.Status
		}
	}
	return all
}

// One cluster, one story: an account gets its rights, a node its exporter.
func TestDoctor(t *testing.T) {
	w := &world{}
	var err error
	w.gpuctl, err = filepath.Abs(filepath.Join(root, "bin", "gpuctl"))
	require.NoError(t, err)
	require.FileExists(t, w.gpuctl, "run make build")
	w.Cluster, err = cluster.Start(t.Context(), cluster.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, w.Stop()) })
	require.NoError(t, w.CreateNamespace(t.Context(), namespace))
	agent, err := w.Kubeconfig(t.Context(), namespace, "otelcol-gpu-agent")
	require.NoError(t, err)
	gateway, err := w.Kubeconfig(t.Context(), namespace, "otelcol-gpu-gateway")
	require.NoError(t, err)
	agentArgs := []string{"kubernetes", "rbac", "exporter", "versions", "--config", filepath.Join(root, "config", "agent.yaml")}
	gatewayArgs := []string{"kubernetes", "rbac", "--config", filepath.Join(root, "config", "gateway.yaml")}
	as := []string{"rbac", "--role", "agent", "--as", "system:serviceaccount:" + namespace + ":otelcol-gpu-agent"}

	t.Run("without rights", func(t *testing.T) {
		found, code := w.doctor(t, agent, agentArgs...)
		assert.Equal(t, 1, code)
		denied := map[string]string{
			"pods": "fail", "nodes": "fail",
			"resourceslices.resource.k8s.io": "warn", "resourceclaims.resource.k8s.io": "warn",
		}
		assert.Equal(t, denied, rights(found))
		assert.Equal(t, "ok", w.one(t, found, "kubernetes", "API server").Status, "it answers all the same")
		exporter := w.one(t, found, "exporter", "on node "+nodeName)
		assert.Contains(t, exporter.Seen, "403")

		found, code = w.doctor(t, gateway, gatewayArgs...)
		assert.Equal(t, 1, code)
		assert.Equal(t, map[string]string{"pods": "fail", "resourceclaims.resource.k8s.io": "warn"}, rights(found))

		found, code = w.doctor(t, w.AdminKubeconfig(), as...)
		assert.Equal(t, 1, code)
		assert.Equal(t, denied, rights(found), "asked by somebody who may act as another")
	})

	_, err = cluster.Apply(t.Context(), w.Cluster, filepath.Join(root, "config", "kubernetes", "agent-rbac.yaml"))
	require.NoError(t, err)
	_, err = cluster.Apply(t.Context(), w.Cluster, filepath.Join(root, "config", "kubernetes", "gateway-rbac.yaml"))
	require.NoError(t, err)
	t.Run("with the rights of config/kubernetes", func(t *testing.T) {
		all := map[string]string{
			"pods": "ok", "nodes": "ok",
			"resourceslices.resource.k8s.io": "ok", "resourceclaims.resource.k8s.io": "ok",
		}
		var found []finding
		require.Eventually(t, func() bool { // the API server reads its own rules a little late
			found, _ = w.doctor(t, agent, agentArgs...)
			return assert.ObjectsAreEqual(all, rights(found))
		}, eventually, tick)
		assert.Equal(t, all, rights(found))
		assert.Contains(t, w.one(t, found, "kubernetes", "node "+nodeName).Seen, "no node of this name")
		assert.Contains(t, w.one(t, found, "exporter", "on node "+nodeName).Seen, "no running pod")
		assert.Equal(t, "ok", w.one(t, found, "kubernetes", "clock of the API server").Status)

		want, code := map[string]string{"pods": "ok", "resourceclaims.resource.k8s.io": "ok"}, -1
		require.Eventually(t, func() bool {
			found, code = w.doctor(t, gateway, gatewayArgs...)
			return assert.ObjectsAreEqual(want, rights(found))
		}, eventually, tick)
		assert.Zero(t, code)
		assert.Equal(t, want, rights(found))

		found, code = w.doctor(t, w.AdminKubeconfig(), as...)
		assert.Zero(t, code)
		assert.Equal(t, all, rights(found))
	})

	t.Run("with a node, its exporter and two versions", func(t *testing.T) {
		require.NoError(t, w.AddNode(t.Context(), cluster.NodeSpec{Name: nodeName}))
		w.pod(t, "exporter", "nvcr.io/nvidia/k8s/dcgm-exporter:4.5.3-4.8.2-ubuntu22.04", map[string]string{"app": "nvidia-dcgm-exporter"})
		ours := func(component string) map[string]string {
			return map[string]string{"app.kubernetes.io/name": "otelcol-gpu", "app.kubernetes.io/component": component}
		}
		w.pod(t, "agent-1", "ghcr.io/otelcol-gpu/otelcol-gpu:0.1.0", ours("agent"))
		w.pod(t, "gateway-0", "ghcr.io/otelcol-gpu/otelcol-gpu:0.2.0", ours("gateway"))
		var found []finding
		require.Eventually(t, func() bool { // kwok runs the pod, and gives it an address
			found, _ = w.doctor(t, agent, append(agentArgs, "--timeout", "2s")...)
			return slices.ContainsFunc(found, func(f finding) bool { return f.Check == "exporter" }) &&
				!slices.ContainsFunc(found, func(f finding) bool { return f.Subject == "on node "+nodeName })
		}, eventually, tick)
		assert.Equal(t, "ok", w.one(t, found, "kubernetes", "node "+nodeName).Status)
		i := slices.IndexFunc(found, func(f finding) bool { return f.Check == "exporter" })
		assert.Equal(t, "fail", found[i].Status, "nobody listens at a simulated pod's address")
		assert.Contains(t, found[i].Subject, ":9400")
		mixed := w.one(t, found, "versions", "pods")
		assert.Equal(t, "warn", mixed.Status)
		assert.Equal(t, "agent 0.1.0, gateway 0.2.0", mixed.Seen)
	})

	t.Run("with the API server gone", func(t *testing.T) {
		require.NoError(t, w.StopAPIServer())
		found, code := w.doctor(t, agent, agentArgs...)
		assert.Equal(t, 1, code)
		assert.Equal(t, "nothing listens there", w.one(t, found, "kubernetes", "API server").Seen)
	})
}

func (w *world) one(t *testing.T, results []finding, check, subject string) finding {
	t.Helper()
	i := slices.IndexFunc(results, func(f finding) bool { return f.Check == check && f.Subject == subject })
	require.GreaterOrEqual(t, i, 0, "%s of %s: %v", check, subject, results)
	return results[i]
}

// pod starts a pod on the node.
func (w *world) pod(t *testing.T, name, image string, labels map[string]string) {
	t.Helper()
	_, err := w.Client().CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.PodSpec{
			NodeName: nodeName, Containers: []corev1.Container{{Name: "main", Image: image}},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}
