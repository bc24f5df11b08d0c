// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const inference = "inference" // the namespace of workloads

// template is a pod that asks for one GPU.
func template(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"test": app}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "example.com/" + app, Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(1, resource.DecimalSI)},
			}}},
			// Else a node without GPUs would count as one to spread over.
			NodeSelector: map[string]string{"nvidia.com/gpu.present": "true"},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"test": app}},
			}},
		},
	}
}

// workloads creates the Deployment chat of four pods and the Job train of one.
func (w *world) workloads() {
	w.t.Helper()
	require.NoError(w.t, w.CreateNamespace(w.t.Context(), inference))
	_, err := w.Client().AppsV1().Deployments(inference).Create(w.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "chat"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(4)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"test": "chat"}}, Template: template("chat"),
		},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	job := template("train")
	job.Spec.RestartPolicy = corev1.RestartPolicyNever
	// The first node is not the one that is lost: a Job would count its pod as failed.
	job.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "gpu-a"}
	_, err = w.Client().BatchV1().Jobs(inference).Create(w.t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "train"}, Spec: batchv1.JobSpec{Template: job},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// exporters puts a dcgm-exporter on every GPU node, as gpu-operator does.
func (w *world) exporters() {
	w.t.Helper()
	require.NoError(w.t, w.CreateNamespace(w.t.Context(), "gpu-operator"))
	// The second label is for the runner.
	labels := map[string]string{"app": "nvidia-dcgm-exporter", "app.kubernetes.io/name": "dcgm-exporter"}
	_, err := w.Client().AppsV1().DaemonSets("gpu-operator").Create(w.t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "nvidia-dcgm-exporter"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"nvidia.com/gpu.present": "true"},
					Containers: []corev1.Container{{
						Name: "nvidia-dcgm-exporter", Image: "nvcr.io/nvidia/k8s/dcgm-exporter:4.6", Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9400}},
					}},
				},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}
