// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8swatch"
	"github.com/otelcol-gpu/otelcol-gpu/internal/podnames"
)

// followPods follows the names of the node's pods, for a receiver of this process that has
// their uids alone.
func (k *API) followPods(ctx context.Context, registry *podnames.Registry) {
	var store *k8swatch.Store[podnames.Pod]
	store = k8swatch.New(k8swatch.Config[podnames.Pod]{Keep: keepNames, Changed: func() {
		var all []podnames.Pod
		store.Each(func(_ types.NamespacedName, p podnames.Pod) { all = append(all, p) })
		registry.Publish(all)
	}})
	defer registry.Publish(nil)
	pods := k.core.Pods(metav1.NamespaceAll)
	store.Run(ctx, &k8swatch.Source{
		Kind: &corev1.Pod{},
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) },
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return pods.Watch(ctx, o)
		},
		Selector: fields.OneTermEqualSelector("spec.nodeName", k.cfg.Node).String(),
		Requests: k.tel.requests(podNames),
	})
}

// keepNames keeps pods with a running container, whose id is containerd://<id> or the like.
func keepNames(obj any) (podnames.Pod, bool) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return podnames.Pod{}, false
	}
	p := podnames.Pod{UID: uidOf(pod), Namespace: pod.Namespace, Name: pod.Name, Containers: map[string]string{}}
	for _, statuses := range [...][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses} {
		for i := range statuses {
			if _, id, found := strings.Cut(statuses[i].ContainerID, "://"); found && statuses[i].State.Terminated == nil {
				p.Containers[id] = statuses[i].Name
			}
		}
	}
	return p, len(p.Containers) > 0
}

// uidOf is the uid in the control groups of the pod: of a static pod the hash of its file,
// which is not its uid in the API.
func uidOf(pod *corev1.Pod) string {
	if hash := pod.Annotations[corev1.MirrorPodAnnotationKey]; hash != "" {
		return hash
	}
	return string(pod.UID)
}
