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
		Reads: []rule.Input{{Metric: &names.GPUXIDLast, Most: rule.MostCode}},
	}
	xidRestart = Reason{Name: xid.ReasonRestart, State: health.Failed, Action: health.RebootNode, ClearedBy: Boot | Person}
	xidLink    = Reason{Name: xid.ReasonLink, State: health.Degraded, Action: health.ReadLog, Weight: 0.6, ClearedBy: Reset | Boot | Person}

	xidMechanics = Reason{Name: xid.ReasonMechanics, State: health.Degraded, Action: health.CheckMechanics, Weight: 0.7, ClearedBy: Person, Quiet: day}
	xidSoftware  = Reason{Name: xid.ReasonSoftware, State: health.Degraded, Action: health.UpdateSoftware, Weight: 0.8, ClearedBy: Driver | Person}
	xidSupport   = Reason{Name: xid.ReasonSupport, State: health.Degraded, Action: health.ContactSupport, Weight: 0.6, ClearedBy: Reset | Boot | Person}
	xidRepeated  = Reason{Name: "xid_repeated", State: health.Degraded, Action: health.RunDiagnostics, Weight: 0.5, ClearedBy: Person, Quiet: day}

	temperature = Reason{Name: Temperature, State: health.Degraded, Action: health.CheckMechanics, Weight: 0.7}
	lost        = Reason{Name: Lost, State: health.Failed, Action: health.RebootNode}
	recurring   = Reason{Name: "recurring", State: health.PredictedFailure, Action: health.ContactSupport, Weight: 0.25, ClearedBy: Person, Quiet: week}
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
