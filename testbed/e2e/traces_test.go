// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/otlp"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
)

// spansNameGPUs: once the kubelet reports it, spans of a pod name the GPUs that the pod
// has, and those that it has after it moved. No application can state them, and a pod of
// which nothing is known has none. The devices are resources of GPUs: held by llama, and
// free.
func spansNameGPUs(t *testing.T, c *collector.Collector, apps *otlp.Sink, socket string, held, free []map[string]string) {
	t.Helper()
	ids := func(resources []map[string]string) (ids []string) {
		for _, r := range resources {
			ids = append(ids, r["hw.id"])
		}
		slices.Sort(ids)
		return slices.Compact(ids)
	}
	before, after := ids(held), ids(free)[:1]
	llama := kubelet.Pod{Namespace: "inference", Name: "llama-6b8d5c9f7d-k2x9p"}
	const gpu = "nvidia.com/gpu"
	node := kubelet.New(kubelet.Options{QPS: -1})
	node.SetDevices(gpu, kubelet.Devices(slices.Concat(before, ids(free))...))
	require.NoError(t, node.Force(llama, "vllm", gpu, kubelet.Devices(before...)...))
	require.NoError(t, node.Serve(socket))
	t.Cleanup(node.Stop)

	const forged = "GPU-forged"
	send := func() (ofLlama map[string]string) {
		t.Helper()
		apps.Reset()
		require.NoError(t, otlp.Post(t.Context(), fmt.Sprintf("http://%s:%d", collector.Loopback, c.Ports.OTLPHTTP), otlp.Traces,
			map[string]string{"k8s.namespace.name": llama.Namespace, "k8s.pod.name": llama.Name, "gpu.device.ids": forged},
			map[string]string{"k8s.namespace.name": "apps", "k8s.pod.name": llama.Name, "gpu.device.ids": forged, "hw.model": forged},
		))
		require.Eventually(t, func() bool { return len(apps.Resources()) == 2 }, patience, 20*time.Millisecond)
		for _, r := range apps.Resources() {
			assert.Equal(t, forged, r.Attributes["app.gpu.device.ids"])
			if r.Attributes["k8s.namespace.name"] == llama.Namespace {
				ofLlama = r.Attributes
				continue
			}
			for _, key := range []string{"gpu.device.ids", "gpu.device_count", "hw.model"} {
				assert.NotContains(t, r.Attributes, key, "another namespace's pod")
			}
		}
		return ofLlama
	}
	// become sends spans until they name these devices, and nothing but those before
	// meanwhile.
	become := func(was, want []string) map[string]string {
		t.Helper()
		text := func(ids []string) string {
			b, err := json.Marshal(ids)
			require.NoError(t, err)
			return string(b)
		}
		var a map[string]string
		require.Eventually(t, func() bool {
			a = send()
			named, ok := a["gpu.device.ids"]
			if !ok || len(want) > 0 && named == text(want) {
				return ok == (len(want) > 0)
			}
			require.Equal(t, text(was), named)
			return false
		}, patience, 200*time.Millisecond, "%v", want)
		return a
	}
	a := become(nil, before)
	assert.Equal(t, strconv.Itoa(len(before)), a["gpu.device_count"])
	assert.Equal(t, held[0]["hw.model"], a["hw.model"])
	assert.Equal(t, "llama-70b", a["service.name"])

	node.Release(llama)
	require.NoError(t, node.Force(llama, "vllm", gpu, kubelet.Devices(after...)...))
	assert.Equal(t, "1", become(before, after)["gpu.device_count"])

	node.Release(llama)
	assert.NotContains(t, become(after, nil), "gpu.device_count")
}
