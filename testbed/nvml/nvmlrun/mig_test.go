// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlrun

import (
	"context"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	nvmllab "github.com/otelcol-gpu/otelcol-gpu/testbed/nvml"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/simkubelet"
)

// owned is the last batch of gpu.allocation: pod by hw.id, of devices that are resolved, and
// how many are not.
type owned struct {
	consumertest.MetricsSink
	mu         sync.Mutex
	pods       map[string]string
	unresolved int
}

func (o *owned) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pods, o.unresolved = map[string]string{}, 0
	for _, rm := range md.ResourceMetrics().All() {
		pod, _ := rm.Resource().Attributes().Get("k8s.pod.name")
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != "gpu.allocation" {
					continue
				}
				for _, p := range m.Sum().DataPoints().All() {
					id, _ := p.Attributes().Get("hw.id")
					if resolved, _ := p.Attributes().Get("gpu.allocation.resolved"); !resolved.Bool() {
						o.unresolved++
					} else if pod.Str() != "" {
						o.pods[id.Str()] = pod.Str()
					}
				}
			}
		}
	}
	return nil
}

func (o *owned) now() (map[string]string, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pods, o.unresolved
}

// TestMIGOfTheKubelet: the MIG-<uuid> of a kubelet, by its real protocol, is a device without
// any join once nvml has read the layout, and as before without it.
func TestMIGOfTheKubelet(t *testing.T) {
	lab := nvmllab.Start(t, nvmllab.Options{
		Boards: 2, MIG: map[string][]string{"0": {"3g.40gb", "1g.10gb"}},
		Pods: []gpusim.Pod{
			{Namespace: "n", Name: "part", Container: "main", Devices: []string{"0:1"}, Load: gpusim.Idle},
			{Namespace: "n", Name: "whole", Container: "main", Devices: []string{"1"}, Load: gpusim.Idle},
		},
	})
	dir, err := os.MkdirTemp("", "k") // short, for a socket
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	k, err := simkubelet.Start(lab.Fleet, dir, lab.Now)
	require.NoError(t, err)
	defer k.Stop()

	factory := gpuallocationreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"node_name": lab.Node, "socket": k.Socket(lab.Node), "auth_type": "none", "poll_interval": "1s", "timeout": "1s", "collection_interval": "1s",
		"dra": map[string]any{"enabled": false},
	}).Unmarshal(cfg))
	sink := &owned{}
	r, err := factory.CreateMetrics(t.Context(), receivertest.NewNopSettings(factory.Type()), cfg, sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, r.Shutdown(context.WithoutCancel(t.Context()))) }()

	boards := lab.Truth()
	require.Eventually(t, func() bool { _, unresolved := sink.now(); return unresolved == 2 }, patience, 20*time.Millisecond, "without nvml no instance is resolved")
	run := Start(t, Keys(lab, nil))
	instance := boards[0].UUID + "/" + strconv.Itoa(boards[0].Instances[1].ID)
	want := map[string]string{instance: "part", boards[1].UUID: "whole"}
	require.Eventually(t, func() bool {
		pods, unresolved := sink.now()
		return unresolved == 0 && assert.ObjectsAreEqual(want, pods)
	}, patience, 20*time.Millisecond)
	run.Stop()
	require.Eventually(t, func() bool { _, unresolved := sink.now(); return unresolved == 2 }, patience, 20*time.Millisecond, "as before")
}
