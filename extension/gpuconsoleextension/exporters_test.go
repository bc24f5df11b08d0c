// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// hosts are two hosts with exporters that are scraped by address on one machine: what
// describes an exporter names no host, and what describes a device no address.
func hosts(w *world, first, second float64) {
	for port, up := range map[string]float64{"9400": first, "9401": second} {
		w.write(queries.ExporterUp, tags{queries.Address: "localhost", queries.Port: port}, 20*time.Minute, 0, constant(up))
	}
	for i, host := range []string{"a", "b"} {
		until := time.Duration(0)
		if []float64{first, second}[i] == 0 {
			until = 10 * time.Minute
		}
		w.gpu(gpu{tags: tags{queries.Host: host, queries.Device: uuid + host, queries.Index: "0"}, values: busy(0.5), until: until})
	}
}

// Exporters that share an address are distinguished by their ports, and none is
// taken for a node.
func TestExportersByAddress(t *testing.T) {
	for name, test := range map[string]struct {
		first, second float64
		state         consoleapi.State
		up, down      int
		named         []string
		nodes         map[string]consoleapi.ExporterState
	}{
		"all up": {
			1, 1, consoleapi.NoServices, 2, 0, nil,
			map[string]consoleapi.ExporterState{"a": consoleapi.ExporterUp, "b": consoleapi.ExporterUp},
		},
		"one down": { // the other one is b's: its page had b's last sample
			0, 1, consoleapi.NoServices, 1, 1, []string{"localhost:9400"},
			map[string]consoleapi.ExporterState{"a": consoleapi.ExporterDown, "b": consoleapi.ExporterUp},
		},
		"all down": {
			0, 0, consoleapi.ScraperDown, 0, 2, []string{"localhost:9400", "localhost:9401"},
			map[string]consoleapi.ExporterState{"a": consoleapi.ExporterDown, "b": consoleapi.ExporterDown},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			hosts(w, test.first, test.second)
			if test.up == 0 { // a summary is still made, and reports that nothing reports
				w.service(svc{namespace: "ml", name: "chat", pods: pods{missing: 2}, partial: 1, ratio: 1})
			}
			c := serveAPI(t, w.store, w.now, nil)
			status := ok[consoleapi.StatusAnswer](c, "status", nil)
			assert.Equal(t, test.state, status.State)
			assert.Equal(t, test.up, *status.Telemetry.ExportersUp)
			assert.Equal(t, test.down, *status.Telemetry.ExportersDown)
			var named []string
			for _, e := range status.Telemetry.DownExporters {
				assert.Equal(t, test.down == 1, e.Node != nil)
				named = append(named, e.Address)
			}
			assert.Equal(t, test.named, named)
			if test.state == consoleapi.ScraperDown {
				assert.Equal(t, 600.0, *status.Freshness.DataAge, "an exporter's silence is no data")
			}

			nodes := ok[consoleapi.NodesAnswer](c, "nodes", nil)
			states := map[string]consoleapi.ExporterState{}
			for _, n := range nodes.Nodes {
				states[n.Node] = n.Exporter
			}
			assert.Equal(t, test.nodes, states)
			if test.down == 1 {
				assert.Empty(t, nodes.Exporters)
				return
			}
			require.Len(t, nodes.Exporters, 2)
			assert.Len(t, ok[consoleapi.NodesAnswer](c, "nodes", values("q", ":9401")).Exporters, 1)
		})
	}
}

// An exporter by address is joined to the host that its page names: all points of
// one scrape have one time.
func TestExportersOfHosts(t *testing.T) {
	type exporter struct {
		host   string // on its page
		offset time.Duration
		up     bool
		frozen bool
	}
	up := exporter{"a", time.Second, true, false}
	for name, test := range map[string]struct {
		exporters map[string]exporter // by address
		nodes     map[string]consoleapi.NodeState
		strays    int
	}{
		"one exporter, one node": {map[string]exporter{"10.0.0.1": {"a", 0, false, false}}, map[string]consoleapi.NodeState{"a": consoleapi.NodeExporterDown}, 0},
		"up, down and frozen": {
			map[string]exporter{"10.0.0.1": up, "10.0.0.2": {"b", 2 * time.Second, false, false}, "10.0.0.3": {"c", 3 * time.Second, true, true}},
			map[string]consoleapi.NodeState{"a": consoleapi.NodeOK, "b": consoleapi.NodeExporterDown, "c": consoleapi.NodeExporterFrozen}, 0,
		},
		"scraped at the same time as another one": {
			map[string]exporter{"10.0.0.1": up, "10.0.0.2": {"b", time.Second, false, false}, "10.0.0.3": {"c", 3 * time.Second, true, false}},
			map[string]consoleapi.NodeState{"a": consoleapi.NodeOK, "b": consoleapi.NodeExporterDown, "c": consoleapi.NodeOK}, 0,
		},
		"by its address": {
			map[string]exporter{"a": {"a", 0, true, false}, "b": {"b", 0, false, false}},
			map[string]consoleapi.NodeState{"a": consoleapi.NodeOK, "b": consoleapi.NodeExporterDown}, 0,
		},
		"not known which": { // but none is lost
			map[string]exporter{"10.0.0.1": up, "10.0.0.2": {"b", time.Second, false, false}, "10.0.0.3": {"c", time.Second, false, false}},
			map[string]consoleapi.NodeState{"a": consoleapi.NodeOK, "b": consoleapi.NodeExporterDown, "c": consoleapi.NodeExporterDown}, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for address, e := range test.exporters {
				id := tags{queries.Address: address, queries.Port: "9400"}
				silent := e.offset
				if !e.up {
					silent += 2 * time.Minute
				}
				w.write(queries.ExporterUp, id, 20*time.Minute+e.offset, e.offset, func(i int) float64 {
					if !e.up && i > 72 {
						return 0
					}
					return 1
				})
				if e.frozen {
					w.write(queries.Frozen, id, 20*time.Minute+e.offset, e.offset, constant(1))
				}
				w.gpu(gpu{tags: tags{queries.Host: e.host, queries.Device: uuid + e.host, queries.Index: "0"}, values: busy(0.5), from: 20*time.Minute + e.offset, until: silent})
			}
			nodes := ok[consoleapi.NodesAnswer](serveAPI(t, w.store, w.now, nil), "nodes", nil)
			states := map[string]consoleapi.NodeState{}
			for _, n := range nodes.Nodes {
				states[n.Node] = n.State
				assert.Equal(t, n.State == consoleapi.NodeExporterFrozen || n.State == consoleapi.NodeExporterDown, n.Devices[0].Stale)
			}
			assert.Equal(t, test.nodes, states)
			assert.Len(t, nodes.Exporters, test.strays)
		})
	}
}

// While the fields of an exporter are not known, its devices are not lost, idle or well, whatever
// they were before: the node and the status show why.
func TestExporterWithUnknownFields(t *testing.T) {
	w := newWorld(t)
	w.exporter("n", 1, 0)
	w.write(queries.Unrecognized, tags{queries.Cluster: "c1", queries.Node: "n", queries.Address: "10.0.0.1", queries.Port: "9400"}, 10*time.Minute, 0, constant(1))
	w.gpu(gpu{tags: device("n", uuid+"0", 0, nil), values: busy(0), from: 3 * time.Hour, until: 10 * time.Minute})
	w.gpu(gpu{tags: device("n", uuid+"1", 1, nil), values: busy(0), from: 3 * time.Hour, until: 10 * time.Minute})
	w.write(queries.Allocation, allocation("n", uuid+"0", held("ml", "chat", "chat-0")), 20*time.Minute, 0, constant(1))
	c := serveAPI(t, w.store, w.now, nil)
	node := ok[consoleapi.NodesAnswer](c, "nodes", nil).Nodes[0]
	assert.Equal(t, consoleapi.NodeExporterUnrecognized, node.State)
	assert.Equal(t, consoleapi.ExporterUnrecognized, node.Exporter)
	assert.Equal(t, consoleapi.NodeCounts{Devices: 2, Held: 1, Unknown: 1}, node.Counts)
	require.Len(t, node.Reasons, 1)
	assert.Equal(t, "The exporter of node n answers with fields that are not known: none of its page has the utilization, memory or power of a GPU.", node.Reasons[0].Text)
	for i, want := range []consoleapi.DeviceState{consoleapi.DeviceHeld, consoleapi.DeviceUnknown} {
		assert.Equal(t, want, node.Devices[i].State)
		assert.Equal(t, consoleapi.HealthState("unknown"), node.Devices[i].Health.State)
		assert.Nil(t, node.Devices[i].Values.Utilization)
		assert.True(t, node.Devices[i].Stale)
	}
	status := ok[consoleapi.StatusAnswer](c, "status", nil).Telemetry
	assert.Equal(t, []int{0, 0, 0, 1}, []int{*status.ExportersUp, *status.ExportersDown, *status.ExportersFrozen, *status.ExportersUnrecognized})
	assert.Equal(t, consoleapi.ExporterUnrecognized, status.DownExporters[0].State)
}

// An exporter's pod gets another address with every restart: what it was before
// is not one that is down.
func TestExporterThatMoved(t *testing.T) {
	w := newWorld(t)
	report := func(address string, from, until time.Duration) {
		w.write(queries.ExporterUp, tags{queries.Node: "n", queries.Address: address, queries.Port: "9400"}, from, until, constant(1))
	}
	report("10.0.0.1", 20*time.Minute, 6*time.Minute)
	report("10.0.0.2", 5*time.Minute, 0)
	c := serveAPI(t, w.store, w.now, nil)
	status := ok[consoleapi.StatusAnswer](c, "status", nil)
	assert.Equal(t, 1, *status.Telemetry.ExportersUp)
	assert.Equal(t, 0, *status.Telemetry.ExportersDown)
	assert.Empty(t, ok[consoleapi.NodesAnswer](c, "nodes", nil).Exporters)
}
