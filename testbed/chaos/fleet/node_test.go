// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/history"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

func newNode(t *testing.T, config gpusim.Node) *Node {
	t.Helper()
	gpus, err := gpusim.New(gpusim.Config{Nodes: []gpusim.Node{config}}, time.Now)
	require.NoError(t, err)
	ports, err := collector.Free(1)
	require.NoError(t, err)
	api, err := kubeapi.Serve(kubeapi.New(""), collector.Address(ports[0]))
	require.NoError(t, err)
	t.Cleanup(api.Close)
	f := &Fleet{API: api, Ledger: ownership.NewLedger(), History: &history.History{}}
	n := &Node{Name: config.Name, GPUs: gpus, Kubelet: kubelet.New(kubelet.Options{}), fleet: f, replicas: 1}
	require.NoError(t, n.change(n.announce))
	return n
}

// held is who has each device by the ledger, and by the simulated GPUs.
func held(n *Node) (ledger, simulated map[string]string) {
	ledger, simulated = map[string]string{}, map[string]string{}
	for id, s := range n.fleet.Ledger.Now() {
		if len(s.Owners) == 1 {
			ledger[id] = s.Owners[0].Pod
		}
	}
	for _, node := range n.GPUs.TruthAt(time.Now()).Nodes {
		for _, d := range node.Devices {
			if d.Pod != "" && len(d.Sharers) == 0 {
				simulated[d.ID] = d.Pod
			}
			for _, s := range d.Sharers {
				simulated[kubelet.ReplicaID(d.ID, s.Replica)] = s.Pod
			}
		}
	}
	return ledger, simulated
}

// Kubelet, GPUs, API server, ledger and history agree, whatever is changed.
func TestNode(t *testing.T) {
	n := newNode(t, gpusim.Node{Name: "a", Version: "4.6", Model: "A100-SXM4-80GB", Devices: 2, MIG: map[string][]string{"1": Layouts[0]}})
	pod1 := &Pod{Name: "one", UID: NewUID(), Service: "s", Resource: GPU, Count: 1, Load: gpusim.Training}
	pod2 := &Pod{Name: "two", UID: NewUID(), Service: "s", Resource: "nvidia.com/mig-3g.40gb", Count: 1, Load: gpusim.Training}
	agree := func(pods ...string) {
		t.Helper()
		ledger, simulated := held(n)
		assert.Equal(t, ledger, simulated)
		var got []string
		for _, pod := range ledger {
			got = append(got, pod)
		}
		assert.ElementsMatch(t, pods, got)
		assert.Equal(t, len(pods), n.fleet.History.Services()["s"])
		for _, pod := range pods {
			assert.True(t, n.fleet.API.Has("pods", Namespace, pod), pod)
		}
	}
	require.NoError(t, n.Place(pod1))
	require.NoError(t, n.Place(pod2))
	agree("one", "two")
	assert.Zero(t, n.Free(GPU))
	assert.Equal(t, 2, n.Free("nvidia.com/mig-1g.10gb"))
	require.NoError(t, n.Replace("one", &Pod{Name: "three", UID: NewUID(), Service: "s", Resource: GPU, Count: 1, Load: gpusim.Idle}))
	agree("three", "two")
	for _, layout := range Layouts {
		require.NoError(t, n.reshape(0, func() error { return n.GPUs.SetMIG("a", 1, layout) }))
		agree("three", "two")
	}
}

func TestNodeWithShares(t *testing.T) {
	n := newNode(t, gpusim.Node{Name: "a", Version: "4.6", Model: "H100", Devices: 2})
	require.NoError(t, n.reshape(0, func() error { n.replicas = 2; return nil }))
	for i := range 3 {
		require.NoError(t, n.Place(&Pod{Name: "p" + strconv.Itoa(i), UID: NewUID(), Service: "s", Resource: GPU, Count: 1, Load: gpusim.Training}))
	}
	ledger, simulated := held(n)
	assert.Equal(t, ledger, simulated)
	assert.Len(t, ledger, 3)
	assert.Equal(t, 1, n.Free(GPU))
	assert.ErrorContains(t, n.Place(&Pod{Name: "big", UID: NewUID(), Service: "s", Resource: GPU, Count: 2, Load: gpusim.Idle}), "are free")
}
