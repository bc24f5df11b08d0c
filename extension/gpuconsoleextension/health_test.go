// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// status writes the health of a board as gpu_events publishes it: a state, and reasons
// as "name state action".
func (w *world) status(id, state string, from, until time.Duration, reasons ...string) {
	w.t.Helper()
	board := tags{queries.Cluster: "c1", queries.Node: "n", queries.Device: id}
	for _, s := range consoleapi.HealthStates[:4] {
		v := 0.0
		if string(s) == state {
			v = 1
		}
		w.write(queries.BoardStatus, board.with(tags{queries.HwState: string(s), "hw_type": "gpu"}), from, until, constant(v))
	}
	for _, r := range reasons {
		part := strings.Fields(r)
		w.write(queries.BoardReason, board.with(tags{queries.HealthReason: part[0], queries.HwState: part[1], queries.HealthAction: part[2]}), from/2, until, constant(1))
	}
	w.write(queries.BoardCoverage, board, from, until, constant(2/float64(checks())))
}

// checks is how many reasons with inputs of their own fit the boards of the tests.
func checks() (n int) {
	for _, r := range names.HealthReasons() {
		if r.Check() && health.KindOf(uuid, "NVIDIA H100")&r.Of == r.Of {
			n++
		}
	}
	return n
}

// unwell is the event about the health of the first device of fleetOfOne.
func unwell(w *world, state string, ago time.Duration, reasons, causes []any) *store.Event {
	attributes := map[string]any{names.HwState: state}
	for name, list := range map[string][]any{
		names.GPUHealthReasons: reasons, names.GPUHealthCauses: causes, names.GPUHealthValues: {1.0, nil}, names.GPUHealthThresholds: {0.0, nil},
	} {
		written, err := json.Marshal(list) // as gpu_store keeps it
		require.NoError(w.t, err)
		attributes[name] = string(written)
	}
	e := aboutGPU(w, names.EventHealth, "raised", "error", ago, attributes)
	e.ID = "health-" + ago.String()
	return e
}

var chat = values("cluster", "c1", "namespace", "ml", "service", "chat")

func TestHealth(t *testing.T) {
	w := newWorld(t)
	fleetOfOne(w)
	gpu0 := device("n", uuid+"0", 0, held("ml", "chat", "chat-0"))
	w.write(queries.XIDLast, gpu0, 20*time.Minute, 0, constant(0))
	w.write(names.GPURowRemapFailure.Prometheus(), gpu0, 20*time.Minute, 0, constant(0))
	w.write(queries.RemappedRows, gpu0.with(tags{queries.ErrorType: "uncorrected"}), 20*time.Minute, 10*time.Minute, constant(3))
	w.write(queries.RemappedRows, gpu0.with(tags{queries.ErrorType: "uncorrected"}), 10*time.Minute-interval, 0, constant(5))
	w.status(uuid+"0", "failed", 20*time.Minute, 0, "nvlink_errors degraded reset_gpu", "sram_worn failed rma")
	w.status(uuid+"1", "ok", 20*time.Minute, 0)
	w.write(queries.Straggler, gpu0.with(tags{queries.StragglerCause: "link"}), 5*time.Minute, 0, constant(1))
	w.write(queries.NodeStatus, tags{queries.Cluster: "c1", queries.Node: "n", queries.HwState: "failed"}, 20*time.Minute, 0, constant(1))
	w.report(unwell(w, "degraded", 9*time.Minute, []any{"nvlink_errors"}, []any{"120 CRC errors a second"}))
	w.report(unwell(w, "failed", 5*time.Minute, []any{"sram_worn", "nvlink_errors"}, []any{"SRAM errors above the limit.", "120 CRC errors a second"}))
	c := serveAPI(t, w.store, w.now, nil)

	node := ok[consoleapi.NodesAnswer](c, "nodes", nil).Nodes[0]
	h := node.Devices[0].Health
	require.NotNil(t, h)
	assert.Equal(t, consoleapi.HealthFailed, h.State)
	assert.Equal(t, w.now.Add(-5*time.Minute).UTC(), *h.Since, "since it is failed")
	assert.Equal(t, "rma", *h.Action)
	assert.Nil(t, h.Score, "it is not published")
	assert.WithinRange(t, *h.WatchedSince, w.now.Add(-20*time.Minute), w.now.Add(-16*time.Minute))
	require.Len(t, h.Reasons, 2)
	assert.Equal(t, consoleapi.HealthReason{
		Name: "sram_worn", Device: pointer(uuid + "0"), State: consoleapi.HealthFailed, Action: "rma", Since: pointer(w.now.Add(-5 * time.Minute).UTC()), Text: "SRAM errors above the limit.",
		Value: pointer(1.0), Threshold: pointer(0.0), Runbook: "https://github.com/otelcol-gpu/otelcol-gpu/blob/main/docs/runbooks/health-sram-worn.md",
	}, h.Reasons[0], "the worst first")
	assert.Equal(t, "nvlink_errors", h.Reasons[1].Name)
	assert.Equal(t, w.now.Add(-9*time.Minute).UTC(), *h.Reasons[1].Since, "a reason goes on")
	assert.Nil(t, h.Reasons[1].Value)
	assert.Equal(t, 2, h.Coverage.WithData)
	assert.Equal(t, checks(), h.Coverage.Applicable)
	for reason, missing := range map[string]bool{"remap_failed": false, "xid_reset": false, "remap_worn": false, "fabric": true, "pcie_width": true} {
		assert.Equal(t, missing, strings.Contains(strings.Join(h.Coverage.Missing, " "), reason), reason)
	}
	assert.Equal(t, 5.0, *node.Devices[0].RemappedRows)
	assert.Equal(t, 2.0, *node.Devices[0].RemappedRowsRise)

	assert.Equal(t, "link", *node.Devices[0].Straggler)
	assert.Nil(t, node.Devices[1].Straggler)

	assert.Equal(t, consoleapi.HealthOK, node.Devices[1].Health.State)
	assert.Nil(t, node.Devices[1].Health.Since, "it was so from the start")
	assert.Equal(t, "none", *node.Devices[1].Health.Action)

	assert.Equal(t, consoleapi.HealthFailed, node.Health.State)
	assert.Equal(t, *h.Since, *node.Health.Since)
	assert.Equal(t, "rma", *node.Health.Action)
	assert.Len(t, node.Health.Reasons, 2)
	assert.Equal(t, 4, node.Health.Coverage.WithData)

	services := ok[consoleapi.ServicesAnswer](c, "services", nil)
	assert.Equal(t, &consoleapi.HealthCounts{OK: 1, Failed: 1}, services.Summary.Health)
	assert.Equal(t, &consoleapi.HealthCounts{Failed: 1}, services.Services[0].Devices.Health)
	assert.Equal(t, consoleapi.HealthFailed, ok[consoleapi.PodsAnswer](c, "pods", chat).Pods[0].Devices[0].Health.State)

	require.Len(t, node.Reasons, 1, "one board is one reason")
	r := node.Reasons[0]
	assert.Equal(t, consoleapi.Unhealthy, r.Kind)
	assert.Equal(t, consoleapi.SeverityError, r.Severity)
	assert.Equal(t, "failed: sram worn, nvlink errors", r.Label)
	assert.Equal(t, "health-5m0s", *r.EventID)
	assert.Equal(t, []consoleapi.Attention{consoleapi.Unhealthy}, services.Services[0].Attention)
	assert.Equal(t, 1, services.Summary.ReasonsTotal)
}

// What is known of no board, or not any more, is not ok.
func TestUnknownHealth(t *testing.T) {
	w := newWorld(t)
	fleetOfOne(w)
	c := serveAPI(t, w.store, w.now, nil)
	node := ok[consoleapi.NodesAnswer](c, "nodes", nil).Nodes[0]
	for _, h := range []consoleapi.Health{node.Health, *node.Devices[0].Health} {
		assert.Equal(t, consoleapi.Health{State: consoleapi.HealthUnknown, Reasons: []consoleapi.HealthReason{}}, h)
	}
	assert.Nil(t, ok[consoleapi.ServicesAnswer](c, "services", nil).Summary.Health, "nothing reports it")
	assert.Zero(t, ok[consoleapi.NodesAnswer](c, "nodes", values("attention", "true")).Total)

	w.status(uuid+"0", "failed", 20*time.Minute, 3*time.Minute, "sram_worn failed rma")
	w.status(uuid+"1", "ok", 20*time.Minute, 3*time.Minute)
	w.report(unwell(w, "failed", 9*time.Minute, []any{"sram_worn"}, []any{"SRAM errors above the limit."}))
	node = ok[consoleapi.NodesAnswer](c, "nodes", nil).Nodes[0]
	h := node.Devices[0].Health
	assert.Equal(t, consoleapi.HealthUnknown, h.State)
	require.Len(t, h.Reasons, 1, "the last that was known")
	assert.Equal(t, "SRAM errors above the limit.", h.Reasons[0].Text)
	assert.Nil(t, h.Action)
	assert.Nil(t, h.Coverage)
	assert.NotNil(t, h.WatchedSince)
	assert.Equal(t, consoleapi.HealthUnknown, node.Health.State)
	services := ok[consoleapi.ServicesAnswer](c, "services", nil)
	assert.Equal(t, &consoleapi.HealthCounts{Unknown: 2}, services.Summary.Health)
	assert.Equal(t, 1, services.Summary.ReasonsTotal, "it was not cleared")
	assert.Equal(t, 1, ok[consoleapi.NodesAnswer](c, "nodes", values("attention", "true")).Total)

	w.status(uuid+"1", "degraded", time.Minute, 0, "throttle degraded check_mechanics")
	node = ok[consoleapi.NodesAnswer](c, "nodes", nil).Nodes[0]
	assert.WithinRange(t, *node.Devices[1].Health.WatchedSince, w.now.Add(-20*time.Minute), w.now)
	assert.Equal(t, consoleapi.HealthDegraded, node.Health.State, "a board that is not well is not hidden by one that is not known")
}

// A node that has too few boards needs attention, also where the log has no event about it.
func TestANodeThatIsNotWellItself(t *testing.T) {
	w := newWorld(t)
	fleetOfOne(w)
	w.status(uuid+"0", "ok", time.Minute, 0)
	w.status(uuid+"1", "ok", time.Minute, 0)
	c := serveAPI(t, w.store, w.now, nil)
	assert.Zero(t, ok[consoleapi.NodesAnswer](c, "nodes", values("attention", "true")).Total)
	w.write(queries.NodeStatus, tags{queries.Cluster: "c1", queries.Node: "n", queries.HwState: "failed"}, time.Minute, 0, constant(1))
	assert.Equal(t, 1, ok[consoleapi.NodesAnswer](c, "nodes", values("attention", "true")).Total)
}

// A host without Kubernetes has no state of its own: that of its boards, if all are known.
func TestHealthOfAHost(t *testing.T) {
	w := newWorld(t)
	fleetOfOne(w)
	w.status(uuid+"0", "ok", time.Minute, 0)
	c := serveAPI(t, w.store, w.now, nil)
	of := func() consoleapi.Health { return ok[consoleapi.NodesAnswer](c, "nodes", nil).Nodes[0].Health }
	assert.Equal(t, consoleapi.HealthUnknown, of().State, "one is not known")
	w.status(uuid+"1", "ok", time.Minute, 0)
	assert.Equal(t, consoleapi.HealthOK, of().State)
	assert.WithinRange(t, *of().WatchedSince, w.now.Add(-time.Minute), w.now.Add(-40*time.Second), "of a young one")
}

// One fault is one problem: what a condition or a notice shows is not shown once more as
// the health of the board, and the event that sums up is not counted.
func TestHealthAndItsCauses(t *testing.T) {
	for reason, cause := range map[string]struct {
		event    string
		severity string
		kind     consoleapi.Attention // of the only reason
	}{
		"throttle":        {"gpu.throttle", "warn", consoleapi.Throttled},
		"temperature":     {"gpu.temperature", "error", consoleapi.Temperature},
		"remap_failed":    {"gpu.row_remap.failure", "error", consoleapi.RowRemapFailure},
		"remap_pending":   {"gpu.row_remap.pending", "warn", consoleapi.OtherCondition},
		"ecc_uncorrected": {"gpu.ecc.uncorrected", "error", consoleapi.ECCUncorrected},
		"xid_reset":       {"gpu.xid", "fatal", consoleapi.XID},
		"recovery_action": {"gpu.xid", "fatal", consoleapi.XID},
		"lost":            {"gpu.device.lost", "error", consoleapi.LostDevice},
		"fabric":          {"", "", consoleapi.Unhealthy},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			fleetOfOne(w)
			w.status(uuid+"0", "degraded", 20*time.Minute, 0, reason+" degraded reset_gpu")
			w.report(unwell(w, "degraded", time.Minute, []any{reason}, nil))
			raised := 0
			if cause.event != "" {
				w.report(aboutGPU(w, cause.event, "raised", cause.severity, 2*time.Minute, map[string]any{"gpu.xid.code": 79.0}))
				if !names.EventIsNotice(cause.event) {
					raised = 1
				}
			}
			c := serveAPI(t, w.store, w.now, nil)
			node := ok[consoleapi.NodesAnswer](c, "nodes", nil).Nodes[0]
			require.Len(t, node.Reasons, 1)
			assert.Equal(t, cause.kind, node.Reasons[0].Kind)
			assert.Equal(t, 1, ok[consoleapi.ServicesAnswer](c, "services", nil).Summary.ReasonsTotal)
			assert.Equal(t, raised, *ok[consoleapi.StatusAnswer](c, "status", nil).Telemetry.RaisedEvents)
			assert.Equal(t, 1, ok[consoleapi.EventsAnswer](c, "events", values("name", names.EventHealth)).Raised)
		})
	}

	// A notice that needs no attention any more does not hide what lasts.
	w := newWorld(t)
	fleetOfOne(w)
	w.status(uuid+"0", "failed", 20*time.Minute, 0, "xid_reset failed reset_gpu")
	w.report(aboutGPU(w, "gpu.xid", "raised", "fatal", 25*time.Hour, map[string]any{"gpu.xid.code": 119.0}))
	c := serveAPI(t, w.store, w.now, nil)
	node := ok[consoleapi.NodesAnswer](c, "nodes", nil).Nodes[0]
	require.Len(t, node.Reasons, 1)
	assert.Equal(t, "failed: xid reset", node.Reasons[0].Label)
	assert.Equal(t, "GPU 0 of n is not well: xid reset (failed).", node.Reasons[0].Text)
}
