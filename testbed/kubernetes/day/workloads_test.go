// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package day

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

const gpu = "nvidia.com/gpu"

func labels(app string) map[string]string { return map[string]string{"app.kubernetes.io/name": app} }

// template is a pod of one container on a node that asks for n of a resource.
func template(app string, n *member, name string, count int64) corev1.PodTemplateSpec {
	limits := corev1.ResourceList{}
	if count > 0 {
		limits[corev1.ResourceName(name)] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels(app)},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelHostname: n.Name()},
			Containers:   []corev1.Container{{Name: "main", Image: "example.com/" + app, Resources: corev1.ResourceRequirements{Limits: limits}}},
		},
	}
}

// deploy creates a deployment and returns when all of its pods run.
func (w *world) deploy(name string, replicas int32, pod corev1.PodTemplateSpec) {
	w.t.Helper()
	_, err := w.Client().AppsV1().Deployments(namespace).Create(w.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}, Template: pod},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.runs(name, replicas)
}

// runs waits until so many pods of a deployment run and no other is left of it.
func (w *world) runs(name string, replicas int32) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d pods of %s", replicas, name), func(ctx context.Context) error {
		d, err := w.Client().AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := d.Status
		if s.ObservedGeneration < d.Generation || s.AvailableReplicas != replicas || s.UpdatedReplicas != replicas || s.Replicas != replicas {
			return fmt.Errorf("status: %+v", s)
		}
		return w.pods(ctx, name, int(replicas))
	})
}

// pods is an error unless there are so many pods of an app.
func (w *world) pods(ctx context.Context, app string, want int) error {
	list, err := w.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + app})
	if err != nil {
		return err
	}
	if len(list.Items) != want {
		return fmt.Errorf("%d pods of %s", len(list.Items), app)
	}
	return nil
}

func (w *world) patch(name, patch string) {
	w.t.Helper()
	_, err := w.Client().AppsV1().Deployments(namespace).Patch(w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(w.t, err)
}

func (w *world) scale(name string, replicas int32) {
	w.t.Helper()
	w.patch(name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
	w.runs(name, replicas)
}

func (w *world) rollOut(name string, replicas int32) {
	w.t.Helper()
	w.patch(name, fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"rolled-out":%q}}}}}`, time.Now()))
	w.runs(name, replicas)
}

// remove deletes a deployment and returns when its pods are gone.
func (w *world) remove(name string) {
	w.t.Helper()
	policy := metav1.DeletePropagationBackground
	require.NoError(w.t, w.Client().AppsV1().Deployments(namespace).Delete(w.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}))
	w.eventually("no pods of "+name, func(ctx context.Context) error { return w.pods(ctx, name, 0) })
}

// job creates a job of one pod that runs for a while.
func (w *world) job(name string, pod corev1.PodTemplateSpec, lasts time.Duration) {
	w.t.Helper()
	pod.Annotations = map[string]string{cluster.AnnotationCompleteAfter: lasts.String()}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := w.Client().BatchV1().Jobs(namespace).Create(w.t.Context(),
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Template: pod}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

func (w *world) completed(name string) {
	w.t.Helper()
	w.eventually("job "+name+" is complete", func(ctx context.Context) error {
		job, err := w.Client().BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && job.Status.CompletionTime == nil {
			err = errors.New("not yet")
		}
		return err
	})
}

// statefulSet creates one of a single pod.
func (w *world) statefulSet(name string, pod corev1.PodTemplateSpec) {
	w.t.Helper()
	_, err := w.Client().AppsV1().StatefulSets(namespace).Create(w.t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}, Template: pod},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// removeSet deletes a StatefulSet and returns when its pods are gone.
func (w *world) removeSet(name string) {
	w.t.Helper()
	policy := metav1.DeletePropagationBackground
	require.NoError(w.t, w.Client().AppsV1().StatefulSets(namespace).Delete(w.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}))
	w.eventually("no pods of "+name, func(ctx context.Context) error { return w.pods(ctx, name, 0) })
}

// pod creates a pod without an owner.
func (w *world) pod(name string, from corev1.PodTemplateSpec) {
	w.t.Helper()
	from.Name = name
	_, err := w.Client().CoreV1().Pods(namespace).Create(w.t.Context(), &corev1.Pod{ObjectMeta: from.ObjectMeta, Spec: from.Spec}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.running(name, "")
}

// running waits until a pod of this name runs that has not the given uid.
func (w *world) running(name string, not types.UID) (uid types.UID) {
	w.t.Helper()
	w.eventually("pod "+name+" runs", func(ctx context.Context) error {
		pod, err := w.Client().CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if uid = pod.UID; pod.Status.Phase != corev1.PodRunning || uid == not {
			return fmt.Errorf("%s %s", uid, pod.Status.Phase)
		}
		return nil
	})
	return uid
}

// deletePod deletes a pod and does not wait for it.
func (w *world) deletePod(name string) {
	w.t.Helper()
	require.NoError(w.t, w.Client().CoreV1().Pods(namespace).Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}

// held waits until so many devices of a node are held: the kubelet follows the
// scheduler in its own time.
func (w *world) held(n *member, want int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d devices of %s are held", want, n.Name()), func(context.Context) error {
		states := map[string]ownership.State{}
		n.states(w.ledger, states)
		held := 0
		for _, s := range states {
			held += min(len(s.Owners), 1)
		}
		if truth := n.Truth(); held != want || len(truth.Unserved) > 0 {
			return fmt.Errorf("%d are, unserved: %v", held, truth.Unserved)
		}
		return n.Err()
	})
}
