// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
			s, ok := (&NodeReader{}).Keep(tt.node)
			assert.True(t, ok)
			assert.Equal(t, tt.mps, s.mps)
			md := pmetric.NewMetrics()
			at := time.Unix(1, 2)
			s.AddTo(md, nil, at, &Origin{Node: "node-a", Cluster: "prod", Version: "1.2.3"})
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
	_, ok := (&NodeReader{}).Keep("no node")
	assert.False(t, ok)
}

func clearedOf(n Node) string { return n.info.get("gpu.health.cleared") }

func (i info) get(key string) string {
	for _, a := range i {
		if a.key == key {
			return a.value
		}
	}
	return ""
}

// gpu.node.info has what is known; what it had before ends.
func TestNodeInfo(t *testing.T) {
	keep := func(boot string, labels ...string) Node {
		object := nodeOf(false, labels...)
		object.Status.NodeInfo.BootID = boot
		node, ok := (&NodeReader{}).Keep(object)
		require.True(t, ok)
		return node
	}
	written := func(node Node, before *Node) (got []string) {
		md := pmetric.NewMetrics()
		node.AddTo(md, before, time.Unix(1, 0), &Origin{Node: "node-a"})
		for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			if m.Name() != names.GPUNodeInfo.Name {
				continue
			}
			for _, p := range m.Sum().DataPoints().All() {
				attrs := p.Attributes().AsRaw()
				assert.Equal(t, "node-a", attrs[names.K8sNodeName])
				assert.Equal(t, time.Unix(1, 0).UTC(), p.Timestamp().AsTime())
				is := "ends"
				if !p.Flags().NoRecordedValue() {
					assert.Equal(t, int64(1), p.IntValue())
					is = "is"
				}
				got = append(got, fmt.Sprint(is, " ", attrs[names.GPUNodeBootID], " ", attrs[names.HostType], " ", attrs[names.HwDriverVersion]))
			}
		}
		return got
	}
	full := keep("b1", "node.kubernetes.io/instance-type", "p5.48xlarge", "beta.kubernetes.io/instance-type", "old",
		labelDriver, "580.65.06", labelDriverPart+"major", "1")
	parts := keep("b1", "beta.kubernetes.io/instance-type", "a3-highgpu-8g", labelDriverPart+"major", "535", labelDriverPart+"minor", "54", labelDriverPart+"rev", "03")
	bare, booted := keep(""), keep("b2")
	assert.Equal(t, []string{"is b1 p5.48xlarge 580.65.06"}, written(full, nil))
	assert.Equal(t, []string{"is b1 a3-highgpu-8g 535.54.03"}, written(parts, &parts))
	assert.Equal(t, []string{"ends b1 p5.48xlarge 580.65.06", "is b2 <nil> <nil>"}, written(booted, &full))
	assert.Equal(t, []string{"ends b2 <nil> <nil>"}, written(bare, &booted))
	assert.Empty(t, written(bare, &bare))

	now := time.Date(2026, 1, 31, 15, 0, 0, 0, time.UTC)
	acknowledged := func(value string) (Node, error) {
		object := nodeOf(false)
		object.Annotations = map[string]string{"gpu.otelcol-gpu/cleared": value}
		node, _ := (&NodeReader{}).Keep(object)
		return node, node.Acknowledge(now)
	}
	cleared, err := acknowledged("2026-01-31T15:00:00+01:00, GPU-a=2026-01-31T14:30:00Z")
	require.NoError(t, err)
	assert.Equal(t, "2026-01-31T14:00:00Z,GPU-a=2026-01-31T14:30:00Z", clearedOf(cleared))
	md := pmetric.NewMetrics()
	cleared.AddTo(md, nil, now, &Origin{Node: "node-a"})
	value, _ := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(1).Sum().DataPoints().At(0).Attributes().Get("gpu.health.cleared")
	assert.Equal(t, clearedOf(cleared), value.Str())
	partly, err := acknowledged("2026-01-31T14:00:00Z,2026-02-01T00:00:00Z")
	require.ErrorContains(t, err, "in the future")
	assert.Equal(t, "2026-01-31T14:00:00Z", clearedOf(partly))
	none, err := acknowledged("2026-01-31T14:00:00Z" + strings.Repeat(" ", 1000))
	require.ErrorContains(t, err, "at most 256")
	assert.Empty(t, clearedOf(none))
	assert.Equal(t, []string{"is " + strings.Repeat("x", maxInfo-1) + "… <nil> <nil>"}, written(keep(strings.Repeat("x", 1000)), nil))
}

// What prices depend on comes from the labels of the clouds, those of the configuration before
// them, and what the configuration has instead of labels after them.
func TestNodeInfoForPrices(t *testing.T) {
	of := func(r NodeReader, labels ...string) string {
		node, ok := r.Keep(nodeOf(false, labels...))
		require.True(t, ok)
		var got []string
		for _, a := range node.info {
			got = append(got, a.key+"="+a.value)
		}
		return strings.Join(got, " ")
	}
	for want, labels := range map[string][]string{
		"": {"karpenter.sh/capacity-type", "musing", "cloud.google.com/gke-spot", "false", "topology.kubernetes.io/region", ""},
		"cloud.region=eu-west-1 gpu.capacity.type=on_demand gpu.node.pool=gpus": {
			"topology.kubernetes.io/region", "eu-west-1", "failure-domain.beta.kubernetes.io/region", "old",
			"karpenter.sh/capacity-type", "on-demand", "eks.amazonaws.com/capacityType", "SPOT", "karpenter.sh/nodepool", "gpus",
		},
		"cloud.region=old":                               {"failure-domain.beta.kubernetes.io/region", "old"},
		"gpu.capacity.type=reserved":                     {"karpenter.sh/capacity-type", "reserved"},
		"gpu.capacity.type=spot gpu.node.pool=ng-1":      {"eks.amazonaws.com/capacityType", "SPOT", "eks.amazonaws.com/nodegroup", "ng-1"},
		"gpu.capacity.type=on_demand gpu.node.pool=ng-2": {"eks.amazonaws.com/capacityType", "ON_DEMAND", "eks.amazonaws.com/nodegroup", "ng-2"},
		"gpu.capacity.type=reserved gpu.node.pool=ng-3":  {"eks.amazonaws.com/capacityType", "CAPACITY_BLOCK", "eks.amazonaws.com/nodegroup", "ng-3"},
		"gpu.capacity.type=spot gpu.node.pool=a3":        {"cloud.google.com/gke-spot", "true", "cloud.google.com/gke-nodepool", "a3"},
		"gpu.capacity.type=spot gpu.node.pool=a2":        {"cloud.google.com/gke-preemptible", "true", "cloud.google.com/gke-nodepool", "a2"},
		"gpu.capacity.type=spot gpu.node.pool=nd":        {"kubernetes.azure.com/scalesetpriority", "spot", "kubernetes.azure.com/agentpool", "nd"},
	} {
		assert.Equal(t, want, of(NodeReader{}, labels...))
	}

	chosen := NodeReader{
		CapacityLabel: "example.com/capacity", PoolLabel: "example.com/pool", Labels: []string{"team", "example.com/rack"},
		Given: map[string]string{names.HostType: "dgx-h100", names.CloudRegion: "lab", names.NodeLabelPrefix + "team": "it"},
	}
	assert.Equal(t, "cloud.region=lab gpu.capacity.type=reserved gpu.node.pool=own host.type=dgx-h100 node.label.example.com/rack=r1 node.label.team=ml",
		of(chosen, "example.com/capacity", "Reserved", "karpenter.sh/capacity-type", "spot", "example.com/pool", "own", "karpenter.sh/nodepool", "other",
			"team", "ml", "example.com/rack", "r1", "example.com/other", "x"))
	assert.Equal(t, "cloud.region=lab gpu.capacity.type=spot gpu.node.pool=other host.type=p5.48xlarge node.label.team=it",
		of(chosen, "example.com/capacity", "musing", "karpenter.sh/capacity-type", "spot", "karpenter.sh/nodepool", "other", "node.kubernetes.io/instance-type", "p5.48xlarge"))

	// Other labels are no other node.
	a, _ := chosen.Keep(nodeOf(false, "team", "ml", "example.com/other", "x"))
	b, _ := chosen.Keep(nodeOf(false, "team", "ml", "example.com/other", "y"))
	c, _ := chosen.Keep(nodeOf(false, "team", "it"))
	assert.True(t, a.Equal(&b))
	assert.False(t, a.Equal(&c))
}
