// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

const uuid = "GPU-00000000-0000-0000-0000-00000000000"

func (w *world) exporter(node string, up, until float64) {
	w.t.Helper()
	w.write(queries.ExporterUp, tags{queries.Cluster: "c1", queries.Node: node, queries.Address: "10.0.0.1", queries.Port: "9400"},
		20*time.Minute, time.Duration(until)*time.Second, constant(up))
}

func allocation(node, id string, more tags) tags {
	return tags{queries.Cluster: "c1", queries.Node: node, queries.Device: id, "k8s_resource_name": "nvidia.com/gpu",
		queries.Source: "pod_resources", queries.Sharing: "none", queries.Resolved: "true"}.with(more)
}

func busy(utilization float64) map[string]float64 {
	return map[string]float64{
		"utilization": utilization, "used": 40 * gib, "total": 80 * gib, "tensor": utilization / 2, "sm": utilization, "dram": 0,
		"fp16": 0, "fp32": 0.1, "power": 100 + 600*utilization, "temperature": 60,
	}
}

// fleetOfNodes has a device in every state.
func fleetOfNodes(w *world) {
	// well: held, held and idle, free, unknown.
	w.exporter("well", 1, 0)
	a, b := held("ml", "chat", "chat-0"), held("ml", "notes", "notes-0")
	w.gpu(gpu{tags: device("well", uuid+"0", 0, a), values: busy(0.5)})
	w.gpu(gpu{tags: device("well", uuid+"1", 1, b), values: busy(0.01)})
	w.gpu(gpu{tags: device("well", uuid+"2", 2, nil), values: busy(0)})
	w.gpu(gpu{tags: device("well", uuid+"3", 3, nil), values: map[string]float64{"utilization": 0}})
	w.write(queries.Allocation, allocation("well", uuid+"0", a), 20*time.Minute, 0, constant(1))
	w.write(queries.Allocation, allocation("well", uuid+"1", b), 20*time.Minute, 0, constant(1))
	w.write(queries.Allocation, allocation("well", uuid+"2", nil), 20*time.Minute, 0, constant(0))
	w.write(queries.Schedulable, tags{queries.Cluster: "c1", queries.Node: "well"}, 20*time.Minute, 0, constant(1))

	// faulty: one device silent though its exporter is up, one with XIDs and heat.
	w.exporter("faulty", 1, 0)
	w.gpu(gpu{tags: device("faulty", uuid+"4", 0, nil), values: busy(0.5), until: 8 * time.Minute})
	hot := device("faulty", uuid+"5", 1, nil)
	w.gpu(gpu{tags: hot, values: busy(0.5)})
	w.write(queries.XIDErrors, hot.with(tags{queries.XIDCode: "79"}), 5*time.Minute, 0, constant(1)) // appeared
	w.write(queries.XIDErrors, hot.with(tags{queries.XIDCode: "31", queries.XIDDerived: "true"}), 20*time.Minute, 0, func(i int) float64 { return float64(3 + i/40) })
	w.write(queries.XIDErrors, hot.with(tags{queries.XIDCode: "13"}), 20*time.Minute, 0, constant(7)) // old
	w.write(queries.XIDLast, hot, 20*time.Minute, 0, constant(79))
	w.write(queries.HwErrors, hot.with(tags{queries.ErrorType: "uncorrected", "hw_type": "gpu"}), 20*time.Minute, 0, func(i int) float64 { return float64(i / 30) })
	w.write(queries.Throttle, hot.with(tags{queries.Reason: "hw_thermal"}), 20*time.Minute, 0, constant(1))
	w.write(queries.Throttle, hot.with(tags{queries.Reason: "sw_power_cap"}), 20*time.Minute, 0, constant(0))
	w.write(queries.PowerLimit, hot.with(tags{queries.LimitKind: "enforced"}), 20*time.Minute, 0, constant(600))
	w.write(queries.PowerLimit, hot.with(tags{queries.LimitKind: "management"}), 20*time.Minute, 0, constant(700))

	// down: its exporter does not answer, the kubelet does.
	w.exporter("down", 0, 0)
	w.gpu(gpu{tags: device("down", uuid+"6", 0, held("ml", "chat", "chat-1")), values: busy(0.5), until: 2 * time.Minute})
	w.write(queries.Allocation, allocation("down", uuid+"6", held("ml", "chat", "chat-1")), 20*time.Minute, 0, constant(1))

	// lost: nothing for ten minutes.
	w.exporter("lost", 1, 600)
	w.gpu(gpu{tags: device("lost", uuid+"7", 0, held("ml", "chat", "chat-2")), values: busy(0.5), until: 10 * time.Minute})
	w.write(queries.Allocation, allocation("lost", uuid+"7", held("ml", "chat", "chat-2")), 20*time.Minute, 10*time.Minute, constant(1))

	// split: MIG instances; shared: replicas.
	w.exporter("split", 1, 0)
	w.gpu(gpu{tags: device("split", uuid+"8", 0, nil), values: map[string]float64{"used": 10 * gib, "total": 80 * gib, "power": 200}})
	mig := func(instance string, more tags) tags {
		return device("split", uuid+"8/"+instance, 0, tags{queries.Parent: uuid + "8", queries.MIGProfile: "3g.40gb", queries.MIGInstance: instance}.with(more))
	}
	c := held("ml", "mig", "mig-0")
	w.gpu(gpu{tags: mig("1", c), values: map[string]float64{"utilization": 0.5, "used": 10 * gib, "total": 40 * gib}})
	w.gpu(gpu{tags: mig("10", nil), values: map[string]float64{"utilization": 0, "used": 0, "total": 40 * gib}})
	w.gpu(gpu{tags: mig("7", nil), values: map[string]float64{"utilization": 0}, from: 30 * time.Minute, until: 16 * time.Minute}) // an older layout
	w.write(queries.Allocation, allocation("split", uuid+"8/1", c), 20*time.Minute, 0, constant(1))
	w.write(queries.Allocation, allocation("split", uuid+"8/10", nil), 20*time.Minute, 0, constant(0))

	w.exporter("shared", 1, 0)
	w.write(queries.Frozen, tags{queries.Cluster: "c1", queries.Node: "shared", queries.Address: "10.0.0.1", queries.Port: "9400"}, 20*time.Minute, 0, constant(1))
	w.gpu(gpu{tags: device("shared", uuid+"9", 0, nil), values: busy(0.3)})
	for i := range 2 {
		h := held("ml", "note", fmt.Sprintf("note-%d", i))
		id := fmt.Sprintf("%s9::%d", uuid, i)
		w.gpu(gpu{tags: device("shared", id, 0, h.with(tags{queries.Parent: uuid + "9", "gpu_value_scope": "device"})), values: map[string]float64{"utilization": 0.3}})
		w.write(queries.Allocation, allocation("shared", id, h.with(tags{queries.Sharing: "time_slicing"})), 20*time.Minute, 0, constant(0.5))
	}
	w.write(queries.Allocation, allocation("shared", uuid+"9::2", nil), 20*time.Minute, 0, constant(0))
}

func TestNodes(t *testing.T) {
	w := newWorld(t)
	fleetOfNodes(w)
	w.service(svc{cluster: "c1", namespace: "ml", name: "waits", pods: pods{notRunning: 3, pending: 3}})
	c := serveAPI(t, w.store, w.now, nil)
	got := ok[consoleapi.NodesAnswer](c, "nodes", nil)
	var order []string
	nodes := map[string]consoleapi.Node{}
	for _, n := range got.Nodes {
		order = append(order, n.Node)
		nodes[n.Node] = n
	}
	require.Equal(t, []string{"lost", "faulty", "down", "shared", "split", "well"}, order, "the worst first")
	assert.Equal(t, 3, *got.Pending.Pods)
	assert.Equal(t, []consoleapi.PendingService{{Cluster: pointer("c1"), Namespace: "ml", Service: "waits", Pods: 3}}, got.Pending.Services)

	assert.Equal(t, consoleapi.NodeCounts{Devices: 4, Free: 1, Held: 2, Idle: 1, Unknown: 1}, nodes["well"].Counts)
	assert.Equal(t, consoleapi.NodeCounts{Devices: 2, Lost: 1, Unknown: 1}, nodes["faulty"].Counts)
	assert.Equal(t, consoleapi.NodeCounts{Devices: 1, Held: 1}, nodes["down"].Counts)
	assert.Equal(t, consoleapi.NodeCounts{Devices: 1, Held: 1}, nodes["split"].Counts)
	assert.Equal(t, consoleapi.NodeCounts{Devices: 1, Held: 1}, nodes["shared"].Counts)

	assert.Equal(t, consoleapi.NodeLost, nodes["lost"].State)
	assert.Equal(t, consoleapi.ExporterUnknown, nodes["lost"].Exporter)
	assert.Equal(t, 600.0, *nodes["lost"].DataAge)
	assert.True(t, nodes["lost"].Stale)
	assert.Equal(t, consoleapi.NodeExporterDown, nodes["down"].State)
	assert.Equal(t, 120.0, *nodes["down"].DataAge)
	assert.Equal(t, consoleapi.NodeExporterFrozen, nodes["shared"].State)
	assert.True(t, *nodes["well"].Schedulable)
	assert.Nil(t, nodes["down"].Schedulable)

	well := nodes["well"].Devices
	require.Len(t, well, 4)
	assert.Equal(t, consoleapi.DeviceHeld, well[0].State)
	assert.False(t, *well[0].Idle)
	assert.Equal(t, []consoleapi.Holder{{Namespace: "ml", Service: pointer("chat"), Pod: "chat-0", Container: pointer("main"), Share: pointer(1.0), Sharing: pointer("none"), Source: "pod_resources"}}, well[0].Holders)
	assert.Equal(t, 0.5, *well[0].Values.Utilization)
	assert.Equal(t, 0.25, *well[0].Values.Tensor)
	assert.Zero(t, *well[0].Values.FP16)
	assert.Equal(t, 400.0, *well[0].Values.Power)
	assert.Equal(t, 60.0, *well[0].Temperature)
	assert.Nil(t, well[0].MemoryTemperature)
	assert.Nil(t, well[0].XID)
	assert.Nil(t, well[0].UncorrectedErrors)
	assert.Equal(t, consoleapi.DeviceIdle, well[1].State)
	assert.Equal(t, consoleapi.DeviceFree, well[2].State)
	assert.True(t, *well[2].Idle)
	assert.Equal(t, consoleapi.DeviceUnknown, well[3].State)
	assert.Nil(t, well[3].Values.Power)

	faulty := nodes["faulty"].Devices
	assert.Equal(t, consoleapi.DeviceLost, faulty[0].State)
	assert.Equal(t, 480.0, *faulty[0].DataAge)
	assert.Equal(t, consoleapi.Values{}, faulty[0].Values)
	assert.Equal(t, []consoleapi.XIDErrors{{Code: "31", Count: 2, LowerBound: true}, {Code: "79", Count: 1}}, faulty[1].XIDErrors)
	assert.Equal(t, 79, *faulty[1].XID)
	assert.Equal(t, 2.0, *faulty[1].UncorrectedErrors)
	assert.Equal(t, []string{"hw_thermal"}, faulty[1].Throttle)
	assert.Equal(t, 600.0, *faulty[1].PowerLimit)

	split := nodes["split"].Devices
	require.Len(t, split, 3, "the instance of an older layout is not there")
	assert.Equal(t, consoleapi.DeviceSplit, split[0].State)
	assert.Equal(t, []string{uuid + "8", uuid + "8/1", uuid + "8/10"}, []string{split[0].ID, split[1].ID, split[2].ID})
	assert.Equal(t, "3g.40gb", *split[1].MIGProfile)
	assert.Equal(t, consoleapi.DeviceHeld, split[1].State)
	assert.Equal(t, consoleapi.DeviceFree, split[2].State)
	assert.Nil(t, split[1].Values.Power)

	shared := nodes["shared"].Devices
	require.Len(t, shared, 4)
	assert.Len(t, shared[0].Holders, 2)
	assert.Equal(t, consoleapi.DeviceHeld, shared[0].State)
	assert.Equal(t, 0.5, *shared[1].Holders[0].Share)
	assert.Equal(t, "time_slicing", *shared[1].Holders[0].Sharing)
	assert.Equal(t, consoleapi.DeviceFree, shared[3].State)

	down := nodes["down"].Devices[0]
	assert.Equal(t, consoleapi.DeviceHeld, down.State)
	assert.True(t, down.Stale)

	// The fleet is the sum of its nodes, and PromQL's.
	sum := ok[consoleapi.ServicesAnswer](c, "services", nil).Summary
	assert.Equal(t, 10, *sum.Devices)
	assert.Equal(t, 5, *sum.DevicesHeld)
	assert.Equal(t, 1, *sum.DevicesIdle)
	assert.Equal(t, 1, *sum.DevicesFree)
	assert.Equal(t, 3, *sum.DevicesUnknown)
	assert.Equal(t, 1, *sum.DevicesLost)
	assert.Equal(t, 2, *sum.DevicesBusy)
	fresh := ` and (time() - timestamp(%[1]s) <= 90)`
	promql := func(aggregate, series string) float64 {
		return w.ask(fmt.Sprintf(aggregate+"(%[1]s"+fresh+")", series))
	}
	assert.Equal(t, promql("sum", `hw_gpu_memory_usage_bytes{hw_parent="",k8s_node_name!="shared"}`), *sum.MemoryUsed, "without the frozen exporter's")
	assert.Equal(t, promql("sum", `hw_power_watts{hw_parent="",k8s_node_name!="shared"}`), *sum.Power)
	assert.InDelta(t, promql("avg", `hw_gpu_utilization_ratio{hw_parent="",k8s_node_name!="shared"}`), *sum.Utilization, 1e-12)
	assert.Equal(t, 400.0+106+100+400+200, *sum.Power)
	assert.Equal(t, 9*80.0*gib, *sum.MemoryTotal, "of all devices that ever had any")
	assert.Equal(t, consoleapi.Coverages{
		Utilization: &consoleapi.Coverage{Devices: 5, Of: 9}, MemoryUsed: &consoleapi.Coverage{Devices: 5, Of: 10},
		MemoryTotal: &consoleapi.Coverage{Devices: 9, Of: 10}, Power: &consoleapi.Coverage{Devices: 5, Of: 10},
	}, sum.Coverage)

	one := ok[consoleapi.NodesAnswer](c, "nodes", values("q", "FAULT", "limit", "1"))
	require.Equal(t, 1, one.Total)
	assert.Nil(t, one.Next)
}

// A device that changes hands belongs to who holds it now, and what its former
// owner's series state is over.
func TestDeviceChangesHands(t *testing.T) {
	w := newWorld(t)
	before, after := held("ml", "old", "old-0"), held("ml", "new", "new-0")
	d := device("n", uuid+"0", 0, nil)
	w.gpu(gpu{tags: d.with(before), values: map[string]float64{"utilization": 0.9}, until: time.Minute})
	w.end(queries.Utilization, d.with(before).with(tags{queries.Task: "general"}), time.Minute-interval)
	w.gpu(gpu{tags: d.with(after), values: map[string]float64{"utilization": 0.2}, from: time.Minute - interval})
	w.write(queries.XIDErrors, d.with(before).with(tags{queries.XIDCode: "31"}), 20*time.Minute, time.Minute, constant(4))
	w.end(queries.XIDErrors, d.with(before).with(tags{queries.XIDCode: "31"}), time.Minute-interval)
	w.write(queries.XIDErrors, d.with(after).with(tags{queries.XIDCode: "31"}), time.Minute-interval, 0, constant(4))
	c := serveAPI(t, w.store, w.now, nil)
	got := ok[consoleapi.NodesAnswer](c, "nodes", nil)
	require.Len(t, got.Nodes, 1)
	require.Len(t, got.Nodes[0].Devices, 1)
	one := got.Nodes[0].Devices[0]
	require.Len(t, one.Holders, 1)
	assert.Equal(t, "new-0", one.Holders[0].Pod)
	assert.Equal(t, consoleapi.SourceExporterLabels, one.Holders[0].Source)
	assert.Nil(t, one.Holders[0].Share)
	assert.Equal(t, 0.2, *one.Values.Utilization)
	assert.Empty(t, one.XIDErrors, "the counter went on under another holder")
	assert.False(t, *one.Idle)
	assert.Equal(t, http.StatusNotFound, c.get("pods", values("cluster", "c1", "namespace", "ml", "service", "old")).status, "nothing is known of it any more")
	assert.Equal(t, 1, ok[consoleapi.PodsAnswer](c, "pods", values("cluster", "c1", "namespace", "ml", "service", "new")).Total)
}

func pointer[T any](v T) *T { return &v }

func TestPods(t *testing.T) {
	w := newWorld(t)
	fleetOfNodes(w)
	w.service(svc{cluster: "c1", namespace: "ml", name: "chat", pods: pods{reporting: 1, missing: 2, warming: 1}, devices: 1, silent: 2, partial: 1, ratio: 2.0 / 3,
		states: map[string]string{"chat-0": "reporting", "chat-1": "missing", "chat-2": "missing", "chat-10": "warming"}, figures: averages(0.5)})
	w.service(svc{cluster: "c1", namespace: "ml", name: "big", pods: pods{degraded: 1}, devices: 2, silent: 1, states: map[string]string{"big-0": "degraded"}, figures: averages(0.5)})
	for i, v := range []float64{0.2, 0.4, 0.9} {
		until := time.Duration(0)
		if i == 2 {
			until = 3 * time.Minute // silent
		}
		w.gpu(gpu{tags: device("big", fmt.Sprintf("GPU-b%d", i), i, held("ml", "big", "big-0")), values: busy(v), until: until})
	}
	w.write(queries.PodState, tags{queries.Cluster: "c1", queries.Namespace: "ml", queries.Service: "big", queries.Pod: "big-0", queries.StateOfPod: "reporting"}, time.Minute, 0, constant(0)) // the state it left
	c := serveAPI(t, w.store, w.now, nil)
	chat := ok[consoleapi.PodsAnswer](c, "pods", values("cluster", "c1", "namespace", "ml", "service", "chat")).Pods
	require.Len(t, chat, 4)
	assert.Equal(t, []string{"chat-1", "chat-2", "chat-0", "chat-10"}, []string{chat[0].Pod, chat[1].Pod, chat[2].Pod, chat[3].Pod})
	assert.Equal(t, consoleapi.PodMissing, chat[0].State)
	assert.Equal(t, consoleapi.ExporterDown, chat[0].Exporter)
	assert.Equal(t, "down", *chat[0].Node)
	assert.Equal(t, 120.0, *chat[0].DataAge)
	assert.True(t, chat[0].Stale)
	assert.Equal(t, 0.5, *chat[0].Values.Utilization, "as it was")
	assert.Equal(t, consoleapi.Coverage{Of: 1}, *chat[0].Coverage.Utilization)
	require.Len(t, chat[0].Devices, 1)
	assert.Equal(t, 600.0, *chat[1].DataAge)
	assert.Equal(t, 0.5, *chat[2].Values.Utilization)
	assert.Equal(t, 40.0*gib, *chat[2].Values.MemoryUsed)
	assert.Equal(t, consoleapi.ExporterUp, chat[2].Exporter)
	assert.Equal(t, consoleapi.PodWarming, chat[3].State)
	assert.Nil(t, chat[3].Node)
	assert.Nil(t, chat[3].DataTime)
	assert.Empty(t, chat[3].Devices)

	big := ok[consoleapi.PodsAnswer](c, "pods", values("cluster", "c1", "namespace", "ml", "service", "big")).Pods
	require.Len(t, big, 1)
	assert.Equal(t, consoleapi.PodDegraded, big[0].State)
	require.Len(t, big[0].Devices, 3)
	assert.InDelta(t, 0.3, *big[0].Values.Utilization, 1e-12, "the mean over the devices that report")
	assert.Equal(t, 80.0*gib, *big[0].Values.MemoryUsed, "the sum over them")
	assert.InDelta(t, 560, *big[0].Values.Power, 1e-9)
	assert.Equal(t, 240.0*gib, *big[0].Values.MemoryTotal, "a silent device keeps its capacity")
	assert.Equal(t, consoleapi.Coverage{Devices: 2, Of: 3}, *big[0].Coverage.MemoryUsed)
	assert.True(t, big[0].Devices[2].Stale)

	assert.Equal(t, 1, *ok[consoleapi.ServiceAnswer](c, "service", values("cluster", "c1", "namespace", "ml", "service", "chat")).Service.Devices.Busy)
	elsewhere := c.get("pods", values("namespace", "ml", "service", "chat"))
	assert.Equal(t, http.StatusNotFound, elsewhere.status, "in no cluster")
	assert.Equal(t, consoleapi.NotFound, reasonOf(t, elsewhere).Reason)
	w.service(svc{cluster: "c1", namespace: "ml", name: "empty", pods: pods{notRunning: 1}})
	assert.Zero(t, ok[consoleapi.PodsAnswer](c, "pods", values("cluster", "c1", "namespace", "ml", "service", "empty")).Total, "known, and none of its pods is")
}
