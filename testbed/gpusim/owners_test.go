// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

// Every second of a device has an owner or none, and what boards burnt is what their
// counters rose by.
func TestUsage(t *testing.T) {
	start := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	pod := func(name string, at time.Duration, devices ...string) gpusim.Pod {
		return gpusim.Pod{Namespace: "ns", Name: name, Container: "main", Devices: devices, Load: gpusim.Training, Start: gpusim.Duration(at)}
	}
	later := pod("later", 0, "1")
	fl, err := gpusim.New(gpusim.Config{
		Seed: 1, Nodes: []gpusim.Node{{
			Name: "n", Version: "4.6", Model: "A100-SXM4-40GB", Devices: 3, Fields: "all", MIG: map[string][]string{"2": {"3g.20gb", "1g.5gb"}},
			Pods: []gpusim.Pod{pod("a", 0, "0"), pod("b", 0, "2:1")},
		}},
		Faults: []gpusim.Fault{{Node: "n", Kind: gpusim.NewPod, After: gpusim.Duration(time.Minute), Pod: &later, For: gpusim.Duration(90 * time.Second)}},
	}, func() time.Time { return start })
	require.NoError(t, err)
	const lasts = 10 * time.Minute
	energy := func(at time.Duration) float64 {
		sum, seen := 0.0, map[string]bool{}
		for _, d := range fl.TruthAt(start.Add(at)).Nodes[0].Devices {
			if !seen[d.UUID] {
				seen[d.UUID] = true
				sum += d.EnergyMilliJoule
			}
		}
		return sum
	}
	before := energy(0)
	usage, err := fl.UsageOf(0, lasts)
	require.NoError(t, err)
	owners, boards := map[string]int64{}, map[string]int64{}
	burnt, counted := 0.0, map[string]string{}
	for _, u := range usage {
		owners[u.Pod] += u.Seconds
		boards[u.Device] += u.Seconds
		if first, found := counted[u.Board]; !found || first == u.Device { // of the instances of a board one
			counted[u.Board] = u.Device
			burnt += u.BoardMilliJoules
		}
	}
	assert.Equal(t, map[string]int64{"a": 600, "b": 600, "later": 90, "": 600 - 90 + 600}, owners)
	assert.Len(t, boards, 4)
	for device, seconds := range boards {
		assert.Equal(t, int64(600), seconds, device)
	}
	assert.InDelta(t, energy(lasts)-before, burnt, 1)
	_, err = fl.UsageOf(time.Minute, 0)
	assert.ErrorContains(t, err, "from 1m0s to 0s")
}
