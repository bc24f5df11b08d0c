// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
)

// job asks for two GPUs in each of its two pods, in Kueue's queue.
const job = `
apiVersion: batch/v1
kind: Job
metadata:
  name: %s
  namespace: batch
  labels: {kueue.x-k8s.io/queue-name: %s}
spec:
  suspend: true
  parallelism: 2
  completions: 2
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: example.com/train
        resources: {limits: {nvidia.com/gpu: 2}}
`

// TestKueue is that what waits in Kueue's queues, of which no pod exists, is in the view of
// queues, and nowhere twice.
func TestKueue(t *testing.T) {
	t.Parallel()
	w := start(t)
	require.NoError(t, w.AddNode(t.Context(), cluster.NodeSpec{Name: "node", Capacity: map[corev1.ResourceName]resource.Quantity{"nvidia.com/gpu": resource.MustParse("8")}}))
	page := w.startKueue()
	w.observe("KUEUE_METRICS=" + page)
	type states struct{ quota, used, reserved, pending float64 }
	queues := func(research, product states) map[string]float64 {
		out := map[string]float64{}
		for name, is := range map[string]states{"research": research, "product": product} {
			of := "kueue " + name + " nvidia.com/gpu "
			out[of+"quota"], out[of+"used"], out[of+"reserved"], out[of+"pending"] = is.quota, is.used, is.reserved, is.pending
		}
		return out
	}
	has := func(after string, want map[string]float64) {
		t.Helper()
		w.eventually(after, func(ctx context.Context) error {
			got, err := w.queues(ctx)
			if err == nil && !maps.Equal(want, got) {
				return fmt.Errorf("%v, not %v", got, want)
			}
			return err
		})
	}
	apply := func(queue string, jobs ...string) {
		for _, name := range jobs {
			w.kubectl(fmt.Sprintf(job, name, queue), "apply", "-f", "-")
		}
	}
	// Each quota is four devices, as many as one job asks for.
	apply("research", "first", "second", "third")
	has("one job runs, one on what it borrows, one waits", queues(states{4, 8, 0, 4}, states{4, 0, 0, 0}))
	assert.Len(t, w.pods("batch"), 4, "those of the jobs that run")
	// What the gateway counts of pods has none of the jobs that wait.
	w.agree("what waits in the queue has no pods")
	figures, err := w.figures(t.Context())
	require.NoError(t, err)
	for key := range figures {
		assert.NotContains(t, key, "pending")
	}
	w.kubectl("", "delete", "job", "-n", "batch", "first")
	has("the next job runs", queues(states{4, 8, 0, 0}, states{4, 0, 0, 0}))
	apply("product", "fourth")
	has("the quota of one queue is lent", queues(states{4, 8, 0, 0}, states{4, 0, 0, 4}))
	w.kubectl("", "delete", "job", "-n", "batch", "second")
	has("it is given back", queues(states{4, 4, 0, 0}, states{4, 4, 0, 0}))
	w.kubectl("", "delete", "jobs", "-n", "batch", "--all")
	has("nothing waits", queues(states{4, 0, 0, 0}, states{4, 0, 0, 0}))
}
