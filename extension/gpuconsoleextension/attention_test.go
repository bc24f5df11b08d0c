// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// aboutGPU is an event about the first device of fleetOfOne.
func aboutGPU(w *world, name, state, severity string, ago time.Duration, attributes map[string]any) *store.Event {
	return &store.Event{
		ID: "id-" + state, Name: name, Key: name + "/c1/" + uuid + "0", State: state, Severity: severity, Time: w.now.Add(-ago), Message: "It is so.",
		Resource:   map[string]any{"k8s.cluster.name": "c1", "k8s.node.name": "n", "hw.id": uuid + "0"},
		Attributes: attributes,
	}
}

// fleetOfOne is a service with one of the two devices of a node, and all is well.
func fleetOfOne(w *world) {
	owner := held("ml", "chat", "chat-0")
	w.exporter("n", 1, 0)
	w.gpu(gpu{tags: device("n", uuid+"0", 0, owner), values: busy(0.5)})
	w.gpu(gpu{tags: device("n", uuid+"1", 1, nil), values: busy(0)})
	// The kubelet names the pod, and no service.
	w.write(queries.Allocation, allocation("n", uuid+"0", owner.with(tags{queries.Service: ""})), 20*time.Minute, 0, constant(1))
	w.service(svc{cluster: "c1", namespace: "ml", name: "chat", pods: pods{reporting: 1}, devices: 1, figures: averages(0.5), states: map[string]string{"chat-0": "reporting"}})
}

// What is known to be wrong with a device is a reason of the device, its node, its
// service and the fleet: nothing of it is hidden by figures that look well.
func TestAttentionOfDevices(t *testing.T) {
	gpu0 := func(w *world) tags { return device("n", uuid+"0", 0, held("ml", "chat", "chat-0")) }
	state := func(metric string, more tags) func(*world) {
		return func(w *world) { w.write(metric, gpu0(w).with(more), 20*time.Minute, 0, constant(1)) }
	}
	reported := func(name, severity string, ago time.Duration, attributes map[string]any) func(*world) {
		return func(w *world) { w.report(aboutGPU(w, name, "raised", severity, ago, attributes)) }
	}
	xid := map[string]any{"gpu.xid.code": 79.0}
	for name, test := range map[string]struct {
		fault    func(*world)
		kind     consoleapi.Attention // empty: all is well
		severity consoleapi.Severity
		label    string
	}{
		"nothing":            {fault: func(*world) {}},
		"throttled":          {state(queries.Throttle, tags{queries.Reason: "hw_thermal"}), consoleapi.Throttled, "warn", "throttled: hw thermal"},
		"power cap":          {fault: state(queries.Throttle, tags{queries.Reason: "power_cap"})},
		"throttle event":     {reported("gpu.throttle", "warn", time.Hour, map[string]any{"gpu.throttle.reasons": []any{"sw_thermal"}}), consoleapi.Throttled, "warn", "throttled: sw thermal"},
		"remap failure":      {state(queries.RowRemapFailure, nil), consoleapi.RowRemapFailure, "error", "row remap failed"},
		"pages to retire":    {state(queries.RetiredPending, nil), consoleapi.RetiredPages, "warn", "pages wait to be retired"},
		"hot":                {reported("gpu.temperature", "warn", time.Hour, map[string]any{"hw.sensor_location": "gpu", "gpu.event.threshold": 70.0}), consoleapi.Temperature, "warn", "hot, above 70 °C"},
		"hot memory":         {reported("gpu.temperature", "error", time.Hour, map[string]any{"hw.sensor_location": "memory", "gpu.event.threshold": 105.0}), consoleapi.MemoryTemperature, "error", "memory, above 105 °C"},
		"memory pressure":    {reported("gpu.memory.pressure", "error", time.Hour, map[string]any{"gpu.event.threshold": 0.98}), consoleapi.MemoryPressure, "error", "memory full, above 98 %"},
		"row to be remapped": {reported("gpu.row_remap.pending", "warn", time.Hour, nil), consoleapi.OtherCondition, "warn", "row remap pending"},
		"a later condition":  {reported("gpu.new", "error", time.Hour, nil), consoleapi.OtherCondition, "error", "new"},
		"lost":               {reported("gpu.device.lost", "error", time.Hour, nil), consoleapi.LostDevice, "error", "GPU lost"},
		"fatal XID":          {reported("gpu.xid", "fatal", time.Hour, xid), consoleapi.XID, "error", "XID 79"},
		"harmless XID":       {reported("gpu.xid", "warn", time.Hour, xid), consoleapi.XID, "info", "XID 79"},
		"XID of info":        {fault: reported("gpu.xid", "info", time.Hour, xid)},
		"XID of yesterday":   {fault: reported("gpu.xid", "fatal", 25*time.Hour, xid)},
		"ECC notice":         {reported("gpu.ecc.uncorrected", "error", time.Hour, nil), consoleapi.ECCUncorrected, "error", "ECC uncorrected"},
		"ECC without event": {func(w *world) {
			w.write(queries.HwErrors, gpu0(w).with(tags{queries.ErrorType: "uncorrected"}), 20*time.Minute, 0, func(i int) float64 { return float64(i / 30) })
		}, consoleapi.ECCUncorrected, "error", "ECC uncorrected"},
		"XID, the GPU was reset since": {fault: func(w *world) {
			reported("gpu.xid", "fatal", time.Hour, xid)(w)
			w.write(queries.XIDLast, gpu0(w), 20*time.Minute, 0, constant(0))
		}},
		"XID, and the GPU keeps it": {func(w *world) {
			reported("gpu.xid", "fatal", time.Hour, xid)(w)
			state(queries.XIDLast, nil)(w)
		}, consoleapi.XID, "error", "XID 79"},
		"cleared": {fault: func(w *world) {
			reported("gpu.throttle", "warn", time.Hour, nil)(w)
			w.report(aboutGPU(w, "gpu.throttle", "cleared", "info", time.Minute, nil))
		}},
		"frozen exporter": {func(w *world) {
			w.write(queries.Frozen, tags{queries.Cluster: "c1", queries.Node: "n", queries.Address: "10.0.0.1", queries.Port: "9400"}, 20*time.Minute, 0, constant(1))
		}, consoleapi.FrozenExporter, "warn", "exporter frozen"},
		"exporter with unknown fields": {func(w *world) {
			w.write(queries.Unrecognized, tags{queries.Cluster: "c1", queries.Node: "n", queries.Address: "10.0.0.1", queries.Port: "9400"}, 20*time.Minute, 0, constant(1))
		}, consoleapi.UnrecognizedExporter, "warn", "exporter's fields not known"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			fleetOfOne(w)
			test.fault(w)
			c := serveAPI(t, w.store, w.now, nil)
			services := ok[consoleapi.ServicesAnswer](c, "services", nil)
			key := values("cluster", "c1", "namespace", "ml", "service", "chat")
			node := ok[consoleapi.NodesAnswer](c, "nodes", nil).Nodes[0]
			assert.Equal(t, "chat", *node.Devices[0].Holders[0].Service)
			if test.kind == "" {
				assert.Equal(t, 1, *services.Services[0].Devices.Busy)
			}
			places := map[string][]consoleapi.Reason{
				"services": services.Services[0].Reasons,
				"service":  ok[consoleapi.ServiceAnswer](c, "service", key).Service.Reasons,
				"node":     node.Reasons,
			}
			if test.kind != consoleapi.FrozenExporter && test.kind != consoleapi.UnrecognizedExporter {
				places["device"] = node.Devices[0].Reasons
				places["device of the pod"] = ok[consoleapi.PodsAnswer](c, "pods", key).Pods[0].Devices[0].Reasons
				assert.Empty(t, node.Devices[1].Reasons, "the other device is well")
			}
			pressing := test.severity == "error" || test.severity == "warn"
			if pressing {
				places["fleet"] = services.Summary.Reasons
			} else {
				assert.Empty(t, services.Summary.Reasons)
			}
			for place, got := range places {
				if test.kind == "" {
					assert.Empty(t, got, place)
					continue
				}
				require.Len(t, got, 1, place)
				assert.Equal(t, test.kind, got[0].Kind, place)
				assert.Equal(t, test.severity, got[0].Severity, place)
				assert.Equal(t, test.label, got[0].Label, place)
				assert.NotEmpty(t, got[0].Text, place)
				assert.Equal(t, "n", *got[0].Subject.Node, place)
			}
			attention, wanted := 0, consoleapi.NodeOK
			if pressing {
				attention, wanted = 1, consoleapi.NodeDegraded
			}
			if test.kind == consoleapi.FrozenExporter {
				wanted = consoleapi.NodeExporterFrozen
			}
			if test.kind == consoleapi.UnrecognizedExporter {
				wanted = consoleapi.NodeExporterUnrecognized
			}
			assert.Equal(t, attention, *services.Summary.Attention)
			assert.Equal(t, attention, services.Summary.ReasonsTotal)
			assert.Equal(t, wanted, node.State)
		})
	}
}

// An event and telemetry about the same fault are one reason, which the event
// explains; a split device's faults are those of its instances' owners.
func TestAttentionIsReportedOnce(t *testing.T) {
	w := newWorld(t)
	fleetOfNodes(w)
	w.service(svc{cluster: "c1", namespace: "ml", name: "mig", pods: pods{reporting: 1}, devices: 1, figures: averages(0.5)})
	remap := aboutGPU(w, "gpu.row_remap.failure", "raised", "error", time.Minute, nil)
	remap.Resource = map[string]any{"k8s.cluster.name": "c1", "k8s.node.name": "split", "hw.id": uuid + "8"}
	w.report(remap)
	w.write(queries.RowRemapFailure, device("split", uuid+"8", 0, nil), 20*time.Minute, 0, constant(1))
	c := serveAPI(t, w.store, w.now, nil)
	got := ok[consoleapi.ServiceAnswer](c, "service", values("cluster", "c1", "namespace", "ml", "service", "mig")).Service
	require.Equal(t, []consoleapi.Attention{consoleapi.RowRemapFailure}, got.Attention)
	assert.Equal(t, "id-raised", *got.Reasons[0].EventID)
	assert.Equal(t, w.now.Add(-time.Minute).UTC(), *got.Reasons[0].Since)
	assert.Equal(t, "It is so.", got.Reasons[0].Text)
	assert.Equal(t, "mig-0", *got.Reasons[0].Subject.Pod)

	kinds := map[string][]consoleapi.Attention{}
	for _, n := range ok[consoleapi.NodesAnswer](c, "nodes", nil).Nodes {
		for _, r := range n.Reasons {
			kinds[n.Node] = append(kinds[n.Node], r.Kind)
		}
	}
	assert.Equal(t, map[string][]consoleapi.Attention{
		"lost": {consoleapi.LostNode}, "down": {consoleapi.DownExporter}, "shared": {consoleapi.FrozenExporter}, "split": {consoleapi.RowRemapFailure},
		"faulty": {consoleapi.LostDevice, consoleapi.XID, consoleapi.XID, consoleapi.ECCUncorrected, consoleapi.Throttled},
	}, kinds)
	assert.Equal(t, 9, ok[consoleapi.ServicesAnswer](c, "services", nil).Summary.ReasonsTotal)
}

// An endpoint that does not get its deliveries is reported wherever the fleet is.
func TestAttentionOfEndpoints(t *testing.T) {
	w := newWorld(t)
	fleetOfOne(w)
	w.store.KeepAudit(1, &audit.Record{
		ID: "d1", Time: w.now.Add(-time.Hour), Receiver: "pager", URLHost: "hooks.example.com", Attempt: 1, MaxAttempts: 3, Outcome: audit.Failed,
		Status: 410, ErrorType: audit.ErrorGone, Events: []audit.Event{{ID: "e1", Name: "gpu.xid"}},
	})
	require.Eventually(t, func() bool { return len(w.store.Deliveries(store.DeliveryQuery{})) == 1 }, 5*time.Second, time.Millisecond)
	c := serveAPI(t, w.store, w.now, nil)
	for _, got := range [][]consoleapi.Reason{ok[consoleapi.StatusAnswer](c, "status", nil).Endpoints, ok[consoleapi.ServicesAnswer](c, "services", nil).Summary.Reasons} {
		require.Len(t, got, 1)
		assert.Equal(t, consoleapi.FailedDelivery, got[0].Kind)
		assert.Equal(t, "pager", *got[0].Endpoint)
		assert.Equal(t, "e1", *got[0].EventID)
		assert.Contains(t, got[0].Text, "410 Gone")
	}
	assert.Empty(t, ok[consoleapi.ServicesAnswer](c, "services", nil).Services[0].Reasons)
}
