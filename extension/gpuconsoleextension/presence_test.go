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

// A GPU that the kernel has suspended is there: nothing is read of it so that it stays so. One
// that is awake without readings is lost.
func TestASuspendedDeviceIsNotLost(t *testing.T) {
	for name, c := range map[string]struct {
		suspended float64
		state     consoleapi.DeviceState
	}{
		"suspended": {1, consoleapi.DeviceUnknown},
		"awake":     {0, consoleapi.DeviceLost},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(queries.ExporterUp, tags{queries.Cluster: "c1", queries.Node: "desk", queries.Address: "nvml"}, 20*time.Minute, 0, constant(1))
			d := device("desk", uuid+"0", 0, nil)
			w.gpu(gpu{tags: d, values: busy(0), until: 10 * time.Minute})
			w.write(queries.MemoryLimit, d, 595*time.Second, 0, constant(80*gib))
			w.write(queries.Suspended, d, 595*time.Second, 0, constant(c.suspended))
			got := ok[consoleapi.NodesAnswer](serveAPI(t, w.store, w.now, nil), "nodes", nil)
			require.Len(t, got.Nodes, 1)
			require.Len(t, got.Nodes[0].Devices, 1)
			assert.Equal(t, c.state, got.Nodes[0].Devices[0].State)
		})
	}
}

// A pod is as current as what its devices report, also where that is no utilization: an
// instance of A100 has none without DCGM.
func TestAPodOfADeviceWithoutUtilization(t *testing.T) {
	w := newWorld(t)
	w.exporter("n", 1, 0)
	w.gpu(gpu{tags: device("n", uuid+"0", 0, held("ml", "notes", "notes-0")), values: map[string]float64{"used": 10 * gib, "total": 40 * gib}})
	got := ok[consoleapi.PodsAnswer](serveAPI(t, w.store, w.now, nil), "pods", values("cluster", "c1", "namespace", "ml", "service", "notes"))
	require.Len(t, got.Pods, 1)
	require.NotNil(t, got.Pods[0].DataTime)
	assert.False(t, got.Pods[0].Stale)
}

// An XID counts from its first sample on, unless that came with the first sample
// of its device: what the exporter had counted before is not known.
func TestXIDs(t *testing.T) {
	ago := func(intervals int) time.Duration { return time.Duration(intervals) * interval }
	for name, test := range map[string]struct {
		device, xid time.Duration // ago, when they began
		value       func(int) float64
		want        []consoleapi.XIDErrors
	}{
		"with the device":                 {ago(20), ago(20), constant(3), nil},
		"with the device, now":            {0, 0, constant(3), nil},
		"rises after it":                  {ago(20), ago(20), func(i int) float64 { return float64(3 + min(i, 2)) }, []consoleapi.XIDErrors{{Code: "94", Count: 2}}},
		"one sample later":                {ago(20), ago(19), constant(1), []consoleapi.XIDErrors{{Code: "94", Count: 1}}},
		"ninety seconds later":            {ago(20), ago(14), constant(1), []consoleapi.XIDErrors{{Code: "94", Count: 1}}},
		"just now":                        {ago(20), 0, constant(1), []consoleapi.XIDErrors{{Code: "94", Count: 1}}},
		"just now, and the device is new": {ago(1), 0, constant(1), []consoleapi.XIDErrors{{Code: "94", Count: 1}}},
		"rises just now":                  {ago(20), ago(2), func(i int) float64 { return float64(1 + i/2) }, []consoleapi.XIDErrors{{Code: "94", Count: 2}}},
		"reset":                           {ago(60), ago(50), func(i int) float64 { return []float64{1, 2, 1}[i/17] }, []consoleapi.XIDErrors{{Code: "94", Count: 3}}},
	} {
		for _, reading := range []string{"utilization", "power"} { // a board in MIG mode has no utilization
			t.Run(name+", "+reading, func(t *testing.T) {
				w := newWorld(t)
				w.now = w.now.Add(50 * time.Second) // on no grid
				d := device("n", uuid+"0", 0, nil)
				metric, more := figure(reading)
				w.write(metric, d.with(more), test.device, 0, constant(0.5))
				w.write(queries.XIDErrors, d.with(tags{queries.XIDCode: "94"}), test.xid, 0, test.value)
				got := ok[consoleapi.NodesAnswer](serveAPI(t, w.store, w.now, nil), "nodes", nil)
				assert.ElementsMatch(t, test.want, got.Nodes[0].Devices[0].XIDErrors)
			})
		}
	}
}
