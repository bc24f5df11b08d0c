// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"testing"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/kubelet"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A kubelet that is back without its pods frees nothing: the last snapshot is kept,
// and ages.
func TestAKubeletWithoutItsPodsFreesNothing(t *testing.T) {
	agent := pod{Namespace: "monitoring", Name: "agent-x", Containers: []container{{Name: "otelcol"}}}
	train := holds("ml", "a", gpuName, gpuA)
	held := []string{"-/-/- " + gpuB + " 0 nvidia.com/gpu none true", "ml/a/main " + gpuA + " 1 nvidia.com/gpu none true"}
	for name, own := range map[string]bool{"in a pod": true, "outside of one": false} {
		s := oneOfTwo()
		s.node.Pods = []pod{agent, train}
		s.served = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // long before a bubble's time begins
		t.Run(name, func(t *testing.T) {
			story(t, s, func(t *testing.T, r *run) {
				until(r, 21)
				require.Equal(t, held, lines(r.taken()[0].md))
				s.set(func(s *script) { s.node.Pods, s.served = nil, time.Now() })
				until(r, 34)
				for _, b := range r.taken() {
					assert.Equal(t, held, lines(b.md))
				}
				assert.Equal(t, map[string]int64{"held": 1, "free": 1, "unresolved": 0, "contested": 0, "unresolved_dra": 0}, r.devices())
				assert.EqualValues(t, 2, r.calls(kubelet.Incomplete))

				until(r, 120)
				assert.Empty(t, r.taken(), "too old: nothing is known")
				assert.Nil(t, r.devices())
				assert.Equal(t, 1, r.logged("the kubelet does not list the owners of devices"))

				s.set(func(s *script) { s.node.Pods = []pod{agent, train} })
				until(r, 126)
				got := r.taken()
				require.NotEmpty(t, got)
				assert.Equal(t, held, lines(got[0].md))

				s.set(func(s *script) { s.node.Pods = []pod{agent} })
				until(r, 131)
				got = r.taken()
				require.NotEmpty(t, got)
				assert.Len(t, lines(got[0].md), 2)
				assert.Equal(t, map[string]int64{"held": 0, "free": 2, "unresolved": 0, "contested": 0, "unresolved_dra": 0}, r.devices(), "a node that is really drained")
			}, func(c *Config) {
				if own {
					c.PodNamespace, c.PodName = agent.Namespace, agent.Name
				}
			})
		})
	}
}
