// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package healthmetrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// written are the points of all that a Writer wrote, as "metric{attributes} value"; no
// metric has an end beside another point.
func written(t *testing.T, w *Writer) (all []string) {
	md, some := w.Metrics()
	if !some {
		return nil
	}
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			dps, _ := points.Numbers(m)
			for _, dp := range dps.All() {
				require.EqualValues(t, 7, dp.Timestamp())
				value := fmt.Sprint(points.Value(dp))
				if dp.Flags().NoRecordedValue() {
					require.Equal(t, 1, dps.Len(), "an end is a metric of its own")
					value = "ends"
				}
				var attrs []string
				for k, v := range dp.Attributes().All() {
					attrs = append(attrs, k+"="+v.AsString())
				}
				slices.Sort(attrs)
				all = append(all, m.Name()+"{"+strings.Join(attrs, ",")+"} "+value)
			}
		}
	}
	return all
}

func TestBoardAndNode(t *testing.T) {
	d := subject.Device{ID: subject.DeviceID{Cluster: "c1", ID: "GPU-a"}, Facts: subject.Facts{Node: "n1", Index: -1}}
	var board, node Published
	bad := Status{
		At: 7, Known: true, State: health.Degraded, Coverage: 0.5, Score: 0.8,
		Reasons: []Reason{{"remap_pending", health.Degraded, health.ResetGPU}},
	}
	w := &Writer{Score: true}
	w.Write(&board, Board(&d), &bad)
	status := func(is string) (all []string) {
		for _, s := range health.States() {
			value := "0"
			if s.String() == is {
				value = "1"
			} else if is == "" {
				value = "ends"
			}
			all = append(all, "hw.status{hw.id=GPU-a,hw.state="+s.String()+",hw.type=gpu} "+value)
		}
		return all
	}
	reason := "gpu.health.reason{gpu.health.action=reset_gpu,gpu.health.reason=remap_pending,hw.id=GPU-a,hw.state=degraded} "
	assert.Equal(t, append(status("degraded"), reason+"1", "gpu.health.coverage{hw.id=GPU-a} 0.5", "gpu.health.score{hw.id=GPU-a} 0.8"), written(t, w))

	worse := bad
	worse.State, worse.Score, worse.Reasons = health.Failed, 0, []Reason{{"remap_pending", health.Failed, health.ResetGPU}}
	w = &Writer{Score: true}
	w.Write(&board, Board(&d), &worse)
	assert.Equal(t, append(append([]string{reason + "ends"}, status("failed")...),
		strings.Replace(reason, "degraded", "failed", 1)+"1", "gpu.health.coverage{hw.id=GPU-a} 0.5", "gpu.health.score{hw.id=GPU-a} 0"), written(t, w),
		"a reason with another state is another series")

	w = &Writer{Score: true}
	w.Write(&board, Board(&d), &Status{At: 7})
	assert.Equal(t, append(status(""), strings.Replace(reason, "degraded", "failed", 1)+"ends", "gpu.health.coverage{hw.id=GPU-a} ends", "gpu.health.score{hw.id=GPU-a} ends"), written(t, w))
	w = &Writer{Score: true}
	w.Write(&board, Board(&d), &Status{At: 7})
	assert.Empty(t, written(t, w), "once")

	w = &Writer{Score: true}
	w.Write(&node, Node(subject.Node{Cluster: "c1", Name: "n1"}), &Status{At: 7, Known: true, Score: 1})
	all := written(t, w)
	assert.Equal(t, []string{"gpu.node.status{hw.state=ok,k8s.node.name=n1} 1", "gpu.health.score{k8s.node.name=n1} 1"}, []string{all[0], all[4]})
	assert.Len(t, all, 5, "a node has no coverage")
	md, _ := w.Metrics()
	assert.Equal(t, map[string]any{names.K8sClusterName: "c1", names.K8sNodeName: "n1"}, md.ResourceMetrics().At(0).Resource().Attributes().AsRaw())
}
