// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// statusOf is the status of a pod at an address from what is known of its containers;
// waiting is for what the pod waits before they run.
func statusOf(pod *corev1.Pod, address, waiting string, containers map[string]*container) corev1.PodStatus {
	status := corev1.PodStatus{
		Phase: corev1.PodPending, HostIP: "127.0.0.1", PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		StartTime: &pod.CreationTimestamp,
	}
	initialized, ready, over, failed, begun := true, true, true, false, false
	for _, c := range pod.Spec.InitContainers {
		s := containers[c.Name].status(c)
		done := s.LastTerminationState.Terminated
		if done != nil && done.ExitCode == 0 {
			s.State, s.LastTerminationState, s.Ready = s.LastTerminationState, corev1.ContainerState{}, true
		} else {
			initialized = false
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, s)
	}
	for _, c := range pod.Spec.Containers {
		s := containers[c.Name].status(c)
		last := s.LastTerminationState.Terminated
		policy := pod.Spec.RestartPolicy
		if last != nil && s.State.Running == nil && (policy == corev1.RestartPolicyNever || policy == corev1.RestartPolicyOnFailure && last.ExitCode == 0) {
			s.State, s.LastTerminationState, s.RestartCount = s.LastTerminationState, corev1.ContainerState{}, 0
			failed = failed || last.ExitCode != 0
		} else {
			over = false
		}
		begun = begun || s.State.Running != nil || s.RestartCount > 0
		ready = ready && s.Ready
		status.ContainerStatuses = append(status.ContainerStatuses, s)
	}
	switch {
	case over && failed:
		status.Phase = corev1.PodFailed
	case over:
		status.Phase = corev1.PodSucceeded
	case begun:
		status.Phase = corev1.PodRunning
	}
	status.Conditions = []corev1.PodCondition{
		condition(corev1.PodReadyToStartContainers, waiting == "", waiting),
		condition(corev1.PodInitialized, initialized, ""),
		condition(corev1.ContainersReady, ready, ""),
		condition(corev1.PodReady, ready, ""),
	}
	return status
}

func condition(kind corev1.PodConditionType, is bool, message string) corev1.PodCondition {
	c := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, Message: message, LastTransitionTime: metav1.Now()}
	if is {
		c.Status = corev1.ConditionTrue
	}
	return c
}

func (state *container) status(c corev1.Container) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: state.ready, RestartCount: state.restarts, Started: new(state.run != nil)}
	s.LastTerminationState.Terminated = state.terminated
	if state.run != nil {
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(state.started)}
	} else {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: state.waiting, Message: state.message}
	}
	return s
}
