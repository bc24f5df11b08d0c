// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEveryFigure has the real scheduler place random pods on random nodes, and compares
// every figure with the model after each step.
func TestEveryFigure(t *testing.T) {
	t.Parallel()
	w := start(t)
	ctx := t.Context()
	require.NoError(t, w.CreateNamespace(ctx, namespace))
	w.kubectl(class, "apply", "-f", "-")
	l := &life{world: w, Rand: rand.New(rand.NewPCG(23, 1))}
	for range 4 {
		l.addNode()
	}
	before := map[string]int{}
	for _, resource := range []string{"pods", "nodes", "resourceclaims", "resourceslices", "deviceclasses"} {
		n, err := w.watches(ctx, resource)
		require.NoError(t, err)
		before[resource] = n
	}
	w.observe("KUBE_SCHEDULER_METRICS=" + w.SchedulerURL())
	for resource, n := range before {
		w.eventually("one watch of "+resource+" for all components", func(ctx context.Context) error {
			is, err := w.watches(ctx, resource)
			if err == nil && is != n+1 {
				return fmt.Errorf("%d, and %d without the gateway", is, n)
			}
			return err
		})
	}
	compared, notReady, served := w.agree("the start"), 0, 0
	for range 30 {
		compared += w.agree(l.step())
		figures, err := w.figures(ctx)
		require.NoError(t, err)
		o, err := w.objects(ctx)
		require.NoError(t, err)
		for _, p := range o.Pods {
			if p.Status.ExtendedResourceClaimStatus != nil {
				served++
			}
		}
		for key, devices := range figures {
			if strings.HasSuffix(key, "reason=not_ready}") && devices > 0 {
				notReady++
			}
		}
	}
	t.Logf("30 steps, %d figures compared", compared)
	assert.Positive(t, notReady, "steps after which devices of nodes that are not ready are stranded")
	assert.Positive(t, served, "pods with an extended resource that a claim serves")

	w.eventually("kube-scheduler's page", func(ctx context.Context) error {
		result, err := w.query(ctx, `sum(scheduler_pending_pods)`)
		if err != nil || len(result) != 1 {
			return fmt.Errorf("%v, %w", result, err)
		}
		return nil
	})
	w.eventually("pods were scheduled while the gateway ran", func(ctx context.Context) error {
		page, err := w.gateway.Metrics(ctx)
		if err != nil {
			return err
		}
		for _, family := range []string{"gpu_scheduling_schedule_duration_seconds", "gpu_scheduling_start_duration_seconds", "scheduler_schedule_attempts_total"} {
			if len(page[family].GetMetric()) == 0 {
				return errors.New("no " + family)
			}
		}
		return nil
	})
}
