// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Service is a service in a namespace of a cluster.
type Service struct{ Cluster, Namespace, Name string }

// About makes the service the subject of an event.
func (s Service) About(ev *event.Event) {
	ev.Key = event.Key(ev.Name, s.Cluster, s.Namespace, s.Name)
	ev.Resource = s.Put
}

// Put writes the identity as attributes.
func (s Service) Put(attrs pcommon.Map) {
	event.PutTexts(attrs, names.K8sClusterName, s.Cluster, names.K8sNamespaceName, s.Namespace, names.ServiceName, s.Name)
}

// String names the service in a sentence.
func (s Service) String() string {
	out := "Service " + event.Clean(s.Name)
	if s.Namespace != "" {
		out += " in namespace " + event.Clean(s.Namespace)
	}
	if s.Cluster != "" {
		out += " of cluster " + event.Clean(s.Cluster)
	}
	return out
}
