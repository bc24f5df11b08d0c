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

// Limits of DCGM's health checks, and of NVIDIA's documents on memory errors.
const (
	mostRemappedRows = 512
	mostRetiredPages = 63 // of the 64 that there can be
	manyRetiredPages = 15 // uncorrectable ones, if more than one was retired within a week
)

// The causes of remap_worn and of pages_worn.
const (
	noSpareRows  Variant = 1
	pagesFollow  Variant = 1
	eccContained Variant = 1
)

// Reasons that stay until the board is another one, and errors of its memory.
var (
	remapWorn = Reason{
		Name: "remap_worn", State: health.PredictedFailure, Action: health.RunDiagnostics, Needs: RemapsRows, Only: NVIDIA,
		Doc: Doc{
			Means:   "The spare rows of the memory run out.",
			Raised:  "`gpu.memory.remapped_rows` with `error.type`=uncorrected is at least 512, or a memory bank has no spare row left",
			Cleared: "the board is replaced",
			Source:  "DCGM's limit of 512 rows; a bank has 8 spare ones",
		},
		Reads: []rule.Input{
			remappedRows,
			{Metric: &names.GPURemapBanks, Attribute: names.GPUSpareRows, Values: []string{"none"}, Most: rule.MostCount},
		},
		Judge: func(r Readings, _ *Memory, _ pcommon.Timestamp) Finding {
			rows, banks := r.At(0), r.At(1)
			f := Finding{Known: r.some(), Raise: rows >= mostRemappedRows || banks >= 1, Value: rows, Threshold: mostRemappedRows}
			if !(rows >= mostRemappedRows) && banks >= 1 {
				f.Value, f.Threshold, f.Variant = banks, 1, noSpareRows
			}
			return f
		},
		Sentence: func(a *Active) string {
			if a.Variant == noSpareRows {
				return fmt.Sprintf("%.0f memory banks have no spare row left, the limit is %.0f", a.Value, a.Threshold)
			}
			return fmt.Sprintf("%.0f rows were remapped after uncorrectable errors, the limit is %.0f", a.Value, a.Threshold)
		},
	}
	pagesWorn = Reason{
		Name: "pages_worn", State: health.PredictedFailure, Action: health.RunDiagnostics, Needs: RetiresPages, Only: NVIDIA,
		Doc: Doc{
			Means:   "The memory of the board has nearly as many retired pages as there can be.",
			Raised:  "`gpu.memory.retired_pages` is at least 63: failed. More than 15 after uncorrectable errors and more than one of them within 7 days: predicted to fail",
			Cleared: "the board is replaced",
			Source:  "DCGM's limits; 64 is the most there can be",
		},
		Reads: []rule.Input{{
			Metric: &names.GPURetiredPages, Attribute: names.ErrorType, Values: []string{"corrected", names.ErrorTypeUncorrected}, Most: rule.MostCount,
		}},
		Judge: func(r Readings, m *Memory, at pcommon.Timestamp) Finding {
			corrected, uncorrected := r.At(0), r.At(1)
			if !r.some() {
				return Finding{}
			}
			for range int(min(2, m.rose(&m.pages, knownPages, uncorrected, 0))) {
				m.rarely().retired.add(at)
			}
			all := zero(corrected) + zero(uncorrected)
			f := Finding{Known: true, Value: all, Threshold: mostRetiredPages}
			switch {
			case all >= mostRetiredPages:
				f.Raise, f.State, f.Action = true, health.Failed, health.RMA
			case uncorrected > manyRetiredPages && m.seldom != nil && m.seldom.retired.within(at, week) > 1:
				f.Raise, f.Value, f.Threshold, f.Variant = true, uncorrected, manyRetiredPages, pagesFollow
			}
			return f
		},
		Sentence: func(a *Active) string {
			if a.Variant == pagesFollow {
				return fmt.Sprintf("%.0f memory pages were retired after uncorrectable errors, some of them within 7 days, the limit is %.0f", a.Value, a.Threshold)
			}
			return fmt.Sprintf("%.0f memory pages were retired, the limit is %.0f", a.Value, a.Threshold)
		},
	}
	// A board that recovers by itself leaves the error contained: remapped rows and
	// XIDs report what is left of it.
	eccUncorrected = Reason{
		Name: "ecc_uncorrected", State: health.Failed, Action: health.ResetGPU, Weight: 0.6, Vital: true, ClearedBy: Reset | Boot | Driver | Person, Needs: CountsErrors,
		Doc: Doc{
			Means:   "There was a memory error that could not be corrected: results since then may be wrong.",
			Raised:  "`hw.errors` with `error.type`=uncorrected rises, or XID 94 or 95 happens. Where rows can be remapped and XIDs are read, and after 94 alone, the error is contained and the board is degraded",
			Cleared: "the GPU was reset, its node booted, or the driver is another one",
			Source:  "DCGM's health check fails on every such error; gpud reports none that the driver recovered from",
		},
		Reads: []rule.Input{
			uncorrectedErrors,
			remappedRows,
			{Metric: &names.GPUXIDLast, Most: rule.MostCode},
		},
		Judge: func(r Readings, m *Memory, _ pcommon.Timestamp) Finding {
			const count, added, rows, code = 0, 1, 2, 3
			if !r.known(count) && !(r.At(added) > 0) {
				return Finding{}
			}
			by := m.rose(&m.ecc, knownECC, r.At(count), r.At(added))
			f := Finding{Known: true, Raise: by > 0, Value: max(by, zero(r.At(count)))}
			if r.known(rows) && r.known(code) {
				f.State, f.Variant = health.Degraded, eccContained
			}
			return f
		},
		Sentence: func(a *Active) string {
			if a.Value == 0 {
				return reportedMemoryError(a)
			}
			s := fmt.Sprintf("%.0f memory errors that could not be corrected were counted since the driver was loaded", a.Value)
			if a.Variant == eccContained {
				s += "; the driver contained them"
			}
			return s
		},
	}
)

// remappedRows are the rows that were remapped after uncorrectable errors.
var remappedRows = rule.Input{
	Metric: &names.GPURemappedRows, Attribute: names.ErrorType, Values: []string{names.ErrorTypeUncorrected}, Most: rule.MostCount,
}

// uncorrectedErrors are the uncorrected memory errors since the driver was loaded.
var uncorrectedErrors = rule.Input{
	Metric: &names.HwErrors, Attribute: names.ErrorType, Values: []string{names.ErrorTypeUncorrected}, Count: true, Most: rule.MostCount,
}

// The XIDs about memory errors.
const (
	xidRemapped      = 63
	xidNotRemapped   = 64
	xidContained     = 94
	xidUncontained   = 95
	xidUncorrectable = 48
)

// AboutMemory reports whether a code is itself evidence of a memory error that could not be corrected,
// or of a row that waits to be replaced.
func AboutMemory(code int) bool {
	return code == xidRemapped || code == xidNotRemapped || code == xidContained || code == xidUncontained
}

// reportedMemoryError is the sentence about an error that no page has counted.
func reportedMemoryError(a *Active) string {
	s := "A memory error could not be corrected" + explainedBy(a.Codes[:min(1, len(a.Codes))])
	if a.Variant == eccContained {
		s += "; the driver contained it"
	}
	return s
}
