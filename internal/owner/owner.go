// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package owner identifies who owns a device.
package owner // import "github.com/otelcol-gpu/otelcol-gpu/internal/owner"

import (
	"cmp"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// Owner is a container of a Kubernetes pod, or the whole pod where Container is
// empty. The zero Owner is no owner. Owners are equal if they are the same owner, so
// an Owner can be a map key.
//
// The pod's UID is no part of it: it may become known later than the names, and the
// owner is still the same.
//
// A batch job of Slurm, which is known by its cluster and its id, is the second kind
// of owner. It adds fields here, and cases in this package: code outside compares
// whole Owners and leaves the attributes to Of and Put.
type Owner struct {
	Namespace string // k8s.namespace.name
	Pod       string // k8s.pod.name
	Container string // k8s.container.name
}

// Of is the owner that the k8s.* attributes name, as far as they do.
func Of(attrs pcommon.Map) Owner {
	return Owner{
		Namespace: points.Str(attrs, names.K8sNamespaceName),
		Pod:       points.Str(attrs, names.K8sPodName),
		Container: points.Str(attrs, names.K8sContainerName),
	}
}

// Put writes the attributes of o, and none for what is empty.
func (o Owner) Put(attrs pcommon.Map) {
	for _, a := range [...]struct{ key, value string }{
		{names.K8sNamespaceName, o.Namespace},
		{names.K8sPodName, o.Pod},
		{names.K8sContainerName, o.Container},
	} {
		if a.value != "" {
			attrs.PutStr(a.key, a.value)
		}
	}
}

// IsZero reports whether o is no owner.
func (o Owner) IsZero() bool { return o == Owner{} }

// Valid reports whether o is an owner or none: a pod has a namespace and a namespace
// alone owns nothing, and neither does a container without its pod.
func (o Owner) Valid() bool {
	return (o.Pod == "") == (o.Namespace == "") && (o.Pod != "" || o.Container == "")
}

// Whole is the pod that o is a container of, without the container.
func (o Owner) Whole() Owner { return Owner{Namespace: o.Namespace, Pod: o.Pod} }

// SamePod reports whether o and p are of one pod.
func (o Owner) SamePod(p Owner) bool { return o.Namespace == p.Namespace && o.Pod == p.Pod }

// Compare orders owners by namespace, pod and container; no owner is the first.
func (o Owner) Compare(p Owner) int {
	return cmp.Or(cmp.Compare(o.Namespace, p.Namespace), cmp.Compare(o.Pod, p.Pod), cmp.Compare(o.Container, p.Container))
}

// Clone is o in memory of its own, for an owner that outlives the batch that it was
// read from.
func (o Owner) Clone() Owner {
	return Owner{strings.Clone(o.Namespace), strings.Clone(o.Pod), strings.Clone(o.Container)}
}

// String is namespace/pod/container, without what is empty.
func (o Owner) String() string {
	return strings.Trim(o.Namespace+"/"+o.Pod+"/"+o.Container, "/")
}
