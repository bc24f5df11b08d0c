// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/ras"
)

// Reasons about boards of other vendors than NVIDIA.
var (
	// The exporter has limits of its own: one page is enough.
	exporterHealth = Reason{
		Name: "exporter_health", State: health.Failed, Action: health.RunDiagnostics, Weight: 0.6, Needs: OwnHealth, Only: OwnHealth,
		Doc: Doc{
			Means:   "The exporter of the board, or its driver, judges the board itself and found a problem. The other reasons against the board, and the exporter's log, have the details.",
			Raised:  "`gpu.health.status` of a watch is fail; warn means degraded, and so does fail of the watches thermal and power, of which warnings do not count",
			Cleared: "every watch passes",
			Source:  "AMD's Device Metrics Exporter (`gpu_health`), Intel's XPU Manager 2 (`hw_status`)",
		},
		Reads: []rule.Input{{
			Metric: &names.GPUHealthStatus, Attribute: names.GPUHealthState, Values: []string{"fail", "warn", "pass"},
			Where: &rule.Where{Attribute: names.GPUHealthWatch, Not: slowdowns}, Flag: true,
		}, {
			Metric: &names.GPUHealthStatus, Attribute: names.GPUHealthState, Values: []string{"fail"},
			Where: &rule.Where{Attribute: names.GPUHealthWatch, Is: slowdowns}, Flag: true,
		}},
		Judge: func(r Readings, _ *Memory, _ pcommon.Timestamp) Finding {
			if !r.some() {
				return Finding{}
			}
			fail, warn, slow := r.At(0) > 0, r.At(1) > 0, r.At(3) > 0
			f := holds(fail || warn || slow)
			if !fail {
				f.State = health.Degraded
			}
			return f
		},
		Sentence: func(a *Active) string {
			if a.State == health.Degraded {
				return "The exporter warns about the board"
			}
			return "The exporter reports the board as failed"
		},
	}
	rasFatal = Reason{
		Name: ras.ReasonFatal, State: health.Failed, Action: health.ResetGPU, ClearedBy: Reset | Boot | Person,
		Doc: Doc{
			Means:   "An AMD board wrote a record of an error after which it cannot go on.",
			Raised:  "`gpu.ras.last` with `gpu.ras.severity`=fatal has a code that it did not have on the page before",
			Cleared: "the GPU was reset, or its node booted; a code that asks for a boot by a boot alone, and one that asks for another board by neither",
			Source:  "AMD's list of AFIDs (document 70122)",
		},
		Sentence: func(a *Active) string {
			if len(a.Codes) == 0 {
				return "A fatal error happened"
			}
			s := fmt.Sprintf("The fatal error AFID %d happened", a.Codes[0])
			if more := a.Codes[1:]; len(more) > 0 {
				s += ", and with it " + listed(more)
			}
			return s
		},
	}
	linkDown = Reason{
		Name: LinkDown, State: health.Failed, Action: health.ResetGPU,
		Doc: Doc{
			Means:   "The board lost a link to another board of its node: work on several boards is slower, or fails.",
			Raised:  "the event `gpu.link.down` is raised",
			Cleared: "that event is cleared",
			Source:  "the configuration of `gpu.link.down`",
		},
		Sentence: always("A port that had a link to another board has none"),
	}
)

// Resets are the input that counts resets of a device: its second reading is by how much it
// rose.
var Resets = [...]rule.Input{{Metric: &names.GPUDeviceResets, Rise: true, Most: rule.MostCount}}
