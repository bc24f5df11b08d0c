// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/amdgpureceiver"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gaudireceiver"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/intelgpureceiver"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/vendors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/disk"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/strictjson"
)

// A vendorScript is what happens to a node with two boards of another vendor than NVIDIA.
type vendorScript struct {
	node   vendors.Node // without its name and boards
	faults []vendors.Fault
	lasts  time.Duration
	kills  []time.Duration // of the agent
	// events are all events of the node, as "name state", in any order.
	events []string
	// reasons are those that must be seen on the metrics of the boards.
	reasons []string
	// inputs are families without which none of the events is raised.
	inputs []string
}

func during(kind vendors.Kind, after, lasts time.Duration, change ...func(*vendors.Fault)) vendors.Fault {
	board := 1
	f := vendors.Fault{Kind: kind, After: strictjson.Duration(after), For: strictjson.Duration(lasts), Board: &board}
	for _, c := range change {
		c(&f)
	}
	return f
}

func code(n int) func(*vendors.Fault)      { return func(f *vendors.Fault) { f.Code = n } }
func ofNode(f *vendors.Fault)              { f.Board = nil }
func partition(n int) func(*vendors.Fault) { return func(f *vendors.Fault) { f.Partition = n } }
func mode(compute, memory string) func(*vendors.Fault) {
	return func(f *vendors.Fault) { f.Compute, f.Memory = compute, memory }
}

func both(event string) []string { return []string{event + " raised", event + " cleared"} }

var (
	mi300x = vendors.Node{Model: "MI300X"}
	cpx    = vendors.Node{Model: "MI300X", Compute: "cpx", Memory: "nps4"}
	gaudi3 = vendors.Node{Model: "Gaudi3"}
	max1   = vendors.Node{Model: "Max1550", Version: "1"}
	b60    = vendors.Node{Model: "B60"}
)

// vendorScripts have each event about boards of other vendors, and what raises none.
var vendorScripts = map[string]vendorScript{
	"amd_ras": {
		node: mi300x, faults: []vendors.Fault{during(vendors.RAS, 2*time.Minute, 0, code(20))}, lasts: 6 * time.Minute, kills: []time.Duration{4 * time.Minute},
		events: []string{"gpu.ras raised", "gpu.health raised"}, reasons: []string{"ras_fatal"}, inputs: []string{"gpu_afid_errors"},
	},
	"amd_exporter_health": {
		node: mi300x, faults: []vendors.Fault{during(vendors.Unhealthy, 2*time.Minute, 3*time.Minute)}, lasts: 8 * time.Minute, kills: []time.Duration{4 * time.Minute},
		events: both("gpu.health"), reasons: []string{"exporter_health"}, inputs: []string{"gpu_health"},
	},
	"amd_ecc": {
		node: mi300x, faults: []vendors.Fault{during(vendors.ECC, 2*time.Minute, 0, code(3))}, lasts: 6 * time.Minute, kills: []time.Duration{4 * time.Minute},
		events: []string{"gpu.ecc.uncorrected raised", "gpu.health raised"}, reasons: []string{"ecc_uncorrected"}, inputs: []string{"gpu_ecc_uncorrect_total"},
	},
	"amd_throttle": {
		node: mi300x, faults: []vendors.Fault{during(vendors.Throttle, 2*time.Minute, 12*time.Minute)}, lasts: 32 * time.Minute, kills: []time.Duration{9 * time.Minute},
		events: slices.Concat(both("gpu.throttle"), both("gpu.temperature"), both("gpu.health")), reasons: []string{"throttle"},
	},
	"amd_mode_change": {node: cpx, faults: []vendors.Fault{during(vendors.ModeChange, 2*time.Minute, 5*time.Minute, mode("spx", "nps1"))}, lasts: 12 * time.Minute},
	"amd_partition":   {node: cpx, faults: []vendors.Fault{during(vendors.PartitionMissing, 2*time.Minute, 5*time.Minute, partition(3))}, lasts: 12 * time.Minute},
	"amd_partition_0": {node: cpx, faults: []vendors.Fault{during(vendors.PartitionMissing, 2*time.Minute, 5*time.Minute, partition(0))}, lasts: 12 * time.Minute},
	"amd_repeated":    {node: cpx, faults: []vendors.Fault{during(vendors.PartitionRepeated, 2*time.Minute, 5*time.Minute, partition(3))}, lasts: 12 * time.Minute},
	"amd_energy": {node: mi300x, faults: []vendors.Fault{
		during(vendors.EnergyGlitch, 2*time.Minute, 15*time.Second), during(vendors.PowerSpike, 4*time.Minute, 15*time.Second), during(vendors.StuckEnergy, 0, 0),
	}, lasts: 12 * time.Minute},
	"amd_lost": {
		node: cpx, faults: []vendors.Fault{during(vendors.DeviceFails, 2*time.Minute, 5*time.Minute)}, lasts: 12 * time.Minute,
		events: slices.Concat(both("gpu.device.lost"), both("gpu.health")), reasons: []string{"lost"},
	},
	"amd_empty_page": {
		node: mi300x, faults: []vendors.Fault{during(vendors.EmptyPage, 2*time.Minute, 5*time.Minute, ofNode)}, lasts: 12 * time.Minute, events: both("gpu.exporter.down"),
	},
	"amd_renamed": {
		node: mi300x, faults: []vendors.Fault{during(vendors.FieldsRenamed, 2*time.Minute, 5*time.Minute, ofNode)}, lasts: 12 * time.Minute, events: both("gpu.exporter.down"),
	},
	"amd_parts_renamed": {
		node: cpx, faults: []vendors.Fault{during(vendors.FieldsRenamed, 2*time.Minute, 5*time.Minute, ofNode)}, lasts: 12 * time.Minute, events: both("gpu.exporter.down"),
	},
	"gaudi_renamed": {
		node: gaudi3, faults: []vendors.Fault{during(vendors.FieldsRenamed, 2*time.Minute, 5*time.Minute, ofNode)}, lasts: 12 * time.Minute, events: both("gpu.exporter.down"),
	},
	"intel_1_renamed": {
		node: max1, faults: []vendors.Fault{during(vendors.FieldsRenamed, 2*time.Minute, 5*time.Minute, ofNode)}, lasts: 12 * time.Minute, events: both("gpu.exporter.down"),
	},
	"intel_2_renamed": {
		node: b60, faults: []vendors.Fault{during(vendors.FieldsRenamed, 2*time.Minute, 5*time.Minute, ofNode)}, lasts: 12 * time.Minute, events: both("gpu.exporter.down"),
	},
	"gaudi_rate_limit": {node: gaudi3, faults: []vendors.Fault{during(vendors.RateLimit, 2*time.Minute, 15*time.Second, ofNode)}, lasts: 6 * time.Minute},
	"gaudi_link": {
		node: gaudi3, faults: []vendors.Fault{during(vendors.LinkDown, 2*time.Minute, 5*time.Minute, code(3))}, lasts: 12 * time.Minute, kills: []time.Duration{5 * time.Minute},
		events: slices.Concat(both("gpu.link.down"), both("gpu.health")), reasons: []string{"link_down"}, inputs: []string{"habanalabs_nic_port_status"},
	},
	"gaudi_rows": {
		node: gaudi3, faults: []vendors.Fault{during(vendors.RowsPending, 2*time.Minute, 5*time.Minute)}, lasts: 14 * time.Minute, kills: []time.Duration{5 * time.Minute},
		events: slices.Concat(both("gpu.memory.repair"), both("gpu.health")), reasons: []string{"remap_pending"}, inputs: []string{"habanalabs_pending_rows_state"},
	},
	"intel_1_reset": {
		node: max1, faults: []vendors.Fault{during(vendors.DeviceReset, 2*time.Minute, 0)}, lasts: 6 * time.Minute, kills: []time.Duration{4 * time.Minute},
		events: []string{"gpu.device.reset raised"}, inputs: []string{"xpum_resets"},
	},
	"intel_1_link": {
		node: max1, faults: []vendors.Fault{during(vendors.LinkDown, 2*time.Minute, 5*time.Minute)}, lasts: 12 * time.Minute,
		events: slices.Concat(both("gpu.link.down"), both("gpu.health")), reasons: []string{"link_down"}, inputs: []string{"xpum_xelink_port_status"},
	},
	"intel_1_ecc": {
		node: max1, faults: []vendors.Fault{during(vendors.ECC, 2*time.Minute, 0, code(2)), during(vendors.DeviceReset, 5*time.Minute, 0)}, lasts: 9 * time.Minute,
		events: slices.Concat([]string{"gpu.ecc.uncorrected raised", "gpu.device.reset raised"}, both("gpu.health")), reasons: []string{"ecc_uncorrected"},
	},
	"intel_2_health": {
		node: b60, faults: []vendors.Fault{during(vendors.Unhealthy, 2*time.Minute, 3*time.Minute)}, lasts: 8 * time.Minute, kills: []time.Duration{4 * time.Minute},
		events: both("gpu.health"), reasons: []string{"exporter_health"}, inputs: []string{"hw_status"},
	},
}

// Each fault of a simulated board of another vendor raises its events once and clears them
// once, across a kill of the agent, and nothing else. Without its input it raises none.
func TestVendors(t *testing.T) {
	for name, sc := range vendorScripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events, reasons := sc.play(t)
			assert.Equal(t, slices.Sorted(slices.Values(sc.events)), events)
			for _, r := range sc.reasons {
				assert.Contains(t, reasons, r)
			}
		})
		if len(sc.inputs) > 0 {
			t.Run(name+"_without", func(t *testing.T) {
				t.Parallel()
				events, reasons := sc.play(t, sc.inputs...)
				assert.Empty(t, events)
				assert.Empty(t, reasons)
			})
		}
	}
}

// vendorReasons are the reasons that these scripts raise.
func vendorReasons() (all []string) {
	for _, sc := range vendorScripts {
		if len(sc.inputs) > 0 {
			all = append(all, sc.reasons...)
		}
	}
	return all
}

// play plays the script with pages without some families. It returns the events, and the
// reasons that were active.
func (sc *vendorScript) play(t *testing.T, without ...string) (events, reasons []string) {
	t.Helper()
	const interval = 15 * time.Second
	var clock atomic.Int64
	clock.Store(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	n := sc.node
	n.Name, n.Boards = nodeName, 2
	cfg := vendors.Config{Seed: 1, Nodes: []vendors.Node{n}}
	for _, f := range sc.faults {
		f.Node = nodeName
		cfg.Faults = append(cfg.Faults, f)
	}
	fleet, err := vendors.New(cfg, func() time.Time { return time.Unix(0, clock.Load()).UTC() })
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(leaveOut(fleet.Handler(nodeName), without))
	server.Config.SetKeepAlivesEnabled(false) // an open connection would stop the fake clock
	server.Start()
	defer server.Close()
	of := map[string]receiver.Factory{
		vendors.AMD: amdgpureceiver.NewFactory(), vendors.Gaudi: gaudireceiver.NewFactory(), vendors.Intel: intelgpureceiver.NewFactory(),
	}[fleet.Vendor(nodeName)]
	into, d := newReported(), disk.New()
	found := map[string]bool{}
	synctest.Test(t, func(t *testing.T) {
		scrape := map[string]any{
			"endpoints": []any{server.URL + "/metrics"}, "collection_interval": every(interval), "node_name": nodeName,
		}
		rules := map[string]any{"rules": []any{"device"}, "storage": disk.ID.String(), "staleness": every(3 * interval)}
		a := startOf(t, of, d, into, scrape, rules)
		kills := slices.Clone(sc.kills)
		for at := time.Second; at <= sc.lasts; at += time.Second {
			time.Sleep(time.Second)
			synctest.Wait()
			clock.Store(time.Now().UnixNano())
			if len(kills) > 0 && at >= kills[0] {
				kills = kills[1:]
				a.stop(t, true)
				a = startOf(t, of, d, into, scrape, rules)
			}
			into.mu.Lock()
			for _, b := range into.boards {
				for r := range maps.Keys(b.reasons) {
					found[r] = true
				}
			}
			into.mu.Unlock()
		}
		a.stop(t, false)
	})
	assert.Empty(t, into.wrong)
	slices.Sort(into.events)
	return into.events, slices.Sorted(maps.Keys(found))
}

// leaveOut leaves families out of an exporter's page.
func leaveOut(page http.Handler, families []string) http.Handler {
	if len(families) == 0 {
		return page
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		whole := httptest.NewRecorder()
		page.ServeHTTP(whole, r)
		maps.Copy(w.Header(), whole.Header())
		w.Header().Del("Content-Length")
		w.WriteHeader(whole.Code)
		for line := range strings.Lines(whole.Body.String()) {
			name := line
			if i := strings.IndexAny(line, "{ "); i >= 0 {
				name = line[:i]
			}
			if !slices.ContainsFunc(families, func(f string) bool { return name == f || name == f+"_total" }) {
				_, _ = w.Write([]byte(line))
			}
		}
	})
}
