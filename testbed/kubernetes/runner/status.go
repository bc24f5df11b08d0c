// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// report writes the pod's status to the API server.
func (p *pod) report() {
	p.reporting.Lock()
	defer p.reporting.Unlock()
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return
	}
	status := p.status()
	p.mu.Unlock()
	patch, err := json.Marshal(map[string]any{"status": status, "metadata": map[string]any{"uid": p.spec.UID}})
	if err == nil {
		_, err = p.r.opts.Cluster.Client().CoreV1().Pods(p.spec.Namespace).Patch(context.Background(), p.spec.Name,
			types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	// A pod that was removed meanwhile, or another one under its name.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		p.r.fail("status of "+p.spec.Name, err)
	}
}

// status is called under the lock.
func (p *pod) status() corev1.PodStatus {
	status := corev1.PodStatus{
		Phase: corev1.PodPending, HostIP: "127.0.0.1", PodIP: p.address, PodIPs: []corev1.PodIP{{IP: p.address}},
		StartTime: &p.spec.CreationTimestamp,
	}
	initialized, ready, over, failed, begun := true, true, true, false, false
	for _, c := range p.spec.Spec.InitContainers {
		s := p.containerStatus(c)
		done := s.LastTerminationState.Terminated
		if done != nil && done.ExitCode == 0 {
			s.State, s.LastTerminationState, s.Ready = s.LastTerminationState, corev1.ContainerState{}, true
		} else {
			initialized = false
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, s)
	}
	for _, c := range p.spec.Spec.Containers {
		s := p.containerStatus(c)
		last := s.LastTerminationState.Terminated
		policy := p.spec.Spec.RestartPolicy
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
		condition(corev1.PodReadyToStartContainers, p.waiting == "", p.waiting),
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

func (p *pod) containerStatus(c corev1.Container) corev1.ContainerStatus {
	state := p.containers[c.Name]
	s := corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: state.ready, RestartCount: state.restarts, Started: new(state.run != nil)}
	s.LastTerminationState.Terminated = state.terminated
	if state.run != nil {
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(state.started)}
	} else {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: state.waiting, Message: state.message}
	}
	return s
}

// ready is whether all containers are, and the pod is not about to end.
func (p *pod) ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.spec.Spec.Containers {
		if !p.containers[c.Name].ready {
			return false
		}
	}
	return !p.stopping
}
