// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/node"
)

// values of the day: the chart's own, with everything that waits made quick. But
// an agent of a busy machine has to be back within staleness.
const dayValues = `
clusterName: day
thresholds: {events: {gpu.node.lost: {enabled: true, lost_after: 30s}}}
agent:
  minReadySeconds: 2
  config:
    receivers:
      dcgm: {collection_interval: 2s}
      gpu_allocation: {poll_interval: 1s, timeout: 1s, collection_interval: 2s}
    processors: {gpu_pod: {max_age: 6s}}
gateway:
  config:
    processors:
      gpu_summary: {interval: 1s, staleness: 30s, warmup: 3s, initial_interval: 2s, reconnect_grace: 60s}
`

// TestDay is the life of a release, in one story: the steps build on each other.
func TestDay(t *testing.T) {
	t.Parallel() // most of these wait most of the time
	w := newWorld(t)
	h := newHelm(t, "helm3", w.AdminKubeconfig())
	gateway := console{w: w, namespace: release, pod: "otelcol-gpu-gateway-0"}
	require.NoError(t, w.AddNode(t.Context(), cluster.NodeSpec{Name: "cpu", Labels: map[string]string{"pool": "cpu"}}))
	require.NoError(t, w.CreateNamespace(t.Context(), release))
	before, err := w.everything(t.Context())
	require.NoError(t, err)
	var a, b *node.Node

	step := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			if w.story.Failed() {
				t.Skip("a step before this one failed")
			}
			w.t = t
			defer func() { w.t = w.story }()
			f(t)
		})
	}
	step("install where no node has GPUs", func(t *testing.T) {
		notes, err := h.run(t.Context(), append([]string{"install", release, "charts/otelcol-gpu", "--namespace", release}, valuesArgs(t, dayValues)...)...)
		require.NoError(t, err)
		assert.Contains(t, notes, "no node", "the notes say that nothing will be seen")
		w.eventually("the gateway is ready", func(ctx context.Context) error { return w.podsReady(ctx, "gateway", 1) })
	})
	step("nodes and workloads come", func(t *testing.T) {
		a, b = w.addNode("gpu-a"), w.addNode("gpu-b")
		w.exporters()
		w.eventually("an agent on every GPU node", func(ctx context.Context) error { return w.podsReady(ctx, "agent", 2) })
		w.workloads()
		w.eventually("services with numbers", func(ctx context.Context) error {
			return errors.Join(gateway.whole(ctx, time.Time{}, "chat", 4), gateway.whole(ctx, time.Time{}, "train", 1))
		})
		w.neverPartial(gateway)
		w.isolated(gateway)
	})
	step("upgrade: agents and gateway roll, and an XID happens meanwhile", func(t *testing.T) {
		old := w.uids(t)
		secret := w.secret(t, "otelcol-gpu-token")
		_, err := h.run(t.Context(), "upgrade", release, "charts/otelcol-gpu", "--namespace", release, "--reuse-values",
			"--set", `thresholds.events.gpu\.temperature.high=84`, "--set", "thresholds.summary.idle_for=20m")
		require.NoError(t, err)
		w.xid(a, "chat")
		w.eventually("all pods are new", func(ctx context.Context) error {
			if err := errors.Join(w.podsReady(ctx, "agent", 2), w.podsReady(ctx, "gateway", 1)); err != nil {
				return err
			}
			for name := range w.uids(t) {
				if old[name] {
					return errors.New("an old pod is there")
				}
			}
			return nil
		})
		assert.Equal(t, secret, w.secret(t, "otelcol-gpu-token"), "the token is kept")
		w.wholeAgain(gateway)
		w.waitForEvents(gateway, names.EventXID, "gpu-a: raised")
		w.neverPartial(gateway)
	})
	step("roll the gateway", func(t *testing.T) {
		w.kubectl(t, "rollout", "restart", "statefulset/otelcol-gpu-gateway")
		w.kubectl(t, "rollout", "status", "statefulset/otelcol-gpu-gateway", "--timeout=2m")
		w.wholeAgain(gateway)
		w.neverPartial(gateway)
		w.waitForEvents(gateway, names.EventXID, "gpu-a: raised")
	})
	step("the gateway is unreachable for a while", func(t *testing.T) {
		before := map[string]int{} // length of each log
		for _, pod := range w.podsOf(t, "agent") {
			log, err := w.log(release, pod.Name)
			require.NoError(t, err)
			before[pod.Name] = len(log)
		}
		address := w.runner.ServiceAddress(release, "otelcol-gpu-gateway", 4317)
		w.kubectl(t, "scale", "statefulset/otelcol-gpu-gateway", "--replicas=0")
		w.eventually("no gateway", func(ctx context.Context) error {
			_, err := w.runner.Pod(release, gateway.pod)
			if err == nil {
				return errors.New("it runs")
			}
			return nil
		})
		w.xid(b, "chat")
		w.eventually("the agents' logs say who does not answer", func(ctx context.Context) error {
			for name, length := range before {
				log, err := w.log(release, name)
				if err != nil {
					return err
				}
				written := log[length:]
				if !strings.Contains(written, "Exporting failed. Will retry the request after interval") || !strings.Contains(written, address) {
					return errors.New(name + " logs nothing")
				}
			}
			return nil
		})
		w.kubectl(t, "scale", "statefulset/otelcol-gpu-gateway", "--replicas=1")
		w.wholeAgain(gateway)
		w.waitForEvents(gateway, names.EventXID, "gpu-a: raised", "gpu-b: raised")
		w.neverPartial(gateway)
	})
	step("a node is lost", func(t *testing.T) {
		w.runner.PowerOff("gpu-b")
		b.Stop()
		w.waitForEvents(gateway, names.EventServicePartial, "chat: raised")
		s, err := gateway.service(t.Context(), "chat")
		require.NoError(t, err)
		assert.Contains(t, s.Attention, "partial")
		w.waitForEvents(gateway, names.EventNodeLost, "gpu-b: raised")
		// The operator takes it out of the cluster; its pods come up elsewhere.
		require.NoError(t, w.DeleteNode(t.Context(), "gpu-b"))
		w.wholeAgain(gateway)
		w.waitForEvents(gateway, names.EventServicePartial, "chat: raised", "chat: cleared")
	})
	w.uninstalled(t, h, before)
}

// uninstalled is that the gateway's volume, with the audit log, stays after the
// release, and that nothing is left in the cluster once its claim is deleted too.
func (w *world) uninstalled(t *testing.T, h helm, before map[string]bool) {
	t.Run("uninstall", func(t *testing.T) {
		if w.story.Failed() {
			t.Skip("a step before this one failed")
		}
		w.t = t
		defer func() { w.t = w.story }()
		_, err := h.run(t.Context(), "uninstall", release, "--namespace", release, "--wait")
		require.NoError(t, err)
		const claim = "state-otelcol-gpu-gateway-0"
		kept, err := w.Client().CoreV1().PersistentVolumeClaims(release).Get(t.Context(), claim, metav1.GetOptions{})
		require.NoError(t, err, "the volume stays")
		onlyLeft := func(want ...string) {
			w.eventually(fmt.Sprintf("left is %v", want), func(ctx context.Context) error {
				now, err := w.everything(ctx)
				if err != nil {
					return err
				}
				for name := range w.nodes {
					delete(now, "nodes /"+name)
					delete(now, "csinodes /"+name)
				}
				delete(now, "namespaces /"+inference)
				delete(now, "namespaces /gpu-operator")
				if left := leftBehind(before, now); !slices.Equal(want, left) {
					return fmt.Errorf("left: %v", left)
				}
				return nil
			})
		}
		onlyLeft("persistentvolumeclaims "+release+"/"+claim, "persistentvolumes /"+kept.Spec.VolumeName)
		w.kubectl(t, "delete", "persistentvolumeclaim", claim)
		onlyLeft()
	})
}

// podsReady is an error unless exactly so many pods of a component run and are ready.
func (w *world) podsReady(ctx context.Context, component string, n int) error {
	pods, err := w.pods(ctx, release, "app.kubernetes.io/component="+component)
	if err != nil {
		return err
	}
	if len(pods) != n {
		return fmt.Errorf("%d pods of %s", len(pods), component)
	}
	for i := range pods {
		if !ready(&pods[i]) || pods[i].DeletionTimestamp != nil {
			return errors.New(state(&pods[i]))
		}
	}
	return nil
}

func (w *world) podsOf(t *testing.T, component string) []corev1.Pod {
	t.Helper()
	pods, err := w.pods(t.Context(), release, "app.kubernetes.io/component="+component)
	require.NoError(t, err)
	return pods
}

func (w *world) uids(t *testing.T) map[string]bool {
	t.Helper()
	uids := map[string]bool{}
	pods, err := w.pods(t.Context(), release, "")
	require.NoError(t, err)
	for _, p := range pods {
		uids[string(p.UID)] = true
	}
	return uids
}

func (w *world) secret(t *testing.T, name string) map[string][]byte {
	t.Helper()
	s, err := w.Client().CoreV1().Secrets(release).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return s.Data
}

// wholeAgain waits until chat is whole by what was measured from now on.
func (w *world) wholeAgain(c console) {
	w.t.Helper()
	now := time.Now()
	w.eventually("services with numbers", func(ctx context.Context) error { return c.whole(ctx, now, "chat", 4) })
}

// neverPartial is that no service ever was, by the store's memory of every
// evaluation, and that no event was sent.
func (w *world) neverPartial(c console) {
	w.t.Helper()
	for _, s := range []string{"chat", "train"} {
		most, err := c.query(w.t.Context(), `max(max_over_time(gpu_service_partial{service_name="`+s+`"}[1h]))`)
		require.NoError(w.t, err)
		assert.Zero(w.t, most, "%s was partial", s)
	}
	got, err := c.events(w.t.Context(), names.EventServicePartial)
	require.NoError(w.t, err)
	assert.Empty(w.t, got)
}

// waitForEvents waits until exactly these events of a name were received, and looks again
// after some evaluations.
func (w *world) waitForEvents(c console, name string, want ...string) {
	w.t.Helper()
	same := func(ctx context.Context) error {
		got, err := c.events(ctx, name)
		if err == nil && !assert.ObjectsAreEqual(want, got) {
			err = fmt.Errorf("received: %v", got)
		}
		return err
	}
	w.eventually(fmt.Sprintf("%s is %v", name, want), same)
	later := time.Now().Add(5 * time.Second) // evaluations, one a second
	w.eventually("some evaluations more", func(ctx context.Context) error {
		s, err := c.service(ctx, "chat")
		if err == nil && !s.DataTime.After(later) {
			err = fmt.Errorf("the last one at %v", s.DataTime)
		}
		return err
	})
	assert.NoError(w.t, same(w.t.Context()), name)
}

// xid lets a GPU that a service holds fail.
func (w *world) xid(n *node.Node, service string) {
	w.t.Helper()
	for _, d := range n.Fleet().TruthAt(time.Now()).Nodes[0].Devices {
		if strings.HasPrefix(d.Pod, service+"-") {
			_, err := n.Fleet().StartFault(gpusim.Fault{Node: n.Name(), Kind: gpusim.XID, Device: strconv.Itoa(d.Index), Code: 79})
			require.NoError(w.t, err)
			return
		}
	}
	require.Fail(w.t, "nothing of "+service+" on "+n.Name())
}

// isolated is that what is for the pod alone is not on the pod's address.
func (w *world) isolated(c console) {
	w.t.Helper()
	in, err := w.runner.Pod(c.namespace, c.pod)
	require.NoError(w.t, err)
	for _, port := range []string{"8480", "9090"} {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(in.Address, port), time.Second)
		if !assert.Error(w.t, err, "port %s is open to other pods", port) {
			_ = conn.Close()
		}
	}
}

// kubectl runs the real one in the release's namespace.
func (w *world) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "bin", "clients", "kubectl", "kubectl"))
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), path, append([]string{"--namespace", release}, args...)...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + w.AdminKubeconfig()}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}
