// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

func TestPods(t *testing.T) {
	t0 := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	cfg := Config{Cluster: "east"}
	got := cfg.Pods(&gpupods.Snapshot{Pods: []*gpupods.Pod{
		{
			Namespace: "shop", Name: "a", UID: "uid-1", Node: "n1", Service: "api", Phase: corev1.PodRunning, Deleted: true,
			Up: true, Started: t0, LastRun: -1, Devices: 2,
		},
		{Namespace: "shop", Name: "starts-alone", Phase: corev1.PodRunning},
		{Namespace: "shop", Name: "b", Phase: corev1.PodPending, Devices: 1},
	}})
	require.Equal(t, &summary.Pods{Cluster: "east", List: []summary.Pod{
		{Namespace: "shop", Name: "a", UID: "uid-1", Node: "n1", Service: "api", Running: true, Deleted: true, Up: true, Started: t0, LastRun: -1, Devices: 2},
		{Namespace: "shop", Name: "b", Devices: 1},
	}}, got)
}

// Pods on nodes where no agent can run are counted and not expected.
func TestUnobservedNodes(t *testing.T) {
	cfg := Config{Unobserved: []string{"virtual-kubelet-*", "fargate-1"}}
	snapshot := &gpupods.Snapshot{}
	for name, node := range map[string]string{"a": "virtual-kubelet-east", "b": "fargate-1", "c": "fargate-10", "d": "gpu-1", "e": ""} {
		snapshot.Pods = append(snapshot.Pods, &gpupods.Pod{Namespace: "shop", Name: name, Node: node, Devices: 1})
	}
	got := cfg.Pods(snapshot)
	require.Equal(t, 2, got.Unobserved)
	var names []string
	for _, p := range got.List {
		names = append(names, p.Name)
	}
	require.ElementsMatch(t, []string{"c", "d", "e"}, names)
}
