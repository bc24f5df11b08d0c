// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	corev1 "k8s.io/api/core/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func TestNode(t *testing.T) {
	for name, tt := range map[string]struct {
		node *corev1.Node
		want map[string]int64
		mps  bool
	}{
		"takes pods":       {nodeOf(false), map[string]int64{"gpu.node.schedulable": 1}, false},
		"cordoned":         {nodeOf(true), map[string]int64{"gpu.node.schedulable": 0}, false},
		"MIG to be done":   {nodeOf(false, labelMIGState, "pending"), map[string]int64{"gpu.node.schedulable": 1, "gpu.node.mig.reconfiguring": 1}, false},
		"MIG by a reboot":  {nodeOf(true, labelMIGState, "rebooting"), map[string]int64{"gpu.node.schedulable": 0, "gpu.node.mig.reconfiguring": 1}, false},
		"MIG done":         {nodeOf(false, labelMIGState, "success"), map[string]int64{"gpu.node.schedulable": 1, "gpu.node.mig.reconfiguring": 0}, false},
		"MIG failed":       {nodeOf(false, labelMIGState, "failed"), map[string]int64{"gpu.node.schedulable": 1, "gpu.node.mig.reconfiguring": 0}, false},
		"MIG, a new state": {nodeOf(false, labelMIGState, "musing"), map[string]int64{"gpu.node.schedulable": 1}, false},
		"MPS":              {nodeOf(false, labelSharing, "mps"), map[string]int64{"gpu.node.schedulable": 1}, true},
		"MPS on GKE":       {nodeOf(false, labelGKESharing, "mps"), map[string]int64{"gpu.node.schedulable": 1}, true},
		"time-slicing":     {nodeOf(false, labelSharing, "time-slicing", labelGKESharing, "time-sharing"), map[string]int64{"gpu.node.schedulable": 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, ok := KeepNode(tt.node)
			assert.True(t, ok)
			assert.Equal(t, tt.mps, s.mps)
			md := pmetric.NewMetrics()
			at := time.Unix(1, 2)
			s.AddTo(md, at, &Origin{Node: "node-a", Cluster: "prod", Version: "1.2.3"})
			assert.Equal(t, 1, md.ResourceMetrics().Len())
			rm := md.ResourceMetrics().At(0)
			assert.Equal(t, map[string]any{names.K8sClusterName: "prod", names.K8sNodeName: "node-a"}, rm.Resource().Attributes().AsRaw())
			got := map[string]int64{}
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				assert.False(t, m.Sum().IsMonotonic())
				p := m.Sum().DataPoints().At(0)
				assert.Equal(t, map[string]any{names.K8sNodeName: "node-a"}, p.Attributes().AsRaw(), "identity is on every point")
				assert.Equal(t, pcommon.NewTimestampFromTime(at), p.Timestamp())
				got[m.Name()] = p.IntValue()
			}
			assert.Equal(t, tt.want, got)
		})
	}
	_, ok := KeepNode("no node")
	assert.False(t, ok)
}
