// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Limits of DCGM's health checks, and of NVIDIA's documents on memory errors.
const (
	mostRemappedRows = 512
	mostRetiredPages = 63 // of the 64 that there can be
	manyRetiredPages = 15 // uncorrectable ones, if another one follows within a week
)

// Reasons that stay until the board is another one.
var (
	remapWorn = Reason{
		Name: "remap_worn", State: health.PredictedFailure, Action: health.RunDiagnostics, Weight: 0.25,
		Doc: Doc{
			Means:   "The spare rows of the memory run out.",
			Raised:  "`gpu.memory.remapped_rows` with `error.type`=uncorrected is at least 512, or a memory bank has no spare row left",
			Cleared: "the board is replaced",
			Source:  "DCGM's limit of 512 rows; a bank has 8 spare ones",
		},
		Reads: []rule.Input{
			{Metric: &names.GPURemappedRows, Attribute: names.ErrorType, Values: []string{names.ErrorTypeUncorrected}, Count: true, Most: rule.MostCount},
			{Metric: &names.GPURemapBanks, Attribute: names.GPUSpareRows, Values: []string{"none"}, Most: rule.MostCount},
		},
		Judge: func(r Readings, _ *Memory, _ pcommon.Timestamp) Finding {
			rows, banks := r.At(0), r.At(2)
			f := Finding{Known: !math.IsNaN(rows) || !math.IsNaN(banks), Value: rows, Threshold: mostRemappedRows}
			f.Raise = rows >= mostRemappedRows || banks >= 1
			if banks >= 1 {
				f.Value, f.Threshold = banks, 1
			}
			return f
		},
	}
	pagesWorn = Reason{
		Name: "pages_worn", State: health.PredictedFailure, Action: health.RunDiagnostics, Weight: 0.25,
		Doc: Doc{
			Means:   "The memory of the board has nearly as many retired pages as there can be.",
			Raised:  "`gpu.memory.retired_pages` is at least 63: failed. More than 15 after uncorrectable errors and more than one of them within 7 days: predicted to fail",
			Cleared: "the board is replaced",
			Source:  "DCGM's limits; 64 is the most there can be",
		},
		Reads: []rule.Input{{
			Metric: &names.GPURetiredPages, Attribute: names.ErrorType, Values: []string{"corrected", names.ErrorTypeUncorrected}, Count: true, Most: rule.MostCount,
		}},
		Judge: func(r Readings, m *Memory, at pcommon.Timestamp) Finding {
			corrected, uncorrected := r.At(0), r.At(2)
			if math.IsNaN(uncorrected) {
				return Finding{}
			}
			if m.rose(uncorrected, 0) > 0 {
				m.times = [3]pcommon.Timestamp{at, m.times[0], m.times[1]}
			}
			all := uncorrected
			if corrected > 0 {
				all += corrected
			}
			f := Finding{Known: true, Value: all, Threshold: mostRetiredPages}
			switch {
			case all >= mostRetiredPages:
				f.Raise, f.State, f.Action = true, health.Failed, health.RMA
			case uncorrected > manyRetiredPages && m.times[1] != 0 && !later(at, m.times[1], week):
				f.Raise, f.Value, f.Threshold = true, uncorrected, manyRetiredPages
			}
			return f
		},
	}
	// A board that recovers by itself leaves the error contained: remapped rows and
	// XIDs report what is left of it.
	eccUncorrected = Reason{
		Name: "ecc_uncorrected", State: health.Failed, Action: health.ResetGPU, Weight: 0.6, Vital: true, ClearedBy: Reset | Boot | Driver | Person,
		Doc: Doc{
			Means:   "There was a memory error that could not be corrected: results since then may be wrong.",
			Raised:  "`hw.errors` with `error.type`=uncorrected rises. Where rows can be remapped and XIDs are read, the error is contained and the board is degraded",
			Cleared: "the GPU was reset, its node booted, or the driver is another one",
			Source:  "DCGM's health check fails on every such error; gpud reports none that the driver recovered from",
		},
		Reads: []rule.Input{
			{Metric: &names.HwErrors, Attribute: names.ErrorType, Values: []string{names.ErrorTypeUncorrected}, Count: true, Most: rule.MostCount},
			{Metric: &names.GPURemappedRows, Attribute: names.ErrorType, Values: []string{names.ErrorTypeUncorrected}, Count: true, Most: rule.MostCount},
			{Metric: &names.GPUXIDLast, Most: rule.MostCode},
		},
		Judge: func(r Readings, m *Memory, at pcommon.Timestamp) Finding {
			if !r.known(0) && !(r.At(1) > 0) {
				return Finding{}
			}
			f := Finding{Known: true, Value: r.At(0), Raise: m.rose(r.At(0), r.At(1)) > 0}
			if r.known(2) && r.known(4) {
				f.State = health.Degraded
			}
			return f
		},
	}
)
