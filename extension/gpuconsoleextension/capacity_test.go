// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// schedulingNode writes the devices of a node.
func (w *world) schedulingNode(name, model string, allocatable, requested, free, stranded int) {
	w.t.Helper()
	at := tags{queries.Cluster: "c1", queries.Node: name, queries.Resource: "nvidia.com/gpu", queries.Model: model}
	for state, n := range map[string]int{"allocatable": allocatable, "requested": requested, "free": free, "stranded": stranded} {
		w.write(queries.NodeDevices, at.with(tags{queries.NodeDeviceState: state}), 2*time.Minute, 0, constant(float64(n)))
	}
}

func (w *world) waiting(namespace, queue, reason string, pods, devices int, oldest time.Duration) {
	w.t.Helper()
	at := tags{queries.Cluster: "c1", queries.Namespace: namespace, queries.Queue: queue, queries.PendingReason: reason}
	w.write(queries.PendingPods, at.with(tags{queries.Resource: "nvidia.com/gpu"}), 2*time.Minute, 0, constant(float64(pods)))
	w.write(queries.PendingDevices, at.with(tags{queries.Resource: "nvidia.com/gpu"}), 2*time.Minute, 0, constant(float64(devices)))
	if pods > 0 {
		w.write(queries.PendingAge, at, 2*time.Minute, 0, constant(oldest.Seconds()))
	}
}

func scheduling(t *testing.T) *world {
	w := newWorld(t)
	w.schedulingNode("a", "H100", 8, 0, 8, 0)
	w.schedulingNode("b", "H100", 8, 4, 4, 2)
	w.schedulingNode("c", "H100", 8, 0, 8, 8)
	w.schedulingNode("d", "L4", 4, 4, 0, 0)
	pool := tags{queries.Cluster: "c1", queries.Resource: "nvidia.com/gpu", queries.Model: "H100"}
	for reason, n := range map[string]int{"cordoned": 8, "cpu": 2, "memory": 0} {
		w.write(queries.Stranded, pool.with(tags{queries.StrandedReason: reason}), 2*time.Minute, 0, constant(float64(n)))
	}
	for size, n := range map[int]int{1: 10, 2: 5, 4: 2, 8: 1} {
		w.write(queries.Fit, pool.with(tags{queries.RequestSize: strconv.Itoa(size)}), 2*time.Minute, 0, constant(float64(n)))
		w.write(queries.Fragmentation, pool.with(tags{queries.RequestSize: strconv.Itoa(size)}), 2*time.Minute, 0, constant(0.25))
	}
	w.write(queries.Fragmentation, pool.with(tags{queries.RequestSize: "expected"}), 2*time.Minute, 0, constant(0.5))
	w.write(queries.Schedulable, tags{queries.Cluster: "c1", queries.Node: "c"}, 2*time.Minute, 0, constant(0))
	w.waiting("research", "team-a", "insufficient_gpu", 2, 16, time.Hour)
	w.waiting("batch", "", "taint", 1, 1, 2*time.Hour)
	w.waiting("done", "", "other", 0, 0, 0)
	return w
}

func TestCapacity(t *testing.T) {
	w := scheduling(t)
	c := serveAPI(t, w.store, w.now, nil)
	got := ok[consoleapi.CapacityAnswer](c, "capacity", nil)
	require.Len(t, got.Pools, 2)
	h100, l4 := got.Pools[0], got.Pools[1]
	assert.Equal(t, []int{24, 4, 20, 10, 1, 1}, []int{*h100.Allocatable, *h100.Requested, *h100.Free, *h100.Stranded, *h100.Fits, *h100.FitNodes})
	assert.Equal(t, []consoleapi.StrandedDevices{{Reason: "cordoned", Devices: 8}, {Reason: "cpu", Devices: 2}}, h100.StrandedBy)
	assert.Len(t, h100.Requests, 4)
	assert.InDelta(t, 0.5, *h100.Fragmentation, 0)
	assert.Equal(t, []int{0, 0, 0}, []int{*l4.Free, *l4.Fits, *l4.FitNodes}, "0 is known")
	assert.Nil(t, l4.Fragmentation)

	assert.Equal(t, 2, got.WaitingTotal, "who found a place does not wait")
	assert.Equal(t, []string{"batch", "research"}, []string{got.Waiting[0].Namespace, got.Waiting[1].Namespace}, "the longest first")
	assert.InDelta(t, 7200, *got.Waiting[0].Oldest, 0)
	assert.Nil(t, got.Waiting[0].Queue)
	assert.Equal(t, "team-a", *got.Waiting[1].Queue)
	require.Len(t, got.Hints, 1)
	assert.Equal(t, "20 devices of nvidia.com/gpu are free, and pods wait for 17 (16 insufficient gpu, 1 taint). Stranded: 8 cordoned, 2 cpu.", got.Hints[0].Text)

	require.Len(t, got.Nodes, 1)
	assert.Equal(t, "a", got.Nodes[0].Node)
	assert.Equal(t, 8, got.Size)
	assert.Nil(t, got.Reason)
	assert.False(t, got.Freshness.Stale)
}

func TestCapacityOfNodes(t *testing.T) {
	w := scheduling(t)
	c := serveAPI(t, w.store, w.now, nil)
	for name, test := range map[string]struct {
		query []string
		want  []string
	}{
		"where two fit":      {[]string{"size", "2"}, []string{"a", "b"}},
		"where three fit":    {[]string{"size", "3"}, []string{"a"}},
		"stranded":           {[]string{"show", "stranded"}, []string{"c", "b"}},
		"free":               {[]string{"show", "free"}, []string{"a", "c", "b"}},
		"all":                {[]string{"show", "all"}, []string{"a", "c", "b", "d"}},
		"of a model":         {[]string{"show", "all", "model", "L4"}, []string{"d"}},
		"by name":            {[]string{"show", "all", "q", "B"}, []string{"b"}},
		"of another cluster": {[]string{"show", "all", "cluster", "c2"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := ok[consoleapi.CapacityAnswer](c, "capacity", values(test.query...))
			var nodes []string
			for _, n := range got.Nodes {
				nodes = append(nodes, n.Node)
			}
			assert.Equal(t, test.want, nodes)
		})
	}
	got := ok[consoleapi.CapacityAnswer](c, "capacity", values("show", "stranded"))
	assert.False(t, *got.Nodes[0].Schedulable)
	assert.Nil(t, got.Nodes[1].Schedulable)

	first := ok[consoleapi.CapacityAnswer](c, "capacity", values("show", "all", "limit", "3"))
	assert.Equal(t, 4, first.Total)
	second := ok[consoleapi.CapacityAnswer](c, "capacity", values("show", "all", "limit", "3", "cursor", *first.Next))
	require.Len(t, second.Nodes, 1)
	assert.Equal(t, "d", second.Nodes[0].Node)
	assert.Nil(t, second.Next)
	for _, bad := range [][]string{{"size", "0"}, {"size", "1025"}, {"size", "x"}, {"show", "none"}} {
		assert.Equal(t, http.StatusBadRequest, c.get("capacity", values(bad...)).status, bad)
	}
}

// Without gpu_scheduling nothing is known, and without its nodes fit and reasons are.
func TestCapacityThatIsNotKnown(t *testing.T) {
	w := newWorld(t)
	got := ok[consoleapi.CapacityAnswer](serveAPI(t, w.store, w.now, nil), "capacity", nil)
	assert.Equal(t, consoleapi.NoScheduling, *got.Reason)
	assert.Empty(t, got.Silent)

	w.write(queries.Fit, tags{queries.Cluster: "c1", queries.Resource: "nvidia.com/gpu", queries.RequestSize: "8"}, 2*time.Minute, 0, constant(3))
	got = ok[consoleapi.CapacityAnswer](serveAPI(t, w.store, w.now, nil), "capacity", nil)
	require.Len(t, got.Pools, 1)
	assert.False(t, got.NodesKnown)
	assert.Equal(t, 3, *got.Pools[0].Fits)
	assert.Nil(t, got.Pools[0].Free)
	assert.Nil(t, got.Pools[0].FitNodes)
	got = ok[consoleapi.CapacityAnswer](serveAPI(t, w.store, w.now, nil), "capacity", values("size", "3"))
	assert.Nil(t, got.Pools[0].Fits, "only of sizes that are reported")
}

// What is too old is not capacity, and the cluster is named.
func TestCapacityThatEnded(t *testing.T) {
	w := newWorld(t)
	w.write(queries.Fit, tags{queries.Cluster: "c1", queries.Resource: "nvidia.com/gpu", queries.RequestSize: "8"}, 20*time.Minute, 10*time.Minute, constant(3))
	got := ok[consoleapi.CapacityAnswer](serveAPI(t, w.store, w.now, nil), "capacity", nil)
	assert.Equal(t, consoleapi.NoScheduling, *got.Reason)
	require.Len(t, got.Silent, 1)
	assert.Equal(t, "c1", *got.Silent[0].Cluster)
	assert.WithinDuration(t, w.now.Add(-10*time.Minute), got.Silent[0].Last, 5*time.Minute)
	assert.True(t, got.Freshness.Stale)
}
