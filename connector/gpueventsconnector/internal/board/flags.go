// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Reasons that last as long as a metric has a value.
var (
	// The action that the driver asks for. Where it is read, the codes only explain it.
	recoveryAction = Reason{
		Name: "recovery_action", State: health.Failed, Action: health.ResetGPU, Weight: 0, Vital: true,
		Reads: []rule.Input{{Metric: &names.GPURecoveryAction, Most: rule.MostCode}},
		Judge: func(r Readings, _ *Memory, _ pcommon.Timestamp) Finding {
			if !r.known(0) {
				return Finding{}
			}
			f := holds(r.At(0) != 0)
			f.State, f.Action, _ = health.Recovery(int64(r.At(0)))
			f.Value = r.At(0)
			return f
		},
	}
	// Work may go on until the reset (NVIDIA's memory error management).
	remapPending = Reason{
		Name: "remap_pending", State: health.Degraded, Action: health.ResetGPU, Weight: 0.8,
		Reads: []rule.Input{{Metric: &names.GPURowRemapPending, Most: 1}, {Metric: &names.GPURetiredPending, Most: 1}},
		Judge: anyOf(2),
	}
	remapFailed = Reason{
		Name: "remap_failed", State: health.Failed, Action: health.RMA, Vital: true,
		Reads: []rule.Input{{Metric: &names.GPURowRemapFailure, Most: 1}},
		Judge: anyOf(1),
	}
	// More unique uncorrectable errors of the SRAM than a board may have.
	sramWorn = Reason{
		Name: "sram_worn", State: health.Failed, Action: health.RMA,
		Reads: []rule.Input{{Metric: &names.GPUSRAMExceeded, Most: 1}},
		Judge: anyOf(1),
	}
	fabric = Reason{
		Name: "fabric", State: health.Failed, Action: health.RestartFabricManager, Weight: 0.7,
		Reads: []rule.Input{{Metric: &names.GPUFabricStatus, Attribute: names.GPUFabricState, Values: []string{"unhealthy", "limited"}, Most: 1}},
		Judge: func(r Readings, _ *Memory, _ pcommon.Timestamp) Finding {
			unhealthy, limited := r.At(0) > 0, r.At(1) > 0
			if !r.known(0) && !r.known(1) {
				return Finding{}
			}
			f := holds(unhealthy || limited)
			if limited && !unhealthy {
				f.State = health.Degraded
			}
			return f
		},
	}
)

// anyOf is the Judge of n flags of which any one raises the reason.
func anyOf(n int) func(Readings, *Memory, pcommon.Timestamp) Finding {
	return func(r Readings, _ *Memory, _ pcommon.Timestamp) (f Finding) {
		for i := range n {
			if r.known(i) {
				f.Known = true
				f.Raise = f.Raise || r.At(i) > 0
			}
		}
		f.Clear = f.Known && !f.Raise
		return f
	}
}
