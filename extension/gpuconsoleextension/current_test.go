// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// A device that did nothing is idle-held once its owner has held it for idle_for: what it did not do
// before is not this owner's.
func TestIdleCountsFromTheOwnersStart(t *testing.T) {
	w := newWorld(t)
	w.exporter("n", 1, 0)
	a, b := held("ml", "notes", "notes-0"), held("ml", "notes", "notes-1")
	idle := map[string]float64{"utilization": 0.01, "used": gib}
	for i, tt := range []struct {
		before, now tags // owners until, and from, so long ago
		changed     time.Duration
	}{
		{before: a, now: a, changed: time.Minute},
		{before: a, now: b, changed: time.Minute},
		{before: nil, now: b, changed: time.Minute},
		{before: b, now: a, changed: 18 * time.Minute},
		{before: a, now: nil, changed: time.Minute},
	} {
		id := fmt.Sprint(uuid, i)
		w.gpu(gpu{tags: device("n", id, i, tt.before), values: idle, from: 30 * time.Minute, until: tt.changed + interval})
		if fmt.Sprint(tt.before) != fmt.Sprint(tt.now) {
			for name := range idle {
				metric, more := figure(name)
				w.end(metric, device("n", id, i, tt.before).with(more), tt.changed)
			}
		}
		w.gpu(gpu{tags: device("n", id, i, tt.now), values: idle, from: tt.changed})
		share := 0.0
		if tt.now != nil {
			share = 1
		}
		w.write(queries.Allocation, allocation("n", id, tt.now), tt.changed, 0, constant(share))
	}
	// The owner of the last one was not known for a moment, as when its agent started again.
	id := uuid + "9"
	w.gpu(gpu{tags: device("n", id, 9, a), values: idle, from: 30 * time.Minute, until: 6 * time.Minute})
	w.gpu(gpu{tags: device("n", id, 9, nil), values: idle, from: 345 * time.Second, until: 5 * time.Minute})
	w.gpu(gpu{tags: device("n", id, 9, a), values: idle, from: 285 * time.Second})
	w.write(queries.Allocation, allocation("n", id, a), 20*time.Minute, 0, constant(1))
	devices := ok[consoleapi.NodesAnswer](serveAPI(t, w.store, w.now, nil), "nodes", nil).Nodes[0].Devices
	var got []consoleapi.DeviceState
	for _, d := range devices {
		got = append(got, d.State)
	}
	assert.Equal(t, []consoleapi.DeviceState{
		consoleapi.DeviceIdle, consoleapi.DeviceHeld, consoleapi.DeviceHeld, consoleapi.DeviceIdle, consoleapi.DeviceFree, consoleapi.DeviceIdle,
	}, got)
}

// The kubelet lists MIG instances by ids that telemetry does not have. Those without an owner are
// free where the numbers of each profile agree, as gpu_cost has it, and else unknown.
func TestInstancesThatTheKubeletCannotName(t *testing.T) {
	type listed struct {
		profile, pod string
	}
	for name, test := range map[string]struct {
		listed []listed
		want   consoleapi.DeviceState
	}{
		"as many of the profile":        {[]listed{{"3g.20gb", "a"}, {"1g.5gb.me", "b"}, {"1g.5gb.me", ""}}, consoleapi.DeviceFree},
		"one more that is free":         {[]listed{{"3g.20gb", "a"}, {"1g.5gb.me", "b"}, {"1g.5gb.me", ""}, {"1g.5gb.me", ""}}, consoleapi.DeviceUnknown},
		"a pod that no label has":       {[]listed{{"3g.20gb", "a"}, {"1g.5gb.me", "b"}, {"1g.5gb.me", "c"}}, consoleapi.DeviceUnknown},
		"none that is free":             {[]listed{{"3g.20gb", "a"}, {"1g.5gb.me", "b"}}, consoleapi.DeviceUnknown},
		"a label of a former pod":       {[]listed{{"3g.20gb", "a"}, {"1g.5gb.me", ""}}, consoleapi.DeviceUnknown},
		"one without a profile":         {[]listed{{"3g.20gb", "a"}, {"1g.5gb.me", "b"}, {"1g.5gb.me", ""}, {"", ""}}, consoleapi.DeviceUnknown},
		"another profile is not listed": {[]listed{{"1g.5gb.me", "b"}, {"1g.5gb.me", ""}}, consoleapi.DeviceFree},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for id, of := range map[string][2]string{"1": {"3g.20gb", "a"}, "7": {"1g.5gb+me", "b"}, "8": {"1g.5gb+me", ""}} {
				more := tags{queries.Parent: uuid + "0", queries.MIGProfile: of[0], queries.MIGInstance: id}
				if of[1] != "" {
					more = more.with(held("ml", of[1], of[1]))
				}
				w.gpu(gpu{tags: device("n", uuid+"0/"+id, 0, more), values: map[string]float64{"utilization": 0.1}})
			}
			for i, l := range test.listed {
				more, value := tags{queries.Resolved: "false", queries.Resource: "nvidia.com/gpu"}, 0.
				if l.profile != "" {
					more[queries.Resource] = "nvidia.com/mig-" + l.profile
				}
				if l.pod != "" {
					more, value = more.with(held("ml", l.pod, l.pod)), 1
				}
				w.write(queries.Allocation, allocation("n", fmt.Sprint("n/MIG-", i), more), 20*time.Minute, 0, constant(value))
			}
			nodes := ok[consoleapi.NodesAnswer](serveAPI(t, w.store, w.now, nil), "nodes", nil).Nodes
			require.Len(t, nodes, 1)
			for _, d := range nodes[0].Devices {
				switch d.ID {
				case uuid + "0":
					assert.Equal(t, consoleapi.DeviceSplit, d.State)
				case uuid + "0/8":
					assert.Equal(t, test.want, d.State)
				default:
					assert.Equal(t, consoleapi.DeviceHeld, d.State)
				}
			}
		})
	}
}
