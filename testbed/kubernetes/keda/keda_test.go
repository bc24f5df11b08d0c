// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the example has for minReplicaCount, and pods that 60 requests need: 16 each.
const (
	least = 2
	busy  = 4
)

// calm is a load of the least number of pods.
var calm = load{requests: 20, slots: 20}

func TestInference(t *testing.T) {
	w := start(t)
	engines := []struct {
		service
		kv float64 // share of the KV cache of a request, where the engine reports it
		// A load of few requests under which pods are saturated, and with how many
		// pods the autoscaler stops adding and removing: it tolerates a tenth.
		pressed  load
		from, to int32
	}{
		{service: service{name: "vllm", image: "vllm/vllm-openai:v0.11.0"}, kv: 0.02, pressed: load{requests: 30, slots: 20, kv: 0.06}, from: 3, to: 3},
		{service: service{name: "sglang", image: "lmsysorg/sglang:v0.5.3"}, kv: 0.01, pressed: load{requests: 30, slots: 16, kv: 0.062}, from: 3, to: 3},
		{service: service{name: "tgi", image: "ghcr.io/huggingface/text-generation-inference:3.3.5"}, pressed: load{requests: 30, slots: 1}, from: 4, to: 6},
	}
	// The example without what keeps the number of pods.
	mutants := []struct {
		service
		mutate func(string) string
	}{
		{service{name: "unguarded", image: "vllm/vllm-openai:v0.11.0"}, func(text string) string {
			return regexp.MustCompile(`(?m)^ *unless on .*\n`).ReplaceAllString(text, "")
		}},
		{service{name: "null-is-zero", image: "vllm/vllm-openai:v0.11.0"}, func(text string) string {
			return strings.ReplaceAll(text, `ignoreNullValues: "false"`, `ignoreNullValues: "true"`)
		}},
	}
	var all []*service
	for i := range engines {
		all = append(all, &engines[i].service)
	}
	for i := range mutants {
		all = append(all, &mutants[i].service)
	}
	for _, s := range all {
		s.set(calm)
		w.deploy(s)
	}
	w.feed(all...)
	// The subtests end before the cluster does.
	t.Run("services", func(t *testing.T) {
		for i := range engines {
			e := &engines[i]
			with := func(l load) load { l.kv = e.kv; return l }
			t.Run(e.name, func(t *testing.T) {
				t.Parallel()
				w.scale(t, &e.service, nil)
				w.becomes(t, &e.service, with(load{requests: 60, slots: 20}), busy, busy)
				// The pages that are there report less than one pod could do.
				w.holds(t, &e.service, with(load{requests: 0, slots: 20, missing: busy / 4}))
				w.becomes(t, &e.service, with(calm), least, least)
				w.holds(t, &e.service, with(load{requests: 60, slots: 20, partial: true}))
				w.becomes(t, &e.service, with(load{requests: 60, slots: 20}), busy, busy)
				w.becomes(t, &e.service, with(load{slots: 20}), least, least)
				w.becomes(t, &e.service, e.pressed, e.from, e.to)
				w.becomes(t, &e.service, with(calm), least, least)
			})
		}
		for i := range mutants {
			s := &mutants[i].service
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				w.scale(t, s, mutants[i].mutate)
				w.becomes(t, s, load{requests: 60, slots: 20, kv: 0.02}, busy, busy)
				w.becomes(t, s, load{requests: 0, slots: 20, kv: 0.02, missing: busy / 4}, least, least)
			})
		}
	})
}

// deploy creates a service's Deployment, with the least number of pods.
func (w *world) deploy(s *service) {
	w.story.Helper()
	labels, replicas := map[string]string{"app": s.name}, int32(least)
	_, err := w.Client().AppsV1().Deployments(namespace).Create(w.story.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: s.image}}},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(w.story, err)
}

// scale applies the example to a service, with seconds for its minutes of patience, with
// the server of this test, and with mutate's changes, if there are any.
func (w *world) scale(t *testing.T, s *service, mutate func(string) string) {
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
	example = strings.NewReplacer("llama", s.name, server, w.server.url).Replace(example)
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

// becomes gives a service a load, and waits until the autoscaler has measured it with a
// number of pods, from one to another, and leaves that number as it is.
func (w *world) becomes(t *testing.T, s *service, l load, from, to int32) {
	t.Helper()
	s.set(l)
	w.eventually(t, fmt.Sprintf("%d to %d pods of %s", from, to, s.name), func(ctx context.Context) error {
		d, err := w.Client().AppsV1().Deployments(namespace).Get(ctx, s.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		hpa, err := w.autoscaler(ctx, s)
		if err != nil {
			return err
		}
		n, at := *d.Spec.Replicas, hpa.Status
		if n < from || n > to || d.Status.Replicas != n || d.Status.ReadyReplicas != n || at.CurrentReplicas != n || at.DesiredReplicas != n {
			return fmt.Errorf("%d pods wanted, %d there, %d ready; the autoscaler has found %d and wants %d: %v", n, d.Status.Replicas, d.Status.ReadyReplicas, at.CurrentReplicas, at.DesiredReplicas, scaling(hpa))
		}
		return l.measured(n, at.CurrentMetrics)
	})
}

// holds gives a service a load of which too little is known, waits until KEDA has asked
// often, and fails if the number of pods was changed meanwhile, even if it was changed
// back.
func (w *world) holds(t *testing.T, s *service, l load) {
	t.Helper()
	const often = 8
	deployments := w.Client().AppsV1().Deployments(namespace)
	before, err := deployments.Get(t.Context(), s.name, metav1.GetOptions{})
	require.NoError(t, err)
	asked := w.server.answeredEmpty(s.name)
	s.set(l)
	w.eventually(t, "questions about "+s.name+" without an answer", func(ctx context.Context) error {
		now := w.server.answeredEmpty(s.name)
		if len(now) != 2 { // triggers
			return fmt.Errorf("%d queries had no answer", len(now))
		}
		for query, n := range now {
			if n-asked[query] < often {
				return fmt.Errorf("%d times: %s", n-asked[query], query)
			}
		}
		hpa, err := w.autoscaler(ctx, s)
		if c := scaling(hpa); err == nil && (c.Status != corev1.ConditionFalse || c.Reason != "FailedGetExternalMetric") {
			err = fmt.Errorf("the autoscaler has %v", c)
		}
		return err
	})
	after, err := deployments.Get(t.Context(), s.name, metav1.GetOptions{})
	require.NoError(t, err)
	if before.Generation != after.Generation {
		w.logs(t)
		t.Errorf("the number of pods of %s was changed: it was %d and is %d", s.name, *before.Spec.Replicas, *after.Spec.Replicas)
	}
}

// autoscaler is the one that KEDA made for a service.
func (w *world) autoscaler(ctx context.Context, s *service) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	return w.Client().AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(ctx, "keda-hpa-"+s.name, metav1.GetOptions{})
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
