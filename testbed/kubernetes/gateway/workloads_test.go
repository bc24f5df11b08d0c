// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const lws = "leaderworkerset.sigs.k8s.io/name"

// template is a pod that asks for one GPU; its owner decides its service.
func template(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"test": app}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "example.com/" + app, Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(1, resource.DecimalSI)},
			}}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"test": app}},
			}},
		},
	}
}

func selector(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"test": app}}
}

// exporters puts a pod of an exporter on every node that has some labels, in the node's
// network: its address is the node's, where the simulated exporter is. Its name is the
// value of the label by which it is found.
func (w *world) exporters(name, label string, on map[string]string) {
	w.t.Helper()
	require.NoError(w.t, w.CreateNamespace(w.t.Context(), name))
	labels := map[string]string{label: name}
	_, err := w.Client().AppsV1().DaemonSets(name).Create(w.t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{HostNetwork: true, NodeSelector: on, Containers: []corev1.Container{
					{Name: name, Image: "example.com/" + name},
				}},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// workloads creates the Deployment chat of four pods, two on each node, and one
// pod each of a StatefulSet, a Job and a LeaderWorkerSet, and returns the service
// of each pod by the pod's name.
func (w *world) workloads() map[string]string {
	w.t.Helper()
	ctx, client, four := w.t.Context(), w.Client(), int32(4)
	_, err := client.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "chat"},
		Spec:       appsv1.DeploymentSpec{Replicas: &four, Selector: selector("chat"), Template: template("chat")},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	_, err = client.AppsV1().StatefulSets(namespace).Create(ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec:       appsv1.StatefulSetSpec{Selector: selector("db"), Template: template("db")},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	job := template("train")
	job.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err = client.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "train"}, Spec: batchv1.JobSpec{Template: job},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	// The groups of a LeaderWorkerSet are StatefulSets named after its leaders.
	group := template("llama-0")
	group.Labels[lws] = "llama"
	_, err = client.AppsV1().StatefulSets(namespace).Create(ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "llama-0"},
		Spec:       appsv1.StatefulSetSpec{Selector: selector("llama-0"), Template: group},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)

	service := map[string]string{"chat": "chat", "db": "db", "train": "train", "llama-0": "llama"}
	var pods map[string]string
	w.eventually("all pods run", func(ctx context.Context) error {
		list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		pods = map[string]string{}
		for _, pod := range list.Items {
			if pod.Status.Phase == corev1.PodRunning {
				pods[pod.Name] = service[pod.Labels["test"]]
			}
		}
		if len(pods) != 7 {
			return fmt.Errorf("%d of %d run", len(pods), len(list.Items))
		}
		return nil
	})
	return pods
}
