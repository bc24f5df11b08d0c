// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/podnames"
)

func TestKeepNames(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "llm-0", UID: "u1"},
		Status: corev1.PodStatus{
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "server", ContainerID: "containerd://aaa"}, {Name: "starting"},
				{Name: "ended", ContainerID: "containerd://bbb", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
			},
			InitContainerStatuses:      []corev1.ContainerStatus{{Name: "sidecar", ContainerID: "cri-o://ccc"}},
			EphemeralContainerStatuses: []corev1.ContainerStatus{{Name: "debug", ContainerID: "docker://ddd"}},
		},
	}
	want := podnames.Pod{UID: "u1", Namespace: "team", Name: "llm-0", Containers: map[string]string{"aaa": "server", "ccc": "sidecar", "ddd": "debug"}}
	got, ok := keepNames(pod)
	assert.True(t, ok)
	assert.Equal(t, want, got)

	pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "0123456789abcdef0123456789abcdef"}
	got, _ = keepNames(pod)
	assert.Equal(t, "0123456789abcdef0123456789abcdef", got.UID)

	_, ok = keepNames(&corev1.Pod{})
	assert.False(t, ok, "no container runs")
	_, ok = keepNames(&corev1.Node{})
	assert.False(t, ok)
}
