// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Node is a node in a cluster; both are empty outside of Kubernetes.
type Node struct{ Cluster, Name string }

// About makes the node the subject of an event.
func (n Node) About(ev *event.Event) {
	ev.Key = event.Key(ev.Name, n.Cluster, n.Name)
	ev.Resource = n.Identify
}

// Identify writes the node as the attributes of a resource.
func (n Node) Identify(attrs pcommon.Map) {
	event.PutTexts(attrs, names.K8sClusterName, n.Cluster, names.K8sNodeName, n.Name)
}

// String names the node in a sentence.
func (n Node) String() string {
	out := "Node " + event.Clean(n.Name)
	if n.Cluster != "" {
		out += " of cluster " + event.Clean(n.Cluster)
	}
	return out
}
