// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Reasons that last as long as a metric has a value.
var (
	// The action that the driver asks for. Where it is read, the codes only explain it.
	recoveryAction = Reason{
		Name: "recovery_action", State: health.Failed, Action: health.ResetGPU, Weight: 0.5, Vital: true, Needs: NVIDIA,
		Doc: Doc{
			Means:   "The driver asks for an action before the GPU can be relied on again. Codes of the kernel log explain it and are no reasons of their own.",
			Raised:  "`gpu.recovery.action` is not none. Drain peer-to-peer traffic, and an action that this version does not know, mean degraded",
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
		Sentence: func(a *Active) string {
			if _, _, known := health.Recovery(int64(a.Value)); !known {
				return fmt.Sprintf("The driver asks for recovery action %.0f, which this version does not know", a.Value) + explainedBy(a.Codes)
			}
			return fmt.Sprintf("The driver asks for %s (recovery action %.0f)", a.Action, a.Value) + explainedBy(a.Codes)
		},
	}
	// Work may go on until the reset (NVIDIA's memory error management).
	remapPending = Reason{
		Name: "remap_pending", State: health.Degraded, Action: health.ResetGPU, Weight: 0.8, Needs: NVIDIA,
		Doc: Doc{
			Means:   "A memory row or page with an uncorrectable error is replaced at the next reset. Work may go on until then.",
			Raised:  "`gpu.memory.row_remap.pending`, `gpu.memory.retired_pages.pending` or `gpu.memory.remapped_rows.pending` is 1. On pages without them, XID 63 or 64 happens",
			Cleared: "all are 0; without them, the GPU was reset or its node booted",
			Source:  "NVIDIA's documentation of memory error management",
		},
		Reads: []rule.Input{{Metric: &names.GPURowRemapPending, Flag: true}, {Metric: &names.GPURetiredPending, Flag: true}, {Metric: &names.GPURemappedRowsPending, Flag: true}},
		Judge: anyFlag,
		Sentence: func(a *Active) string {
			return "A faulty row or page of the memory waits for a reset to be replaced" + explainedBy(a.Codes)
		},
	}
	remapFailed = Reason{
		Name: "remap_failed", State: health.Failed, Action: health.RMA, Vital: true, Needs: RemapsRows,
		Doc: Doc{
			Means:   "A faulty memory row or page could not be replaced.",
			Raised:  "`gpu.memory.row_remap.failure` or `gpu.memory.retired_pages.failure` is 1",
			Cleared: "both are 0",
			Source:  "NVIDIA's documentation of memory error management: replace the board once field diagnostics confirm it",
		},
		Reads: []rule.Input{{Metric: &names.GPURowRemapFailure, Flag: true}, {Metric: &names.GPURetiredFailure, Flag: true}},
		Judge: func(r Readings, m *Memory, at pcommon.Timestamp) Finding {
			f := anyFlag(r, m, at)
			if r.At(1) > 0 {
				f.Variant = pageFailed
			}
			return f
		},
		Sentence: func(a *Active) string {
			if a.Variant == pageFailed {
				return "A faulty page of the memory could not be replaced"
			}
			return "A faulty row of the memory could not be replaced"
		},
	}
	sramWorn = Reason{
		Name: "sram_worn", State: health.Failed, Action: health.RMA, Needs: RemapsRows,
		Doc: Doc{
			Means:   "There were more unique uncorrectable errors in the SRAM of the GPU than a board may have.",
			Raised:  "`gpu.memory.sram.threshold_exceeded` is 1",
			Cleared: "it is 0",
			Source:  "NVIDIA's documentation of memory error management: more than 4 in a bank with parity, more than 2 with SECDED",
		},
		Reads:    []rule.Input{{Metric: &names.GPUSRAMExceeded, Flag: true}},
		Judge:    anyFlag,
		Sentence: always("Uncorrectable SRAM errors are above the limit of the vendor"),
	}
	fabric = Reason{
		Name: "fabric", State: health.Failed, Action: health.RestartFabricManager, Weight: 0.7, Needs: Fabric,
		Doc: Doc{
			Means:   "The GPU is not, or not wholly, part of the NVLink fabric.",
			Raised:  "`gpu.fabric.status` is unhealthy; limited means degraded",
			Cleared: "the fabric is healthy",
			Source:  "NVML's summary of fabric health",
		},
		Reads: []rule.Input{{Metric: &names.GPUFabricStatus, Attribute: names.GPUFabricState, Values: []string{"unhealthy", "limited"}, Flag: true}},
		Judge: func(r Readings, _ *Memory, _ pcommon.Timestamp) Finding {
			if !r.some() {
				return Finding{}
			}
			unhealthy, limited := r.At(0) > 0, r.At(1) > 0
			f := holds(unhealthy || limited)
			if limited && !unhealthy {
				f.State = health.Degraded
			}
			return f
		},
		Sentence: func(a *Active) string {
			if a.State == health.Degraded {
				return "The NVLink fabric of the GPU has limited capacity"
			}
			return "The NVLink fabric of the GPU is unhealthy"
		},
	}
	// The watches of temperature and power warn at every violation within a minute, and
	// are no failure of the board.
	dcgmWatch = Reason{
		Name: "dcgm_watch", State: health.Failed, Action: health.RunDiagnostics, Weight: 0.6, Needs: NVIDIA, Only: NVIDIA,
		Doc: Doc{
			Means:   "A health watch of DCGM reports a problem. The other reasons against the board, and DCGM's log, have the details.",
			Raised:  "`gpu.health.status` of a watch is fail on two pages in a row. Warn on two pages in a row means degraded, and so does fail of the watches thermal and power; their warnings do not count",
			Cleared: "every watch passes",
			Source:  "DCGM's health checks",
		},
		Reads: []rule.Input{
			{Metric: &names.GPUHealthStatus, Attribute: names.GPUHealthState, Values: []string{"fail", "warn"}, Where: &rule.Where{Attribute: names.GPUHealthWatch, Not: append([]string{names.WatchExporter}, slowdowns...), Apart: others}, Flag: true},
			{Metric: &names.GPUHealthStatus, Attribute: names.GPUHealthState, Values: []string{"fail"}, Where: &rule.Where{Attribute: names.GPUHealthWatch, Is: slowdowns, Apart: slowdowns}, Flag: true},
		},
		Judge: func(r Readings, m *Memory, _ pcommon.Timestamp) (f Finding) {
			var now watches
			for i := range now {
				if r.known(i) {
					f.Known, now[i] = true, uint16(r.At(i))
				}
			}
			if !f.Known {
				return f
			}
			before := m.watch
			m.watch = now
			switch {
			case before[watchFails]&now[watchFails] != 0:
				f.Raise = true
			case (before[watchFails]|before[watchWarns])&(now[watchFails]|now[watchWarns]) != 0:
				// A failure counts as a warning too.
				f.Raise, f.State = true, health.Degraded
			case before[watchSlows]&now[watchSlows] != 0:
				f.Raise, f.State, f.Variant = true, health.Degraded, 1
			}
			f.Clear = now == watches{}
			return f
		},
		Sentence: func(a *Active) string {
			switch {
			case a.State == health.Failed:
				return "A health watch of DCGM failed on two pages in a row"
			case a.Variant == 1:
				return "DCGM's health watch of temperature or power failed on two pages in a row"
			}
			return "A health watch of DCGM warned on two pages in a row"
		},
	}
)

// pageFailed is the cause of remap_failed where it is a page.
const pageFailed Variant = 1

// slowdowns are the watches of what slows a board down.
var slowdowns = []string{"thermal", "power"}

// others are DCGM's other watches, up to release 4.
var others = []string{
	"pcie", "nvlink", "pmu", "mcu", "mem", "sm", "inforom", "driver", "nvswitch_nonfatal", "nvswitch_fatal", "connectx",
}

// watches are the states of DCGM's health watches on one page, with a bit for each watch.
type watches [3]uint16

const (
	watchFails = iota
	watchWarns
	watchSlows
)

// anyFlag is the Judge of flags of which any one raises the reason.
func anyFlag(r Readings, _ *Memory, _ pcommon.Timestamp) Finding {
	if !r.some() {
		return Finding{}
	}
	return holds(r.set())
}

// always is the Sentence of a reason without numbers.
func always(sentence string) func(*Active) string {
	return func(*Active) string { return sentence }
}
