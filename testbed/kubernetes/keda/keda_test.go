// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	label = "app.kubernetes.io/name" // of pods that play runs; KWOK runs those with app

	// What the example has for minReplicaCount, pods that 60 requests need, and what it
	// has for maxReplicaCount.
	least = 2
	busy  = 4
	most  = 8
)

// calm is a load of the least number of pods.
var calm = load{requests: 20, slots: 20}

func TestInference(t *testing.T) {
	w := start(t)
	engines := []*served{
		{name: "vllm", kind: "vllm-0.11", image: "vllm/vllm-openai:v0.11.0"},
		{name: "sglang", kind: "sglang-0.5", image: "lmsysorg/sglang:v0.5.3"},
		{
			name: "tgi", kind: "tgi-3", image: "ghcr.io/huggingface/text-generation-inference:3.3.5",
			port: corev1.ContainerPort{Name: "http", ContainerPort: 3000}, // its own takes root
		},
	}
	// Loads of few requests under which pods are saturated, and with how many pods the
	// autoscaler stops adding and removing: it tolerates a tenth.
	saturated := []struct {
		service
		pressed  load
		from, to int32
	}{
		{service{name: "full"}, load{requests: 30, slots: 20, kv: 0.06}, 3, 3},
		{service{name: "queue"}, load{requests: 30, slots: 1}, 4, 6},
	}
	// The example without what keeps the number of pods.
	mutants := []struct {
		service
		mutate func(string) string
	}{
		{service{name: "unguarded"}, func(text string) string {
			return regexp.MustCompile(`(?m)^ *unless on .*\n`).ReplaceAllString(text, "")
		}},
		{service{name: "null-is-zero"}, func(text string) string {
			return strings.ReplaceAll(text, `ignoreNullValues: "false"`, `ignoreNullValues: "true"`)
		}},
	}
	for _, s := range engines {
		w.deploy(s.name, label, corev1.Container{Image: s.image, Ports: []corev1.ContainerPort{s.port}})
	}
	w.play(engines)
	var fed []*service
	for i := range saturated {
		fed = append(fed, &saturated[i].service)
	}
	for i := range mutants {
		fed = append(fed, &mutants[i].service)
	}
	for _, s := range fed {
		s.set(calm)
		w.deploy(s.name, "app", corev1.Container{Image: "example.com/engine"})
	}
	w.feed(fed)
	// The subtests end before the cluster does.
	t.Run("services", func(t *testing.T) {
		for _, s := range engines {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				w.scale(t, s.name, nil)
				s.set(20, 0) // a request takes three seconds or four
				w.becomes(t, s.name, busy, most, s.check)
				// Without any page no pod is added that would have one.
				s.set(20, 1)
				w.unanswered(t, s.name)
				pods := w.steady(t, s.name)
				// The pages that are there report less than one pod could do.
				w.holds(t, s.name, func() {
					s.set(0, 0.25)
					w.knows(t, s, pods)
				})
				s.set(0, 0)
				w.becomes(t, s.name, least, least, s.check)
			})
		}
		for i := range saturated {
			s := &saturated[i]
			becomes := func(t *testing.T, l load, from, to int32) {
				s.set(l)
				w.becomes(t, s.name, from, to, l.check)
			}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				w.scale(t, s.name, nil)
				becomes(t, calm, least, least)
				w.holds(t, s.name, func() { s.set(load{requests: 60, slots: 20, partial: true}) })
				becomes(t, s.pressed, s.from, s.to)
				becomes(t, calm, least, least)
			})
		}
		for i := range mutants {
			s := &mutants[i].service
			becomes := func(t *testing.T, l load, pods int32) {
				s.set(l)
				w.becomes(t, s.name, pods, pods, l.check)
			}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				w.scale(t, s.name, mutants[i].mutate)
				becomes(t, load{requests: 60, slots: 20, kv: 0.02}, busy)
				becomes(t, load{requests: 0, slots: 20, kv: 0.02, missing: busy / 4}, least)
			})
		}
	})
}

// deploy creates a service's Deployment, with the least number of pods.
func (w *world) deploy(service, label string, engine corev1.Container) {
	w.story.Helper()
	labels, replicas := map[string]string{label: service}, int32(least)
	engine.Name = "server"
	engine.Ports = slices.DeleteFunc(engine.Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == 0 })
	_, err := w.Client().AppsV1().Deployments(namespace).Create(w.story.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: service},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{engine}},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(w.story, err)
}

// scale applies the example to a service, with seconds for its minutes of patience, with
// the server of this test, and with mutate's changes, if there are any.
func (w *world) scale(t *testing.T, service string, mutate func(string) string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "examples", "keda", "inference.yaml"))
	require.NoError(t, err)
	example := string(text)
	if mutate != nil {
		example = mutate(example)
		require.NotEqual(t, string(text), example)
	}
	const server = "http://otelcol-gpu-gateway.otelcol-gpu:9090"
	require.Equal(t, 2, strings.Count(example, server))
	example = strings.NewReplacer("llama", service, server, w.server.url).Replace(example)
	// What new pods change must be known before the next step, as in the example.
	windows, periods := regexp.MustCompile(`stabilizationWindowSeconds: \d+`), regexp.MustCompile(`periodSeconds: \d+`)
	require.Len(t, windows.FindAllString(example, -1), 2)
	require.Len(t, periods.FindAllString(example, -1), 2)
	example = windows.ReplaceAllString(example, "stabilizationWindowSeconds: 0")
	example = periods.ReplaceAllString(example, "periodSeconds: 3")
	// Services share a TriggerAuthentication: of two kubectl that find none and create
	// it, one fails.
	w.applying.Lock()
	defer w.applying.Unlock()
	w.kubectl(t, example, "apply", "-f", "-")
}

// becomes waits until the autoscaler has measured what check allows with a number of
// pods, from one to another, and leaves that number as it is.
func (w *world) becomes(t *testing.T, service string, from, to int32, check func(pods int32, demand, saturation float64) error) {
	t.Helper()
	w.eventually(t, fmt.Sprintf("%d to %d pods of %s", from, to, service), func(ctx context.Context) error {
		d, err := w.deployment(ctx, service)
		if err != nil {
			return err
		}
		hpa, err := w.autoscaler(ctx, service)
		if err != nil {
			return err
		}
		n, at := *d.Spec.Replicas, hpa.Status
		if n < from || n > to || !whole(d) || at.CurrentReplicas != n || at.DesiredReplicas != n {
			return fmt.Errorf("%d pods wanted, %d there, %d ready; the autoscaler has found %d and wants %d: %v", n, d.Status.Replicas, d.Status.ReadyReplicas, at.CurrentReplicas, at.DesiredReplicas, scaling(hpa))
		}
		demand, saturation, err := measured(hpa)
		if err != nil {
			return err
		}
		return check(n, demand, saturation)
	})
}

// steady waits until all pods of a service are there, and returns how many.
func (w *world) steady(t *testing.T, service string) (pods int) {
	t.Helper()
	w.eventually(t, "all pods of "+service, func(ctx context.Context) error {
		d, err := w.deployment(ctx, service)
		if err == nil && !whole(d) {
			err = fmt.Errorf("%d pods wanted, %d there, %d ready", *d.Spec.Replicas, d.Status.Replicas, d.Status.ReadyReplicas)
		}
		if err == nil {
			pods = int(*d.Spec.Replicas)
		}
		return err
	})
	return pods
}

// holds does what must not change a service's number of pods, waits until KEDA has asked
// often after it, and fails if the number was changed meanwhile, even if it was changed
// back.
func (w *world) holds(t *testing.T, service string, do func()) {
	t.Helper()
	before, err := w.deployment(t.Context(), service)
	require.NoError(t, err)
	do()
	w.unanswered(t, service)
	after, err := w.deployment(t.Context(), service)
	require.NoError(t, err)
	if before.Generation != after.Generation {
		w.logs(t)
		t.Errorf("the number of pods of %s was changed: it was %d and is %d", service, *before.Spec.Replicas, *after.Spec.Replicas)
	}
}

// unanswered waits until both of KEDA's queries about a service have often had no answer,
// and its autoscaler no number.
func (w *world) unanswered(t *testing.T, service string) {
	t.Helper()
	const often = 8
	asked := w.server.answeredEmpty(service)
	w.eventually(t, "questions about "+service+" without an answer", func(ctx context.Context) error {
		now := w.server.answeredEmpty(service)
		if len(now) != 2 { // triggers
			return fmt.Errorf("%d queries had no answer", len(now))
		}
		for query, n := range now {
			if n-asked[query] < often {
				return fmt.Errorf("%d times: %s", n-asked[query], query)
			}
		}
		hpa, err := w.autoscaler(ctx, service)
		if err != nil {
			return err
		}
		if c := scaling(hpa); c.Status != corev1.ConditionFalse || c.Reason != "FailedGetExternalMetric" {
			return fmt.Errorf("the autoscaler has %v", c)
		}
		return nil
	})
}

func (w *world) deployment(ctx context.Context, service string) (*appsv1.Deployment, error) {
	return w.Client().AppsV1().Deployments(namespace).Get(ctx, service, metav1.GetOptions{})
}

// whole is whether a Deployment has the pods that it should have, and no others.
func whole(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == *d.Spec.Replicas && d.Status.ReadyReplicas == *d.Spec.Replicas
}

// autoscaler is the one that KEDA made for a service.
func (w *world) autoscaler(ctx context.Context, service string) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	return w.Client().AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(ctx, "keda-hpa-"+service, metav1.GetOptions{})
}

// scaling is whether an autoscaler can scale.
func scaling(hpa *autoscalingv2.HorizontalPodAutoscaler) autoscalingv2.HorizontalPodAutoscalerCondition {
	for _, c := range hpa.Status.Conditions {
		if c.Type == autoscalingv2.ScalingActive {
			return c
		}
	}
	return autoscalingv2.HorizontalPodAutoscalerCondition{}
}

// measured is what an autoscaler has for the example's triggers: requests of all pods,
// and saturation. It returns an error if one of them is missing.
func measured(hpa *autoscalingv2.HorizontalPodAutoscaler) (demand, saturation float64, err error) {
	of := 0
	for _, m := range hpa.Status.CurrentMetrics {
		switch {
		case m.External == nil: // not measured
		case m.External.Current.AverageValue != nil:
			of++
			demand = m.External.Current.AverageValue.AsApproximateFloat64() * float64(hpa.Status.CurrentReplicas)
		case m.External.Current.Value != nil:
			of++
			saturation = m.External.Current.Value.AsApproximateFloat64()
		}
	}
	if of != 2 {
		err = fmt.Errorf("%d of 2 triggers are measured: %v", of, scaling(hpa))
	}
	return demand, saturation, err
}
