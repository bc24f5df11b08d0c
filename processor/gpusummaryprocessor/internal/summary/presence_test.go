// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A device is there while one of its fields is: a MIG instance of an A100 has no utilization,
// GB10 no memory, and a suspended GPU nothing at all. What it does not have lowers no mean.
func TestADeviceIsThereWhileOneFieldIs(t *testing.T) {
	for source, change := range map[string]func(*Config){"seen": func(*Config) {}, "allocation": fromAllocation} {
		for name, tt := range map[string]struct {
			fields map[field]float64 // of two of three devices
			want   map[string]float64
			lacks  []string
		}{
			"no utilization": {map[field]float64{memoryUsage: 3e9, memoryLimit: 1e10}, map[string]float64{"utilization": 0.6, "utilization.devices": 1, "memory.usage": 6e9}, nil},
			"no memory":      {map[field]float64{utilization: 0.9, power: 100}, map[string]float64{"utilization": 0.8, "utilization.devices": 3, "power": 200}, []string{"memory.usage"}},
			"power alone":    {map[field]float64{power: 100}, map[string]float64{"utilization": 0.6, "utilization.devices": 1, "power": 200}, nil},
			"suspended":      {map[field]float64{suspended: 1}, map[string]float64{"utilization": 0.2, "utilization.devices": 3, "idle_devices": 2}, nil},
			"left alone":     {map[field]float64{suspended: 0}, map[string]float64{"utilization": 0.6, "utilization.devices": 1, "idle_devices": 0}, nil},
		} {
			t.Run(source+" "+name, func(t *testing.T) {
				w := newWorld(t, change)
				w.pass(20*time.Minute, func() {
					for pod, fields := range map[string]map[field]float64{"a": tt.fields, "b": tt.fields, "c": {utilization: 0.6}} {
						if source == "allocation" {
							w.holds(pod, "GPU-"+pod)
						}
						w.read(reading{pod: pod, device: "GPU-" + pod, fields: fields})
					}
				})
				got := w.evaluate()
				got.has(t, map[string]float64{"pods reporting": 3, "pods missing": 0, "partial": 0, "devices reporting": 3, "devices missing": 0, "data.age": 0})
				got.has(t, tt.want)
				got.lacks(t, tt.lacks...)

				w.pass(time.Minute, func() { w.util("c", "GPU-c", 0.6) })
				w.evaluate().has(t, map[string]float64{"pods missing": 2, "devices missing": 2})
			})
		}
	}
}

// Pods of which no device has utilization have no mean of it, and the age of what they have.
func TestNoUtilizationAtAll(t *testing.T) {
	w := newWorld(t)
	w.pass(10*time.Minute, func() {
		w.read(reading{pod: "a", device: "MIG-a", fields: map[field]float64{memoryUsage: 3e9, memoryLimit: 1e10}})
	})
	w.now = w.now.Add(5 * time.Second)
	got := w.evaluate()
	got.has(t, map[string]float64{"pods reporting": 1, "memory.usage": 3e9, "data.age": 5})
	got.lacks(t, "utilization", "utilization.min", "utilization.max", "utilization.devices", "idle_devices")
	require.Empty(t, got.ended)
}

// The interval of a device is that of its first field: another exporter may read the others.
func TestIntervalWithoutUtilization(t *testing.T) {
	for name, fields := range map[string]map[field]float64{
		"without": {memoryUsage: 3e9}, "with": {memoryUsage: 3e9, utilization: 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for range 10 {
				w.now = w.now.Add(time.Minute)
				w.read(reading{pod: "a", device: "GPU-a", at: w.now.Add(-time.Second), fields: map[field]float64{power: 1}}) // of another exporter
				w.read(reading{pod: "a", device: "GPU-a", fields: fields})
			}
			w.now = w.now.Add(59 * time.Second)
			w.evaluate().state(t, "a", "reporting")
		})
	}
}
