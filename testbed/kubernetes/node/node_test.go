// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// One cluster with a node of each kind, and a day on it: every step leaves the
// nodes as it found them.
func TestNode(t *testing.T) {
	c, err := cluster.Start(t.Context(), cluster.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Stop()) }()
	require.NoError(t, CreateDeviceClasses(t.Context(), c.Client()))
	plugin := start(t, c, Options{Name: "plugin", Model: "H100", GPUs: 4})
	dra := start(t, c, Options{Name: "dra", Model: "H100", GPUs: 2, DRA: true})
	w := &world{t: t, Cluster: c}

	t.Run("each pod of a deployment has a GPU of its own, on every wire", func(t *testing.T) {
		w := w.in(t)
		w.deploy("web", "plugin", 3, "nvidia.com/gpu", 1)
		w.wait(plugin, 3)
		owners := plugin.Truth().Owners
		pods := map[string]string{}
		for id, h := range owners {
			require.Len(t, h, 1)
			assert.Equal(t, "nvidia.com/gpu", h[0].Resource)
			pods[id] = h[0].Pod.Name
		}
		assert.Len(t, slices.Compact(slices.Sorted(maps.Values(pods))), 3)
		assert.Equal(t, pods, w.podResources(plugin))
		assert.Equal(t, pods, w.exporterPage(plugin))
	})

	t.Run("a rollout hands GPUs on", func(t *testing.T) {
		w := w.in(t)
		old := names(plugin)
		w.rollOut("web")
		w.eventually("all pods are new", func(context.Context) error {
			now := names(plugin)
			if len(now) != 3 || slices.ContainsFunc(now, func(name string) bool { return slices.Contains(old, name) }) {
				return fmt.Errorf("holders: %v", now)
			}
			return nil
		})
		assert.Empty(t, plugin.Truth().Unserved)
	})

	t.Run("a kubelet that restarts knows who has what, and what it missed", func(t *testing.T) {
		w := w.in(t)
		before := plugin.Truth().Owners
		plugin.StopKubelet()
		assert.NoFileExists(t, plugin.Socket())
		w.scale("web", 1)
		w.eventually("two pods are gone", func(ctx context.Context) error {
			pods, err := c.Client().CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
			if err == nil && len(pods.Items) != 1 {
				err = fmt.Errorf("%d pods", len(pods.Items))
			}
			return err
		})
		assert.Equal(t, before, plugin.Truth().Owners, "a kubelet that is down decides nothing")
		require.NoError(t, plugin.StartKubelet())
		w.wait(plugin, 1)
		for id, h := range plugin.Truth().Owners {
			assert.Equal(t, before[id], h)
		}
		w.eventually("the API says so", func(context.Context) error {
			if got := w.podResources(plugin); len(got) != 1 {
				return fmt.Errorf("pod-resources: %v", got)
			}
			return nil
		})
	})

	t.Run("a job frees its GPU when it is complete", func(t *testing.T) {
		w := w.in(t)
		w.job("train", "plugin", 2)
		w.wait(plugin, 3)
		pods := c.Client().CoreV1().Pods("default")
		list, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: "app=train"})
		require.NoError(t, err)
		require.Len(t, list.Items, 1)
		pod := list.Items[0].Name
		w.annotate(pod, cluster.AnnotationCompleteAfter, "1ms")
		w.wait(plugin, 1) // the deployment's
		finished, err := pods.Get(t.Context(), pod, metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, corev1.PodSucceeded, finished.Status.Phase, "it is there still")
	})

	t.Run("the API server goes, and what changed is met when it is back", func(t *testing.T) {
		w := w.in(t)
		require.NoError(t, c.StopAPIServer())
		require.NoError(t, c.StartAPIServer(t.Context()))
		w.delete("web")
		w.wait(plugin, 0)
	})

	t.Run("MIG", func(t *testing.T) {
		w := w.in(t)
		w.deploy("whole", "plugin", 4, "nvidia.com/gpu", 1)
		w.wait(plugin, 4)
		layout := map[int][]string{0: {"3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"}}
		require.ErrorContains(t, plugin.Reconfigure(t.Context(), layout), "is held")
		w.delete("whole")
		w.wait(plugin, 0)

		require.NoError(t, plugin.Reconfigure(t.Context(), layout))
		w.deploy("small", "plugin", 2, "nvidia.com/mig-1g.10gb", 1)
		w.wait(plugin, 2)
		gpu := plugin.Devices()[0].GPU
		truth := plugin.Truth().Owners
		assert.ElementsMatch(t, []string{
			fmt.Sprintf("%s/%d", gpu.UUID, gpu.Instances[2].ID), fmt.Sprintf("%s/%d", gpu.UUID, gpu.Instances[3].ID),
		}, slices.Collect(maps.Keys(truth)))
		for id := range w.podResources(plugin) {
			assert.True(t, strings.HasPrefix(id, "MIG-"), id)
		}
		assert.Equal(t, len(truth), len(w.exporterPage(plugin)))
		w.delete("small")
		w.wait(plugin, 0)
		require.NoError(t, plugin.Reconfigure(t.Context(), nil))
		assert.Len(t, plugin.Devices(), 4)
	})

	t.Run("time-slicing", func(t *testing.T) {
		w := w.in(t)
		require.NoError(t, plugin.SetTimeSlicing(t.Context(), 2))
		w.deploy("shared", "plugin", 8, "nvidia.com/gpu", 1)
		w.wait(plugin, 8)
		for id := range plugin.Truth().Owners {
			assert.Regexp(t, `^GPU-[0-9a-f-]{36}::[01]$`, id)
		}
		require.NoError(t, plugin.Err())
		w.delete("shared")
		w.wait(plugin, 0)
		require.NoError(t, plugin.SetTimeSlicing(t.Context(), 1))
	})

	t.Run("whole devices and replicas of them at a time", func(t *testing.T) {
		w := w.in(t)
		w.deploy("early", "plugin", 1, "nvidia.com/gpu", 1)
		w.wait(plugin, 1)
		require.NoError(t, plugin.SetTimeSlicing(t.Context(), 2))
		w.deploy("late", "plugin", 7, "nvidia.com/gpu", 1)
		w.eventually("the exporter cannot show it", func(context.Context) error {
			if held := plugin.Truth().Owners; len(held) != 8 || plugin.Err() == nil {
				return fmt.Errorf("%v, held: %v", plugin.Err(), held)
			}
			return nil
		})
		w.delete("early")
		w.wait(plugin, 7)
		w.delete("late")
		w.wait(plugin, 0)
		require.NoError(t, plugin.SetTimeSlicing(t.Context(), 1))
	})

	t.Run("a pod that there is no device for", func(t *testing.T) {
		w := w.in(t)
		plugin.Kubelet().SetDevices("nvidia.com/gpu", nil) // and the node has not seen it
		w.deploy("web", "plugin", 1, "nvidia.com/gpu", 1)
		w.eventually("the pod is unserved", func(context.Context) error {
			for pod, err := range plugin.Truth().Unserved {
				if strings.HasPrefix(pod.Name, "web-") {
					assert.ErrorContains(t, err, "1 devices are wanted and 0 are free")
					return nil
				}
			}
			return fmt.Errorf("%v", plugin.Truth())
		})
		require.NoError(t, plugin.SetTimeSlicing(t.Context(), 1)) // the plugin is back
		w.wait(plugin, 1)
		w.delete("web")
		w.wait(plugin, 0)
	})

	t.Run("a pod has its GPU until it is gone", func(t *testing.T) {
		w := w.in(t)
		w.deploy("slow", "plugin", 1, "nvidia.com/gpu", 1)
		w.wait(plugin, 1)
		old := names(plugin)[0]
		w.annotate(old, cluster.AnnotationStopAfter, "1h")
		w.delete("slow")
		w.eventually("the pod is being deleted", func(ctx context.Context) error {
			pod, err := c.Client().CoreV1().Pods("default").Get(ctx, old, metav1.GetOptions{})
			if err == nil && pod.DeletionTimestamp == nil {
				err = fmt.Errorf("not yet")
			}
			return err
		})
		assert.Equal(t, []string{old}, names(plugin))
		w.deletePod(old, 0)
		w.wait(plugin, 0)
	})

	t.Run("a claim made from a template", func(t *testing.T) {
		w := w.in(t)
		w.claimTemplate("one-gpu", ClassGPU)
		w.podWithClaim("claiming", "one-gpu")
		w.wait(dra, 1)
		claimed := w.dynamicResources(dra)
		for id, h := range dra.Truth().Owners {
			assert.Equal(t, "claiming", h[0].Pod.Name)
			assert.Equal(t, Driver, h[0].Resource)
			assert.Equal(t, map[string]string{w.sliceDevice("dra", id): "claiming"}, claimed)
			assert.Equal(t, map[string]string{id: "claiming"}, w.exporterPage(dra))
		}
		w.deletePod("claiming", 30)
		w.wait(dra, 0)
	})

	t.Run("a claim of a MIG device", func(t *testing.T) {
		w := w.in(t)
		require.NoError(t, dra.Reconfigure(t.Context(), map[int][]string{1: {"3g.40gb"}}))
		w.claimTemplate("one-mig", ClassMIG)
		w.podWithClaim("claiming", "one-mig")
		w.wait(dra, 1)
		gpu := dra.Devices()[1].GPU
		instance := gpu.Instances[0]
		name := fmt.Sprintf("gpu-1-mig-3g40gb-%d-%d", instance.ProfileID, instance.Start)
		assert.Equal(t, map[string]string{name: "claiming"}, w.dynamicResources(dra))
		assert.Equal(t, name, w.sliceDevice("dra", instance.UUID))
		assert.Contains(t, dra.Truth().Owners, fmt.Sprintf("%s/%d", gpu.UUID, instance.ID))
		w.deletePod("claiming", 30)
		w.wait(dra, 0)
		require.NoError(t, dra.Reconfigure(t.Context(), nil))
	})

	t.Run("nvidia.com/gpu served by DRA", func(t *testing.T) {
		w := w.in(t)
		w.deploy("extended", "dra", 2, "nvidia.com/gpu", 1)
		w.wait(dra, 2)
		for _, h := range dra.Truth().Owners {
			assert.Equal(t, Driver, h[0].Resource)
			assert.NotEmpty(t, h[0].Claim)
		}
		assert.Len(t, w.dynamicResources(dra), 2)
		assert.Empty(t, w.podResources(dra), "no device plugin has part in it")
		w.delete("extended")
		w.wait(dra, 0)
	})

	t.Run("the day is on record", func(t *testing.T) {
		last := map[string]int{}
		for _, change := range dra.History() {
			last[change.HWID] = len(change.Owners)
		}
		assert.Len(t, last, 3, "two GPUs and a MIG device")
		for id, owners := range last {
			assert.Zero(t, owners, id)
		}
	})
}
