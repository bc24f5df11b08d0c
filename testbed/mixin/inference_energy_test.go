// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// powerOf is the power of the device of a pod.
func powerOf(i int) string { return `hw_power_watts{` + svc + `,hw_id="GPU-` + strconv.Itoa(i) + `"}` }

// The energy of a service's devices is what it had of them: a pod that came or left is in
// it for as long as it was there, as its tokens are. Mean power stands in for a counter.
func TestInferenceEnergy(t *testing.T) {
	for name, c := range map[string]struct {
		series map[string]string
		want   float64
	}{
		"without allocations":   {map[string]string{allocationOf(0): "_x480", allocationOf(1): "_x480"}, 0.2},
		"by counters":           {map[string]string{energyOf(0): "0+7500x480", energyOf(1): "0+22500x480"}, 0.2},
		"a counter, and power":  {map[string]string{energyOf(0): "0+7500x480"}, 200. / 750},
		"power is not the rate": {map[string]string{energyOf(0): "0+15000x480", energyOf(1): "0+15000x480", powerOf(1): "20x480"}, 0.2},
		"a pod that left a minute ago": {map[string]string{
			energyOf(0): "0+15000x480", energyOf(1): "0+15000x38 stale", powerOf(1): "500x38 stale", allocationOf(1): "1x38 stale",
			tokens + `{inference_token_type="output",` + pod1 + `}`:         "0+3000x38 stale",
			`gpu_service_devices{gpu_device_state="reporting",` + svc + `}`: "2x38 1x440",
		}, 0.2},
	} {
		t.Run(name, func(t *testing.T) {
			all := busy()
			maps.Copy(all, c.series)
			assert.InEpsilon(t, c.want, recorded(t, all)["tokens_per_joule:rate5m"], 1e-6)
		})
	}
}

func energyOf(i int) string {
	return strings.Replace(powerOf(i), "power_watts", "energy_joules_total", 1)
}
func allocationOf(i int) string {
	return strings.Replace(powerOf(i), "hw_power_watts", "gpu_allocation", 1)
}
