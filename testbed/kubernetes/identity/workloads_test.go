// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	annotation = "resource.opentelemetry.io/service.name"
	instance   = "app.kubernetes.io/instance"
	app        = "app.kubernetes.io/name"
	lws        = "leaderworkerset.sigs.k8s.io/name"
	ray        = "ray.io/cluster"
	jobset     = "jobset.sigs.k8s.io/jobset-name"
	kubeflow   = "training.kubeflow.org/job-name"
	volcano    = "volcano.sh/job-name"
)

// namespaces are where pods are created.
var namespaces = []string{"inference", "007", "a--b", strings.Repeat("n", 63)}

type labels = map[string]string

// meta is what a pod or a pod template reports of itself.
type meta struct {
	labels      labels
	annotations labels
}

// metas are the combinations of labels and annotations that the rules are about
// apart, by a name that workloads can be named after.
var metas = map[string]meta{
	"plain":        {},
	"instance":     {labels: labels{instance: "the-instance", app: "the-name"}},
	"name":         {labels: labels{app: "the-name", "app": "not-this"}},
	"no-instance":  {labels: labels{instance: "", app: "the-name"}},
	"no-name":      {labels: labels{app: ""}},
	"said":         {labels: labels{instance: "the-instance", lws: "the-lws"}, annotations: labels{annotation: "Größe des Modells / 模型"}},
	"said-empty":   {labels: labels{instance: "the-instance"}, annotations: labels{annotation: ""}},
	"said-blank":   {annotations: labels{annotation: " \n"}},
	"said-long":    {annotations: labels{annotation: strings.Repeat("long ", 1000)}},
	"lws":          {labels: labels{lws: "the-lws", ray: "the-ray", jobset: "the-jobset", kubeflow: "the-kubeflow", volcano: "the-volcano", app: "kuberay"}},
	"ray":          {labels: labels{ray: "the-ray", jobset: "the-jobset", kubeflow: "the-kubeflow", volcano: "the-volcano", app: "kuberay"}},
	"jobset":       {labels: labels{jobset: "the-jobset", kubeflow: "the-kubeflow", volcano: "the-volcano", instance: "release"}},
	"kubeflow":     {labels: labels{kubeflow: "the-kubeflow", volcano: "the-volcano"}},
	"volcano":      {labels: labels{volcano: "The_Volcano.1"}},
	"group-empty":  {labels: labels{lws: "", ray: "the-ray"}},
	"wrong-hash":   {labels: labels{"pod-template-hash": "x"}},
	"other-labels": {labels: labels{"ray.io/group": "workers", "k8s-app": "x", "team": "blue"}},
}

// create makes pods of every kind in two namespaces and returns how many.
func create(ctx context.Context, t *testing.T, client kubernetes.Interface) int {
	t.Helper()
	ns := namespaces[0]
	one, count := int32(1), 0
	spec := spec()
	template := func(name string, m meta) (corev1.PodTemplateSpec, *metav1.LabelSelector) {
		l := labels{"test": name}
		for k, v := range m.labels {
			l[k] = v
		}
		return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: l, Annotations: m.annotations}, Spec: spec},
			&metav1.LabelSelector{MatchLabels: labels{"test": name}}
	}
	pod := func(namespace, name string, m meta, owners ...metav1.OwnerReference) {
		_, err := client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: m.labels, Annotations: m.annotations, OwnerReferences: owners},
			Spec:       spec,
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		count++
	}
	// An owner of a kind that the API server does not know.
	custom := func(apiVersion, kind, name string) metav1.OwnerReference {
		yes := true
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(kind + "-" + name), Controller: &yes}
	}
	deployment := func(name string, m meta, replicas int32) {
		tpl, selector := template(fmt.Sprintf("deployment-%d", count), m)
		_, err := client.AppsV1().Deployments(ns).Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: tpl}}, metav1.CreateOptions{})
		require.NoError(t, err)
		count += int(replicas)
	}

	for name, m := range metas {
		pod(ns, name, m)
		if name != "wrong-hash" { // the controller would take it for its own
			deployment("d-"+name, m, 1)
		}
	}
	deployment("three", metas["plain"], 3)
	deployment("ends-with-abc-12345678", metas["plain"], 1)
	deployment(strings.Repeat("long-", 40)+"name", metas["plain"], 1)

	tpl, selector := template("replicaset", metas["plain"])
	_, err := client.AppsV1().ReplicaSets(ns).Create(ctx, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "replicaset-5f7"},
		Spec: appsv1.ReplicaSetSpec{Replicas: &one, Selector: selector, Template: tpl}}, metav1.CreateOptions{})
	require.NoError(t, err)
	count++

	// The groups of a LeaderWorkerSet are StatefulSets of their own.
	for name, m := range map[string]meta{"db": metas["plain"], "llama": {labels: labels{lws: "llama"}}, "llama-0": {labels: labels{lws: "llama"}}} {
		tpl, selector := template("statefulset-"+name, m)
		two := int32(2)
		_, err := client.AppsV1().StatefulSets(ns).Create(ctx, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.StatefulSetSpec{Replicas: &two, Selector: selector, Template: tpl, PodManagementPolicy: appsv1.ParallelPodManagement}}, metav1.CreateOptions{})
		require.NoError(t, err)
		count += 2
	}

	tpl, selector = template("daemonset", metas["plain"])
	_, err = client.AppsV1().DaemonSets(ns).Create(ctx, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "daemon"},
		Spec: appsv1.DaemonSetSpec{Selector: selector, Template: tpl}}, metav1.CreateOptions{})
	require.NoError(t, err)
	count++

	cron, err := client.BatchV1().CronJobs(ns).Create(ctx, &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "nightly"},
		Spec: batchv1.CronJobSpec{Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: job(spec, meta{})}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	byCron := []metav1.OwnerReference{*metav1.NewControllerRef(cron, batchv1.SchemeGroupVersion.WithKind("CronJob"))}
	minute := time.Now().Unix() / 60
	for name, owners := range map[string][]metav1.OwnerReference{
		"train": nil, "train-20260728": nil, "train-1234567": nil,
		fmt.Sprintf("nightly-%d", minute): byCron, // as the CronJob controller names it
	} {
		_, err := client.BatchV1().Jobs(ns).Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners},
			Spec: job(spec, meta{})}, metav1.CreateOptions{})
		require.NoError(t, err)
		count++
	}
	_, err = client.BatchV1().Jobs(ns).Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "set-workers-0"},
		Spec: job(spec, meta{labels: labels{jobset: "set"}})}, metav1.CreateOptions{})
	require.NoError(t, err)
	count++

	pod(ns, "torch-worker-0", meta{labels: labels{kubeflow: "torch"}}, custom("kubeflow.org/v1", "PyTorchJob", "torch"))
	pod(ns, "torch-unlabelled", meta{}, custom("kubeflow.org/v1", "PyTorchJob", "torch"))
	pod(ns, "ray-head", meta{labels: labels{ray: "llama-ray", app: "kuberay"}}, custom("ray.io/v1", "RayCluster", "llama-ray"))
	pod(ns, "leader", meta{labels: labels{lws: "leader"}}, custom("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leader"))
	pod(ns, "volcano-0", meta{labels: labels{volcano: "vj"}}, custom("batch.volcano.sh/v1alpha1", "Job", "vj"))
	pod(ns, "volcano-unlabelled", meta{}, custom("batch.volcano.sh/v1alpha1", "Job", "vj"))
	set, err := client.AppsV1().StatefulSets(ns).Get(ctx, "db", metav1.GetOptions{})
	require.NoError(t, err)
	pod(ns, "two-owners", meta{}, metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: set.UID},
		custom("example.com/v1", "DaemonSet", "not-apps"))

	for _, namespace := range namespaces[1:] {
		pod(namespace, "plain", metas["plain"]) // the same name in another namespace
		pod(namespace, "dots.and-dashes.0", metas["instance"])
	}
	pod(ns, strings.Repeat("p", 253), metas["plain"])
	pod(ns, "jaeger-agent-x", metas["plain"])
	return count
}

func spec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}}
}

func job(spec corev1.PodSpec, m meta) batchv1.JobSpec {
	spec.RestartPolicy = corev1.RestartPolicyNever
	return batchv1.JobSpec{Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: m.labels, Annotations: m.annotations}, Spec: spec,
	}}
}
