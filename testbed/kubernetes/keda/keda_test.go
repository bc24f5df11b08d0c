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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
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
		// A load of few requests under which pods are saturated, and how many
		// pods it takes until they are not.
		pressed load
		pods    int32
	}{
		{service: service{name: "vllm", image: "vllm/vllm-openai:v0.11.0"}, kv: 0.02, pressed: load{requests: 30, slots: 20, kv: 0.06}, pods: 3},
		{service: service{name: "sglang", image: "lmsysorg/sglang:v0.5.3"}, kv: 0.01, pressed: load{requests: 30, slots: 16, kv: 0.062}, pods: 3},
		{service: service{name: "tgi", image: "ghcr.io/huggingface/text-generation-inference:3.3.5"}, pressed: load{requests: 30, slots: 1}, pods: 4},
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
				e.set(with(load{requests: 60, slots: 20}))
				w.becomes(t, &e.service, busy)
				// The pages that are there report less than one pod could do.
				e.set(with(load{requests: 0, slots: 20, missing: busy / 4}))
				w.holds(t, &e.service)
				e.set(with(calm))
				w.becomes(t, &e.service, least)
				partial := with(load{requests: 60, slots: 20, partial: true})
				e.set(partial)
				w.holds(t, &e.service)
				partial.partial = false
				e.set(partial)
				w.becomes(t, &e.service, busy)
				e.set(with(load{slots: 20}))
				w.becomes(t, &e.service, least)
				e.set(e.pressed)
				w.becomes(t, &e.service, e.pods)
				e.set(with(calm))
				w.becomes(t, &e.service, least)
			})
		}
		for i := range mutants {
			s := &mutants[i].service
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				w.scale(t, s, mutants[i].mutate)
				s.set(load{requests: 60, slots: 20, kv: 0.02})
				w.becomes(t, s, busy)
				s.set(load{requests: 0, slots: 20, kv: 0.02, missing: busy / 4})
				w.becomes(t, s, least)
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

// scale applies the example to a service, without its minutes of patience, with the
// server of this test, and with mutate's changes, if there are any.
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
	for document := range strings.SplitSeq(example, "\n---\n") {
		var object m
		require.NoError(t, yaml.Unmarshal([]byte(document), &object))
		if object["kind"] == "ScaledObject" {
			soon := m{"stabilizationWindowSeconds": 0, "policies": []m{{"type": "Pods", "value": 8, "periodSeconds": 1}}}
			object["spec"].(m)["advanced"] = m{"horizontalPodAutoscalerConfig": m{"behavior": m{"scaleUp": soon, "scaleDown": soon}}}
		}
		changed, err := yaml.Marshal(object)
		require.NoError(t, err)
		w.kubectl(t, string(changed), "apply", "-f", "-")
	}
}

// becomes waits until a service has that many pods.
func (w *world) becomes(t *testing.T, s *service, pods int32) {
	t.Helper()
	w.eventually(t, fmt.Sprintf("%d pods of %s", pods, s.name), func(ctx context.Context) error {
		d, err := w.Client().AppsV1().Deployments(namespace).Get(ctx, s.name, metav1.GetOptions{})
		if err == nil && (*d.Spec.Replicas != pods || d.Status.ReadyReplicas != pods || d.Status.Replicas != pods) {
			err = fmt.Errorf("%d wanted, %d ready; %v", *d.Spec.Replicas, d.Status.ReadyReplicas, w.autoscaler(ctx, s))
		}
		return err
	})
}

// holds waits until KEDA has asked often for what is not known, and fails if the number
// of pods was changed meanwhile, even if it was changed back.
func (w *world) holds(t *testing.T, s *service) {
	t.Helper()
	const often = 8
	deployments := w.Client().AppsV1().Deployments(namespace)
	before, err := deployments.Get(t.Context(), s.name, metav1.GetOptions{})
	require.NoError(t, err)
	asked := w.server.answeredEmpty(s.name)
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
		scaling := w.autoscaler(ctx, s)
		if scaling.Status != corev1.ConditionFalse || scaling.Reason != "FailedGetExternalMetric" {
			return fmt.Errorf("the autoscaler has %v", scaling)
		}
		return nil
	})
	after, err := deployments.Get(t.Context(), s.name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, before.Generation, after.Generation, "the number of pods of %s was changed: it is %d", s.name, *after.Spec.Replicas)
}

// autoscaler is whether the autoscaler that KEDA made for a service can scale it.
func (w *world) autoscaler(ctx context.Context, s *service) autoscalingv2.HorizontalPodAutoscalerCondition {
	hpa, err := w.Client().AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(ctx, "keda-hpa-"+s.name, metav1.GetOptions{})
	if err != nil {
		return autoscalingv2.HorizontalPodAutoscalerCondition{Message: err.Error()}
	}
	for _, c := range hpa.Status.Conditions {
		if c.Type == autoscalingv2.ScalingActive {
			return c
		}
	}
	return autoscalingv2.HorizontalPodAutoscalerCondition{}
}
