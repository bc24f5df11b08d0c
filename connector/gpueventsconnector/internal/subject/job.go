// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"cmp"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Job is a job of Slurm that owns a device, within a pod or not. One without an id is no job.
type Job struct {
	Cluster, ID, User, Account, Partition string
	// Namespace is that of its service, service.namespace.
	Namespace string
}

func (j Job) compare(o Job) int {
	return cmp.Or(cmp.Compare(j.Cluster, o.Cluster), cmp.Compare(j.ID, o.ID), cmp.Compare(j.User, o.User),
		cmp.Compare(j.Account, o.Account), cmp.Compare(j.Partition, o.Partition), cmp.Compare(j.Namespace, o.Namespace))
}

// Text is the field that the attribute of a resource is about, nil if it is about none.
func (j *Job) Text(key string) *string {
	switch key {
	case names.SlurmClusterName:
		return &j.Cluster
	case names.SlurmJobID:
		return &j.ID
	case names.SlurmJobUser:
		return &j.User
	case names.SlurmJobAccount:
		return &j.Account
	case names.SlurmPartition:
		return &j.Partition
	case names.ServiceNamespace:
		return &j.Namespace
	}
	return nil
}

// put writes the job as attributes. Without an id there is none.
func (j *Job) put(attrs pcommon.Map) {
	if j.ID != "" {
		event.PutTexts(attrs, names.SlurmClusterName, j.Cluster, names.SlurmJobID, j.ID, names.SlurmJobUser, j.User,
			names.SlurmJobAccount, j.Account, names.SlurmPartition, j.Partition, names.ServiceNamespace, j.Namespace)
	}
}

// Owned reports whether there is an owner.
func (o *Owner) Owned() bool { return o.Pod != "" || o.Job.ID != "" }

// Unit is what has an application: the job, else the pod; "" where there is neither.
func (o *Owner) Unit() string {
	switch {
	case o.Job.ID != "":
		return "slurm/" + o.Job.Cluster + "/" + o.Job.ID
	case o.Pod != "":
		return o.Namespace + "/" + o.Pod
	}
	return ""
}

// ServiceIn is the service of the owner, in a cluster of Kubernetes.
func (o *Owner) ServiceIn(cluster string) Service {
	if o.Job.ID != "" && o.Pod == "" {
		return Service{Cluster: cluster, Slurm: o.Job.Cluster, Namespace: o.Job.Namespace, Name: o.Service}
	}
	return Service{Cluster: cluster, Namespace: o.Namespace, Name: o.Service}
}

// String names the owner in a sentence: "job 4711 of ada (ada/train)", "pod a of service s in
// namespace n", or the job and then the pod that it is within.
func (o *Owner) String() string {
	out := ""
	if o.Job.ID != "" {
		out = "job " + event.Clean(o.Job.ID)
		if o.Job.User != "" {
			out += " of " + event.Clean(o.Job.User)
		}
		if o.Pod == "" {
			if o.Service != "" {
				out += " (" + event.Clean(o.Service) + ")"
			}
			return out
		}
		out += " in "
	}
	out += "pod " + event.Clean(o.Pod)
	if o.Service != "" && o.Service != o.Pod {
		out += " of service " + event.Clean(o.Service)
	}
	if o.Namespace != "" {
		out += " in namespace " + event.Clean(o.Namespace)
	}
	return out
}
