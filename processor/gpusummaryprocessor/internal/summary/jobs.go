// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// A job of Slurm on one node is to its service what a pod is. It is kept as one: its cluster
// is that of Kubernetes' names together with that of Slurm, its namespace the account, and its
// name the job's id with the node. No name of Kubernetes has the character between them.
const between = "\x00"

// job is what a resource has of a job.
type job struct{ cluster, id, namespace string }

// unit is the key of the job on the node of src; false where the job's service was not
// decided yet: its devices are nobody's until then.
func (src *source) unit(j job) (podKey, bool) {
	if j.id == "" || src.service == "" || j.namespace == "" {
		return podKey{cluster: src.pod.cluster}, false
	}
	return podKey{src.pod.cluster + between + j.cluster, j.namespace, j.id + between + src.node}, true
}

// isJob reports whether the cluster of a key is one of Slurm.
func isJob(cluster string) bool { return strings.Contains(cluster, between) }

// inKubernetes is the cluster under which devices and nodes are known.
func inKubernetes(cluster string) string {
	cluster, _, _ = strings.Cut(cluster, between)
	return cluster
}

// nested reports whether a point of gpu.allocation is of a job within a pod: the pod has
// points of its own.
func nested(dp pmetric.NumberDataPoint) bool {
	v, ok := dp.Attributes().Get(names.GPUAllocationNested)
	return ok && v.Bool()
}

// putJobService writes the identity of a service on Slurm.
func putJobService(attrs pcommon.Map, key serviceKey) {
	cluster, slurm, _ := strings.Cut(key.cluster, between)
	if cluster != "" {
		attrs.PutStr(names.K8sClusterName, cluster)
	}
	attrs.PutStr(names.SlurmClusterName, slurm)
	attrs.PutStr(names.ServiceNamespace, key.namespace)
	attrs.PutStr(names.ServiceName, key.name)
}

// putUnit writes what distinguishes a pod of a service, or a job on a node, from the others.
func putUnit(attrs pcommon.Map, name string) {
	id, node, isJob := strings.Cut(name, between)
	if !isJob {
		attrs.PutStr(names.K8sPodName, name)
		return
	}
	attrs.PutStr(names.SlurmJobID, id)
	if node != "" {
		attrs.PutStr(names.K8sNodeName, node)
	}
}

// readable is the name of a pod, or of a job on a node, in a message.
func readable(name string) string {
	id, node, isJob := strings.Cut(name, between)
	if !isJob {
		return name
	}
	return "job " + id + " on " + node
}
