// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster turns the pods of a Kubernetes cluster that ask for an accelerator
// into those that the summary expects.
package cluster

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

// Config is which pods are expected.
type Config struct {
	Cluster    string   // k8s.cluster.name of the pods' telemetry
	Unobserved []string // nodes on which no pods are expected: names, or beginnings with "*"
}

// Pods are the pods of a snapshot that telemetry is expected of.
func (c *Config) Pods(snapshot *gpupods.Snapshot) *summary.Pods {
	out := &summary.Pods{Cluster: c.Cluster}
	for _, p := range snapshot.Pods {
		switch {
		case p.Devices == 0:
		case c.unobserved(p.Node):
			out.Unobserved++
		default:
			out.List = append(out.List, podOf(p))
		}
	}
	return out
}

func podOf(p *gpupods.Pod) summary.Pod {
	return summary.Pod{
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, Node: p.Node, Service: p.Service,
		Running: p.Phase == corev1.PodRunning, Deleted: p.Deleted,
		Up: p.Up, Started: p.Started, LastRun: p.LastRun, Devices: p.Devices,
	}
}

// unobserved reports whether no agent can run on the node.
func (c *Config) unobserved(node string) bool {
	return node != "" && slices.ContainsFunc(c.Unobserved, func(pattern string) bool {
		beginning, wild := strings.CutSuffix(pattern, "*")
		return node == pattern || wild && strings.HasPrefix(node, beginning)
	})
}
