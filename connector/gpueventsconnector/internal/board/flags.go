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
		Doc: Doc{
			Means:   "The driver asks for an action before the GPU can be relied on again. Codes of the kernel log explain it and are no reasons of their own.",
			Raised:  "`gpu.recovery.action` is not none",
			Cleared: "the driver asks for nothing any more",
			Source:  "NVML's recovery action, DCGM field 1523: DCGM's health check fails on reset, reboot and drain and reset, and warns on drain P2P",
		},
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
		Doc: Doc{
			Means:   "A memory row or page with an uncorrectable error is replaced at the next reset. Work may go on until then.",
			Raised:  "`gpu.memory.row_remap.pending` or `gpu.memory.retired_pages.pending` is 1",
			Cleared: "both are 0",
			Source:  "NVIDIA's documentation of memory error management",
		},
		Reads: []rule.Input{{Metric: &names.GPURowRemapPending, Most: 1}, {Metric: &names.GPURetiredPending, Most: 1}},
		Judge: anyOf(2),
	}
	remapFailed = Reason{
		Name: "remap_failed", State: health.Failed, Action: health.RMA, Vital: true,
		Doc: Doc{
			Means:   "A faulty memory row could not be replaced.",
			Raised:  "`gpu.memory.row_remap.failure` is 1",
			Cleared: "it is 0",
			Source:  "NVIDIA's documentation of memory error management: replace the board once field diagnostics confirm it",
		},
		Reads: []rule.Input{{Metric: &names.GPURowRemapFailure, Most: 1}},
		Judge: anyOf(1),
	}
	// More unique uncorrectable errors of the SRAM than a board may have.
	sramWorn = Reason{
		Name: "sram_worn", State: health.Failed, Action: health.RMA,
		Doc: Doc{
			Means:   "There were more unique uncorrectable errors in the SRAM of the GPU than a board may have.",
			Raised:  "`gpu.memory.sram.threshold_exceeded` is 1",
			Cleared: "it is 0",
			Source:  "NVIDIA's documentation of memory error management: more than 4 in a bank with parity, more than 2 with SECDED",
		},
		Reads: []rule.Input{{Metric: &names.GPUSRAMExceeded, Most: 1}},
		Judge: anyOf(1),
	}
	fabric = Reason{
		Name: "fabric", State: health.Failed, Action: health.RestartFabricManager, Weight: 0.7,
		Doc: Doc{
			Means:   "The GPU is not, or not wholly, part of the NVLink fabric.",
			Raised:  "`gpu.fabric.status` is unhealthy; limited means degraded",
			Cleared: "the fabric is healthy",
			Source:  "NVML's summary of fabric health",
		},
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
