// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/xid"
)

// Reasons that something raises which happens to the board: an XID, or an event.
var (
	xidReset = Reason{
		Name: xid.ReasonReset, State: health.Failed, Action: health.ResetGPU, Vital: true, ClearedBy: Reset | Boot | Person,
		Doc: Doc{
			Means:   "The driver reported an error after which the GPU has to be reset.",
			Raised:  "an XID happens for which NVIDIA asks for a reset, or 48; 48 with 63 or 64 within 3 minutes asks to drain the board first. With `gpu.recovery.action` that metric decides from its next reading on",
			Cleared: "the GPU was reset, or its node booted",
			Source:  "NVIDIA's XID catalogue, RESET_GPU",
		},
		Reads: []rule.Input{{Metric: &names.GPUXIDLast, Most: rule.MostCode}},
	}
	xidRestart = Reason{
		Name: xid.ReasonRestart, State: health.Failed, Action: health.RebootNode, ClearedBy: Boot | Person,
		Doc: Doc{
			Means:   "The GPU is no longer reachable, or its driver cannot continue: a reset does not help.",
			Raised:  "XID 79 (the GPU has fallen off the bus) or 151 happens. With `gpu.recovery.action` that metric decides from its next reading on",
			Cleared: "its node booted",
			Source:  "NVIDIA's XID catalogue, RESTART_BM and RESTART_VM",
		},
	}
	xidLink = Reason{
		Name: xid.ReasonLink, State: health.Degraded, Action: health.ReadLog, Weight: 0.6, ClearedBy: Reset | Boot | Person,
		Doc: Doc{
			Means:   "The driver reported an NVLink error. What to do depends on the line of the kernel log.",
			Raised:  "XID 74 or one of 144 to 150 happens. With the line of the kernel log the rule for that line decides; without it 74, 149 and 150 mean failed",
			Cleared: "the GPU was reset, or its node booted",
			Source:  "the NVLink rules of NVIDIA's XID catalogue",
		},
	}

	xidMechanics = Reason{
		Name: xid.ReasonMechanics, State: health.Degraded, Action: health.CheckMechanics, Weight: 0.7, ClearedBy: Person, Quiet: day,
		Doc: Doc{
			Means:   "The driver reported a fault of the power connection.",
			Raised:  "XID 54 happens",
			Cleared: "it has not happened for 24 hours",
			Source:  "NVIDIA's XID catalogue, CHECK_MECHANICALS",
		},
	}
	xidSoftware = Reason{
		Name: xid.ReasonSoftware, State: health.Degraded, Action: health.UpdateSoftware, Weight: 0.8, ClearedBy: Driver | Person,
		Doc: Doc{
			Means:   "The driver and the firmware do not fit each other.",
			Raised:  "XID 78 happens",
			Cleared: "the board has another version of the driver",
			Source:  "NVIDIA's XID catalogue, UPDATE_SWFW",
		},
	}
	xidSupport = Reason{
		Name: xid.ReasonSupport, State: health.Degraded, Action: health.ContactSupport, Weight: 0.6, ClearedBy: Reset | Boot | Person,
		Doc: Doc{
			Means:   "The driver reported an error for which NVIDIA's support should be asked.",
			Raised:  "an XID happens for which the catalogue names the support, or 159",
			Cleared: "the GPU was reset, or its node booted",
			Source:  "NVIDIA's XID catalogue, CONTACT_SUPPORT and CHECK_UVM",
		},
	}
	xidRepeated = Reason{
		Name: "xid_repeated", State: health.Degraded, Action: health.RunDiagnostics, Weight: 0.5, ClearedBy: Person, Quiet: day,
		Doc: Doc{
			Means:   "Different applications fail on this board with an error that is normally the fault of one application.",
			Raised:  "XID 13 or 31 happened at least twice within 24 hours under different owners. What at least half of the boards of a pod on the node had within 3 minutes is the fault of the pod",
			Cleared: "it has not happened for 24 hours",
			Source:  "the analyzer of NVSentinel: 31 twice on one GPU asks for diagnostics, on several for nothing",
		},
	}

	temperature = Reason{
		Name: Temperature, State: health.Degraded, Action: health.CheckMechanics, Weight: 0.7,
		Doc: Doc{
			Means:   "The board is too hot.",
			Raised:  "the event `gpu.temperature` is at its level critical",
			Cleared: "that event is cleared",
			Source:  "the configuration of `gpu.temperature`",
		},
	}
	lost = Reason{
		Name: Lost, State: health.Failed, Action: health.RebootNode,
		Doc: Doc{
			Means:   "The board is no longer on the pages of its exporter.",
			Raised:  "the event `gpu.device.lost` is raised",
			Cleared: "the board is there again",
			Source:  "the configuration of `gpu.device.lost`; NVIDIA's XID catalogue asks for a reboot after 79",
		},
	}
	recurring = Reason{
		Name: "recurring", State: health.PredictedFailure, Action: health.ContactSupport, Weight: 0.25, ClearedBy: Person, Quiet: week,
		Doc: Doc{
			Means:   "Resets do not last: the board fails again and again.",
			Raised:  "the board failed for the third time within 7 days, and a reset or a boot ended each of them",
			Cleared: "it has not failed for 7 days",
			Source:  "gpud asks for an inspection after two reboots, NVSentinel for a replacement after five faults in 7 days",
		},
	}
)

// The reasons that other rules decide.
const (
	Temperature = "temperature"
	Lost        = "lost"
)

// burst is the longest silence between two XIDs of one incident.
const burst = 3 * time.Minute

// maxCodes are kept of an incident.
const maxCodes = 8

// incident are the XIDs of a board with no long silence between them. The first code
// names it: the others may be its consequences.
type incident struct {
	last  pcommon.Timestamp
	codes []int
}

// add reports whether the code belongs to an incident that has begun before.
func (i *incident) add(code int, at pcommon.Timestamp) (goesOn bool) {
	if goesOn = len(i.codes) > 0 && at >= i.last && !later(at, i.last, burst); !goesOn {
		i.codes = i.codes[:0]
	}
	i.last = at
	if len(i.codes) < maxCodes && !slices.Contains(i.codes, code) {
		i.codes = append(i.codes, code)
	}
	return goesOn
}

// XID takes an XID, with what its line in the kernel log means, or else its code. It is
// no reason where only the application is concerned.
func (b *Board) XID(code int, h xid.Health, at pcommon.Timestamp) {
	b.incident.add(code, at)
	if (code == 63 || code == 64) && slices.Contains(b.incident.codes, 48) || code == 48 && hasAny(b.incident.codes, 63, 64) {
		// An uncorrectable error of which the row was remapped, or was not: the
		// catalogue has the board drained first.
		h = xid.Health{Reason: xid.ReasonReset, State: health.Failed, Action: health.DrainAndReset}
	}
	if h.Reason == "" {
		return
	}
	i := slices.IndexFunc(Reasons, func(r *Reason) bool { return r.Name == h.Reason })
	if i < 0 {
		return
	}
	b.raise(i, at, Finding{State: h.State, Action: h.Action}, code)
}

func hasAny(codes []int, any ...int) bool {
	return slices.ContainsFunc(any, func(code int) bool { return slices.Contains(codes, code) })
}

// Set raises and clears a reason that another rule decides: temperature and lost.
func (b *Board) Set(name string, active bool, at pcommon.Timestamp) {
	for i, r := range Reasons {
		if r.Name == name && len(r.Reads) == 0 {
			if active {
				b.raise(i, at, Finding{}, 0)
			} else {
				b.clear(i, at)
			}
		}
	}
}
