// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Service is a service in a namespace of a cluster. On Slurm, whose cluster is Slurm, the
// namespace is service.namespace: the account.
type Service struct{ Cluster, Slurm, Namespace, Name string }

// About makes the service the subject of an event.
func (s Service) About(ev *event.Event) {
	key := []string{s.Cluster, s.Namespace, s.Name}
	if s.Slurm != "" {
		key = append(key, s.Slurm)
	}
	ev.Key = event.Key(ev.Name, key...)
	ev.Resource = s.Put
}

// Put writes the identity as attributes.
func (s Service) Put(attrs pcommon.Map) {
	namespace := names.K8sNamespaceName
	if s.Slurm != "" {
		namespace = names.ServiceNamespace
	}
	event.PutTexts(attrs, names.K8sClusterName, s.Cluster, names.SlurmClusterName, s.Slurm, namespace, s.Namespace, names.ServiceName, s.Name)
}

// Units are what the service consists of.
func (s Service) Units() string {
	if s.Slurm != "" {
		return "jobs"
	}
	return "pods"
}

// String names the service in a sentence.
func (s Service) String() string {
	out := "Service " + event.Clean(s.Name)
	switch {
	case s.Slurm != "":
		if s.Namespace != "" {
			out += " of account " + event.Clean(s.Namespace)
		}
		out += " on Slurm's cluster " + event.Clean(s.Slurm)
	case s.Namespace != "":
		out += " in namespace " + event.Clean(s.Namespace)
	}
	if s.Cluster != "" {
		out += " of cluster " + event.Clean(s.Cluster)
	}
	return out
}
