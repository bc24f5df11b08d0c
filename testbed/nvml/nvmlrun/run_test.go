// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlrun

import (
	"testing"

	"github.com/stretchr/testify/assert"

	nvmllab "github.com/otelcol-gpu/otelcol-gpu/testbed/nvml"
)

func up(v map[string]float64) bool { return v["- gpu.exporter.up"] == 1 }

// TestPath is the way from the driver's library to points.
func TestPath(t *testing.T) {
	lab := nvmllab.Start(t, nvmllab.Options{Boards: 2})
	r := Start(t, Keys(lab, nil))
	r.Await("the exporter up", up)
	for _, b := range lab.Truth() {
		v := r.Await("power of "+b.UUID, func(v map[string]float64) bool { return v[b.UUID+" hw.power"] > 0 })
		assert.Positive(t, v[b.UUID+" hw.gpu.memory.limit"])
	}
}
