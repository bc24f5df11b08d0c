// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package owner identifies who owns a device.
package owner // import "github.com/otelcol-gpu/otelcol-gpu/internal/owner"

import (
	"cmp"
	"strings"
	"unique"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// Owner is a container of a Kubernetes pod, or the whole pod where Container is
// empty; or a job of Slurm; or, where Slurm's daemon runs in a pod, both. The zero
// Owner is no owner. Owners are equal if they are the same owner, so an Owner can be a
// map key.
//
// The pod's UID is no part of it: it may become known later than the names, and the
// owner is still the same.
type Owner struct {
	Namespace string // k8s.namespace.name
	Pod       string // k8s.pod.name
	Container string // k8s.container.name
	// Job is the zero Handle where the owner is no job.
	Job unique.Handle[Job]
}

// Job is a job of Slurm with what is constant over its life. One that becomes known under
// another service is another owner: its former series end.
type Job struct {
	Cluster   string // slurm.cluster.name
	ID        string // slurm.job.id, a number
	User      string // slurm.job.user
	Account   string // slurm.job.account
	Partition string // slurm.partition
	// Namespace and Service are service.namespace and service.name; "" until they are
	// decided.
	Namespace, Service string
}

// handle is that of a job, in memory of its own.
func (j Job) handle() unique.Handle[Job] {
	if j.ID == "" {
		return unique.Handle[Job]{}
	}
	return unique.Make(j)
}

// OfJob is the owner that is a job and no pod; none where the job has no id.
func OfJob(j Job) Owner { return Owner{Job: j.handle()} }

// Of is the owner that the k8s.* and slurm.* attributes name, as far as they do.
func Of(attrs pcommon.Map) Owner {
	return Owner{
		Namespace: points.Str(attrs, names.K8sNamespaceName),
		Pod:       points.Str(attrs, names.K8sPodName),
		Container: points.Str(attrs, names.K8sContainerName),
		Job:       JobOf(attrs).handle(),
	}
}

// JobOf is the job that the slurm.* attributes name; the zero Job where they name none. The
// service of a resource that names a pod too is the pod's.
func JobOf(attrs pcommon.Map) Job {
	id := points.Str(attrs, names.SlurmJobID)
	if id == "" {
		return Job{}
	}
	j := Job{
		Cluster: points.Str(attrs, names.SlurmClusterName), ID: id, User: points.Str(attrs, names.SlurmJobUser),
		Account: points.Str(attrs, names.SlurmJobAccount), Partition: points.Str(attrs, names.SlurmPartition),
	}
	if points.Str(attrs, names.K8sPodName) == "" {
		j.Namespace, j.Service = points.Str(attrs, names.ServiceNamespace), points.Str(attrs, names.ServiceName)
	}
	return j
}

// Put writes the attributes of o, and none for what is empty. The service of a job is not
// written where there is a pod, whose service it would hide, or a service already.
func (o Owner) Put(attrs pcommon.Map) {
	put(attrs, names.K8sNamespaceName, o.Namespace)
	put(attrs, names.K8sPodName, o.Pod)
	put(attrs, names.K8sContainerName, o.Container)
	if o.Job == (unique.Handle[Job]{}) {
		return
	}
	j := o.Job.Value()
	put(attrs, names.SlurmClusterName, j.Cluster)
	put(attrs, names.SlurmJobID, j.ID)
	put(attrs, names.SlurmJobUser, j.User)
	put(attrs, names.SlurmJobAccount, j.Account)
	put(attrs, names.SlurmPartition, j.Partition)
	if o.Pod == "" && points.Str(attrs, names.ServiceName) == "" {
		put(attrs, names.ServiceNamespace, j.Namespace)
		put(attrs, names.ServiceName, j.Service)
	}
}

func put(attrs pcommon.Map, key, value string) {
	if value != "" {
		attrs.PutStr(key, value)
	}
}

// IsZero reports whether o is no owner.
func (o Owner) IsZero() bool { return o == Owner{} }

// IsJob reports whether o is a job, in a pod or not.
func (o Owner) IsJob() bool { return o.Job != unique.Handle[Job]{} }

// TheJob is the job of o; the zero Job where it is none.
func (o Owner) TheJob() Job {
	if !o.IsJob() {
		return Job{}
	}
	return o.Job.Value()
}

// Valid reports whether o is an owner or none: a pod has a namespace and a namespace
// alone owns nothing, and neither does a container without its pod.
func (o Owner) Valid() bool {
	return (o.Pod == "") == (o.Namespace == "") && (o.Pod != "" || o.Container == "")
}

// Whole is the pod that o is a container of, without the container. A job is whole.
func (o Owner) Whole() Owner { return Owner{Namespace: o.Namespace, Pod: o.Pod, Job: o.Job} }

// SamePod reports whether o and p are of one pod, or of one job that is in no pod.
func (o Owner) SamePod(p Owner) bool {
	return o.Namespace == p.Namespace && o.Pod == p.Pod && (o.Pod != "" || o.sameJob(p))
}

// Is reports whether o and p are the same owner, whatever else is known of the job.
func (o Owner) Is(p Owner) bool {
	return o.Namespace == p.Namespace && o.Pod == p.Pod && o.Container == p.Container && o.sameJob(p)
}

func (o Owner) sameJob(p Owner) bool {
	if o.Job == p.Job {
		return true
	}
	a, b := o.TheJob(), p.TheJob()
	return a.Cluster == b.Cluster && a.ID == b.ID
}

// Compare orders owners by namespace, pod, container and job; no owner is the first.
func (o Owner) Compare(p Owner) int {
	if c := cmp.Or(cmp.Compare(o.Namespace, p.Namespace), cmp.Compare(o.Pod, p.Pod), cmp.Compare(o.Container, p.Container)); c != 0 || o.Job == p.Job {
		return c
	}
	return o.TheJob().compare(p.TheJob())
}

func (j Job) compare(o Job) int {
	return cmp.Or(
		cmp.Compare(j.Cluster, o.Cluster), cmp.Compare(j.ID, o.ID), cmp.Compare(j.Service, o.Service), cmp.Compare(j.Namespace, o.Namespace),
		cmp.Compare(j.User, o.User), cmp.Compare(j.Account, o.Account), cmp.Compare(j.Partition, o.Partition),
	)
}

// Clone is o in memory of its own, for an owner that outlives the batch that it was
// read from.
func (o Owner) Clone() Owner {
	return Owner{strings.Clone(o.Namespace), strings.Clone(o.Pod), strings.Clone(o.Container), o.Job}
}

// String is namespace/pod/container, and the job, without what is empty.
func (o Owner) String() string {
	name := strings.Trim(o.Namespace+"/"+o.Pod+"/"+o.Container, "/")
	if !o.IsJob() {
		return name
	}
	return strings.TrimLeft(name+" job "+o.TheJob().ID, " ")
}
