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
