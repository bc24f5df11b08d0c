// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

var n1 = Node{Name: "n1"}

// GKE counts /dev minors, which need not be in the order of the index.
func TestJoinsByMinor(t *testing.T) {
	now := time.Unix(100, 0)
	for name, tt := range map[string]struct {
		held string // GKE's id of the device that the pod a has
		seen []Device
		want map[string]string // owner by hw.id
	}{
		"the driver's library knows them": {
			"nvidia0",
			[]Device{{ID: "GPU-a", Index: "0", Minor: "1"}, {ID: "GPU-b", Index: "1", Minor: "0"}},
			map[string]string{"GPU-a": "", "GPU-b": "a"},
		},
		"a MIG instance": {
			"nvidia0/gi7",
			[]Device{{ID: "GPU-a/7", Parent: "GPU-a", Index: "0", Minor: "1", Instance: "7"}, {ID: "GPU-b/7", Parent: "GPU-b", Index: "1", Minor: "0", Instance: "7"}},
			map[string]string{"GPU-a/7": "", "GPU-b/7": "a"},
		},
		"an exporter does not": {
			"nvidia0",
			[]Device{{ID: "GPU-a", Index: "0"}, {ID: "GPU-b", Index: "1"}},
			map[string]string{"GPU-a": "a", "GPU-b": ""},
		},
		"both: the exporter's label of a pod that has ended is no doubt": {
			"nvidia0",
			[]Device{{ID: "GPU-b", Index: "1", Label: pod("ended")}, {ID: "GPU-b", Index: "1", Minor: "0"}},
			map[string]string{"GPU-b": "a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := New(Config{MaxAge: maxAge, MaxDevices: 100})
			md := pmetric.NewMetrics()
			point(md, 1, pod("a"), 1, names.HwID, "n1/"+tt.held)
			k.Learn(Allocations(nil, md.ResourceMetrics()), now)
			for i := range tt.seen {
				tt.seen[i].Node = n1
				require.True(t, k.See(&tt.seen[i], now))
			}
			for id, want := range tt.want {
				assert.Equal(t, want, k.Lookup(id, now).Owner.Pod, id)
			}
		})
	}
}

// What only one of two sources knows of a device stays while it arrives: neither takes it
// from the other, and a source that has ended is forgotten.
func TestTwoSourcesOfOneDevice(t *testing.T) {
	now := time.Unix(100, 0)
	k := New(Config{MaxAge: maxAge, MaxDevices: 100})
	exporter := Device{ID: "GPU-a", Node: n1, Index: "0", Label: pod("a")}
	driver := Device{ID: "GPU-a", Node: n1, Minor: "3", MIGUUID: "MIG-1"}
	both := exporter
	both.Minor, both.MIGUUID = "3", "MIG-1"
	k.See(&exporter, now)
	k.See(&driver, now)
	first := k.seen.get("GPU-a")
	require.Equal(t, both, first.Device)
	for range 3 {
		now = now.Add(15 * time.Second)
		k.See(&exporter, now)
		k.See(&driver, now)
		require.Same(t, first, k.seen.get("GPU-a"), "nothing is joined again")
	}
	exporter.Label = pod("b")
	k.See(&exporter, now)
	both.Label = exporter.Label
	require.Equal(t, both, k.seen.get("GPU-a").Device)
	now = now.Add(maxAge + time.Second)
	k.See(&exporter, now)
	require.Equal(t, exporter, k.seen.get("GPU-a").Device)
}
