// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendorpages

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/vendors"
)

// TestJudge: each kind of mistake is a difference.
func TestJudge(t *testing.T) {
	want := []vendors.Device{
		{ID: "GPU-1", Readings: []vendors.Reading{
			{Metric: "hw.power", State: vendors.Known, Value: 700, Tolerance: 1e-9}, {Metric: "hw.energy", State: vendors.Absent},
			{Metric: "hw.temperature", Of: "gpu", State: vendors.Open},
		}},
		{ID: "GPU-1/0", Parent: "GPU-1", Partition: "0", Profile: "cpx_nps4"},
	}
	right := func() *observed {
		return &observed{
			values:  map[key]float64{{"GPU-1", "hw.power", ""}: 700, {"GPU-1", "hw.temperature", "gpu"}: 55, {"GPU-1/0", "hw.gpu.memory.usage", ""}: 1},
			parents: map[string]string{"GPU-1": "", "GPU-1/0": "GPU-1"}, parts: map[string][2]string{"GPU-1/0": {"0", "cpx_nps4"}},
		}
	}
	assert.Empty(t, compare(right(), want))
	for name, spoil := range map[string]func(*observed){
		"value":     func(o *observed) { o.values[key{"GPU-1", "hw.power", ""}] = 701 },
		"absent":    func(o *observed) { delete(o.values, key{"GPU-1", "hw.power", ""}) },
		"invented":  func(o *observed) { o.values[key{"GPU-1", "hw.energy", ""}] = 0 },
		"parent":    func(o *observed) { o.parents["GPU-1/0"] = "" },
		"partition": func(o *observed) { o.parts["GPU-1/0"] = [2]string{"1", "cpx_nps4"} },
		"device":    func(o *observed) { o.values[key{"GPU-2", "hw.power", ""}] = 1 },
		"twice":     func(o *observed) { o.twice = []string{"hw.power is there twice"} },
	} {
		t.Run(name, func(t *testing.T) {
			got := right()
			spoil(got)
			assert.Len(t, compare(got, want), 1)
		})
	}
}
