// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/age"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
)

// A device that is silent while its exporter is up is lost, and of what no source reports
// now the last owner need not be the present one.
func TestStates(t *testing.T) {
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	j := age.NewJudge(noon, 90*time.Second, nil)
	ahead, now, stale := noon.Add(time.Hour), noon, noon.Add(-2*time.Minute)
	idle, busy := true, false
	owner := []consoleapi.Holder{{Namespace: "ml", Pod: "chat-0"}}
	for name, test := range map[string]struct {
		device   Device
		exporter consoleapi.ExporterState
		want     consoleapi.DeviceState
	}{
		"nothing is stored":                  {exporter: consoleapi.ExporterUp, want: consoleapi.DeviceUnknown},
		"silent, its exporter is up":         {device: Device{Seen: stale, Allocated: now, Owners: owner}, exporter: consoleapi.ExporterUp, want: consoleapi.DeviceLost},
		"silent, as its exporter":            {device: Device{Seen: stale, Owners: owner}, exporter: consoleapi.ExporterDown, want: consoleapi.DeviceUnknown},
		"silent, and the kubelet reports it": {device: Device{Seen: stale, Allocated: now, Owners: owner}, exporter: consoleapi.ExporterDown, want: consoleapi.DeviceHeld},
		"the kubelet alone, long ago":        {device: Device{Allocated: stale, Free: true}, want: consoleapi.DeviceUnknown},
		"held":                               {device: Device{Seen: now, Owners: owner, Idle: &busy}, want: consoleapi.DeviceHeld},
		"held by a clock that is ahead":      {device: Device{Seen: ahead, Owners: owner}, want: consoleapi.DeviceHeld},
		"held and idle":                      {device: Device{Seen: now, Owners: owner, Idle: &idle}, want: consoleapi.DeviceIdle},
		"idle without an owner":              {device: Device{Seen: now, Idle: &idle}, want: consoleapi.DeviceUnknown},
		"free":                               {device: Device{Seen: now, Free: true}, want: consoleapi.DeviceFree},
	} {
		t.Run(name, func(t *testing.T) {
			d := test.device
			d.ID, d.Node = Place{"c1", "GPU-a"}, Place{"c1", "n"}
			inv := &Inventory{Devices: map[Place]*Device{d.ID: &d}, Nodes: map[Place]*Node{d.Node: {ID: d.Node, Exporter: test.exporter}}}
			settle(inv, j)
			assert.Equal(t, test.want, d.State)
		})
	}
}

// A board that the kubelet gives away as a whole counts as one, whatever its tiles: they have
// no owners of their own. Where they have, the board is split.
func TestTilesOfAWholeBoard(t *testing.T) {
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	idle := true
	owner := []consoleapi.Holder{{Namespace: "ml", Pod: "chat-0"}}
	for name, test := range map[string]struct {
		board, tile Device
		want, tiles consoleapi.DeviceState
		counts      consoleapi.NodeCounts
	}{
		"held":          {Device{Allocated: noon, Owners: owner}, Device{}, consoleapi.DeviceHeld, consoleapi.DeviceHeld, consoleapi.NodeCounts{Devices: 1, Held: 1}},
		"held and idle": {Device{Allocated: noon, Owners: owner, Idle: &idle}, Device{}, consoleapi.DeviceIdle, consoleapi.DeviceIdle, consoleapi.NodeCounts{Devices: 1, Held: 1, Idle: 1}},
		"free":          {Device{Allocated: noon, Free: true}, Device{}, consoleapi.DeviceFree, consoleapi.DeviceFree, consoleapi.NodeCounts{Devices: 1, Free: 1}},
		"not reported":  {Device{}, Device{}, consoleapi.DeviceSplit, consoleapi.DeviceUnknown, consoleapi.NodeCounts{Devices: 1, Unknown: 1}},
		"held by tiles": {Device{}, Device{Allocated: noon, Owners: owner}, consoleapi.DeviceSplit, consoleapi.DeviceHeld, consoleapi.NodeCounts{Devices: 1, Held: 1}},
		"both reported": {Device{Allocated: noon, Owners: owner}, Device{Allocated: noon, Free: true}, consoleapi.DeviceSplit, consoleapi.DeviceFree, consoleapi.NodeCounts{Devices: 1, Free: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			n := &Node{ID: Place{"c1", "n"}, Exporter: consoleapi.ExporterUp}
			inv := &Inventory{Devices: map[Place]*Device{}, Nodes: map[Place]*Node{n.ID: n}}
			add := func(d Device, id, parent string) *Device {
				d.ID, d.Node, d.Parent, d.Seen = Place{"c1", id}, n.ID, parent, noon
				inv.Devices[d.ID] = &d
				return &d
			}
			board := add(test.board, "PCI-n@0000:4d:00.0", "")
			tiles := []*Device{add(test.tile, "PCI-n@0000:4d:00.0/0", board.ID.Name), add(test.tile, "PCI-n@0000:4d:00.0/1", board.ID.Name)}
			settle(inv, age.NewJudge(noon, 90*time.Second, nil))
			assert.Equal(t, test.want, board.State)
			for _, tile := range tiles {
				assert.Equal(t, test.tiles, tile.State)
			}
			assert.Equal(t, test.counts, n.Counts())
		})
	}
}

// Instances that are silent while their device, or another of them, reports are those of
// an earlier split. Where all are silent none is forgotten.
func TestPartsOfAnEarlierSplit(t *testing.T) {
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	now, stale := noon, noon.Add(-2*time.Minute)
	for name, test := range map[string]struct {
		device, first, second time.Time
		parts                 int
	}{
		"all report":                  {now, now, now, 2},
		"one is silent":               {now, now, stale, 1},
		"the device is silent too":    {stale, now, stale, 1},
		"nothing of it reports":       {stale, stale, stale, 2},
		"the device is whole again":   {now, stale, stale, 0},
		"nothing of it was ever seen": {parts: 2},
	} {
		t.Run(name, func(t *testing.T) {
			inv := &Inventory{Devices: map[Place]*Device{}, Nodes: map[Place]*Node{{"c1", "n"}: {}}}
			for id, seen := range map[string]time.Time{"GPU-a": test.device, "GPU-a/1/0": test.first, "GPU-a/2/0": test.second} {
				d := &Device{ID: Place{"c1", id}, Node: Place{"c1", "n"}, Seen: seen}
				if id != "GPU-a" {
					d.Parent = "GPU-a"
				}
				inv.Devices[d.ID] = d
			}
			settle(inv, age.NewJudge(noon, 90*time.Second, nil))
			assert.Len(t, inv.Devices[Place{"c1", "GPU-a"}].Parts, test.parts)
			assert.Len(t, inv.Devices, 1+test.parts)
		})
	}
}
