// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// What cannot be a flag, a count or a code is no reading of a board, and counted. A
// recovery action that is not known is a reason to read the log.
func TestHealthOfBadInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet, withHealth)
		type is = map[*names.Metric]float64
		see := func(values is, xids map[int64]int64) []string {
			happened := b.feed(scrape(page{at: time.Now(), node: "n1", gpus: []gpu{{id: gpuA, values: values, xids: xids}}}))
			return healthEvents(append(happened, b.wait(15*time.Second)...))
		}
		invalid := func() (n int64) {
			m, err := b.tel.GetMetric("otelcol_gpu_events_input_invalid")
			if err != nil {
				return 0
			}
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				n += p.Value
			}
			return n
		}
		for _, values := range []is{
			{&names.GPUSRAMExceeded: 2}, {&names.GPUSRAMExceeded: -1},
			{&names.GPURecoveryAction: math.NaN()}, {&names.GPURecoveryAction: math.Inf(1)}, {&names.GPURecoveryAction: -1}, {&names.GPUPCIeReplays: -5},
		} {
			before := invalid()
			assert.Empty(t, see(values, nil), values)
			assert.Equal(t, before+1, invalid(), values)
		}
		assert.Empty(t, see(is{&names.GPURecoveryAction: 0, &names.HwEnergy: 9}, map[int64]int64{1024: 1}))
		assert.Empty(t, see(is{&names.GPURecoveryAction: 0, &names.HwEnergy: 10}, map[int64]int64{1024: 5, 5000: 1}), "unknown codes")
		assert.Equal(t, []string{"raised: degraded [recovery_action] read_log"}, see(is{&names.GPURecoveryAction: 42, &names.HwEnergy: 11}, nil))
		assert.Equal(t, []string{"cleared: ok <nil> none"}, see(is{&names.GPURecoveryAction: 0, &names.HwEnergy: 12}, nil))
		require.NotZero(t, invalid())
	})
}

// A code that is normally the fault of the application is that of the board where two
// pods had it on one board, and not where a pod had it on most of its boards.
func TestHealthOfRepeatedCodes(t *testing.T) {
	for name, tc := range map[string]struct {
		also bool // the other board of the pod has the code
		want []string
	}{
		"one board of the pod":   {false, []string{"raised: degraded [xid_repeated] run_diagnostics"}},
		"both boards of the pod": {true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, deviceSet, withHealth)
				var all []string
				see := func(pod string, here, there int64) {
					var gpus []gpu
					for id, n := range map[string]int64{gpuA: here, gpuB: there} {
						gpus = append(gpus, gpu{id: id, pod: pod, values: map[*names.Metric]float64{&names.GPURowRemapFailure: 0}, xids: map[int64]int64{31: n}})
					}
					happened := b.feed(scrape(page{at: time.Now(), node: "n1", gpus: gpus}))
					all = append(all, healthEvents(append(happened, b.wait(15*time.Second)...))...)
				}
				see("first", 0, 0)
				see("first", 1, 0)
				there := int64(0)
				if tc.also {
					there = 1
				}
				for range 20 {
					see("second", 2, there)
				}
				assert.Equal(t, tc.want, all)
			})
		})
	}
}
