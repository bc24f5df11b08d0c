// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package serviceidentity

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Annotation names the service of a pod, before everything else.
const Annotation = "resource.opentelemetry.io/service.name"

// GroupLabels are the pod labels that name a group of pods which are one service
// or job together, the most specific first: LeaderWorkerSet, Ray, JobSet,
// Kubeflow and Volcano. docs/decisions/0010 explains this order.
var GroupLabels = [...]string{
	"leaderworkerset.sigs.k8s.io/name",
	"ray.io/cluster",
	"jobset.sigs.k8s.io/jobset-name",
	"training.kubeflow.org/job-name",
	"volcano.sh/job-name",
}

// Pod is what a service is read from; all of it is in the pod object itself.
type Pod struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
	// Owners are the pod's owner references, in their order.
	Owners []Owner
	// Created is the pod's creation timestamp.
	Created time.Time
}

// Owner is an owner reference. Its API group does not count: Volcano's Job is a
// Job as well.
type Owner struct {
	Kind string
	Name string
}

// FromPod is the service.name of a pod in a cluster, exactly as k8s_attributes
// followed by transform/service gives it in config/agent.yaml: the annotation;
// the first of GroupLabels; app.kubernetes.io/instance; app.kubernetes.io/name;
// the owner; the pod's own name. Empty annotations and group labels are absent
// ones. It is never empty for a pod that has a name.
func FromPod(p Pod) string {
	if v := p.Annotations[Annotation]; v != "" {
		return v
	}
	for _, key := range GroupLabels {
		if v := p.Labels[key]; v != "" {
			return v
		}
	}
	// The first of the two that is there decides, an empty one too. What it
	// then names is the pod.
	for _, key := range [...]string{"app.kubernetes.io/instance", "app.kubernetes.io/name"} {
		if v, there := p.Labels[key]; there {
			if v == "" {
				return p.Name
			}
			return v
		}
	}
	return OwnersOf(p).service
}

// Owners are the names of the workloads that a pod belongs to, as
// k8s_attributes reports them; "" where there is none.
type Owners struct {
	Deployment, StatefulSet, DaemonSet, CronJob, Job string

	// service is the name that the owners give: the pod's without any.
	service string
}

// OwnersOf reads the workloads of a pod from the pod alone. A Deployment is the
// name of the ReplicaSet without the hash that the pod's labels have; a CronJob
// that of the Job without the minute at its end, where this is within a day of
// the pod's creation. A workload of another kind owns nothing here.
func OwnersOf(p Pod) Owners {
	o := Owners{service: p.Name}
	for _, ref := range p.Owners { // the last of several owners names the service
		switch ref.Kind {
		case "ReplicaSet":
			o.service = ref.Name
			if d := deployment(ref.Name, p.Labels["pod-template-hash"]); d != "" {
				o.Deployment, o.service = d, d
			}
		case "StatefulSet":
			o.StatefulSet, o.service = ref.Name, ref.Name
		case "DaemonSet":
			o.DaemonSet, o.service = ref.Name, ref.Name
		case "Job":
			o.Job, o.service = ref.Name, ref.Name
			if c := cronJob(ref.Name, p.Created); c != "" {
				o.CronJob, o.service = c, c
			}
		}
	}
	return o
}

// deployment is the name of the Deployment of a ReplicaSet, "" without one.
func deployment(replicaSet, hash string) string {
	if hash == "" {
		return ""
	}
	name, cut := strings.CutSuffix(replicaSet, "-"+hash)
	if !cut {
		return ""
	}
	return name
}

// The Jobs of a CronJob are named after it and the minute, counted from 1970, of
// their schedule.
var scheduledJob = regexp.MustCompile(`^(.*)-(\d{8})$`)

// cronJob is the name of the CronJob of a Job, "" without one. Eight digits that
// are no minute within a day of the pod's creation are not a CronJob's, such as
// the date 20261121.
func cronJob(job string, created time.Time) string {
	parts := scheduledJob.FindStringSubmatch(job)
	if parts == nil {
		return ""
	}
	minute, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return ""
	}
	const day = 24 * 60
	if d := created.Unix()/60 - minute; d < -day || d > day {
		return ""
	}
	return parts[1]
}
