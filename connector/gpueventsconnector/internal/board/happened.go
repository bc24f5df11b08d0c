// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"fmt"
	"slices"
	"strings"
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
		Name: xid.ReasonReset, State: health.Failed, Action: health.ResetGPU, Vital: true, ClearedBy: Reset | Boot | Person, Needs: NVIDIA,
		Doc: Doc{
			Means:   "The driver reported an error after which the GPU has to be reset.",
			Raised:  "an XID happens for which NVIDIA asks for a reset, or 48; 48 with 63 or 64 within 3 minutes asks to drain the board first. With `gpu.recovery.action` that metric decides from its next reading on",
			Cleared: "the GPU was reset, or its node booted",
			Source:  "NVIDIA's XID catalogue, RESET_GPU",
		},
		Reads:    []rule.Input{{Metric: &names.GPUXIDLast, Most: rule.MostCode}},
		Sentence: happened,
	}
	xidRestart = Reason{
		Name: xid.ReasonRestart, State: health.Failed, Action: health.RebootNode, ClearedBy: Boot | Person,
		Doc: Doc{
			Means:   "The GPU is no longer reachable, or its driver cannot continue: a reset does not help.",
			Raised:  "XID 79 (the GPU has fallen off the bus) or 151 happens. With `gpu.recovery.action` that metric decides from its next reading on",
			Cleared: "its node booted",
			Source:  "NVIDIA's XID catalogue, RESTART_BM and RESTART_VM",
		},
		Sentence: happened,
	}
	xidLink = Reason{
		Name: xid.ReasonLink, State: health.Degraded, Action: health.ReadLog, Weight: 0.6, ClearedBy: Reset | Boot | Person,
		Doc: Doc{
			Means:   "The driver reported an NVLink error. What to do depends on the line of the kernel log.",
			Raised:  "XID 74 or one of 144 to 150 happens. With the line of the kernel log the rule for that line decides; without it 74, 149 and 150 mean failed",
			Cleared: "the GPU was reset, or its node booted",
			Source:  "the NVLink rules of NVIDIA's XID catalogue",
		},
		Sentence: happened,
	}
	xidMechanics = Reason{
		Name: xid.ReasonMechanics, State: health.Degraded, Action: health.CheckMechanics, Weight: 0.7, ClearedBy: Person, Quiet: day,
		Doc: Doc{
			Means:   "The driver reported a fault of the power connection.",
			Raised:  "XID 54 happens",
			Cleared: "it has not happened for 24 hours",
			Source:  "NVIDIA's XID catalogue, CHECK_MECHANICALS",
		},
		Sentence: happened,
	}
	xidSoftware = Reason{
		Name: xid.ReasonSoftware, State: health.Degraded, Action: health.UpdateSoftware, Weight: 0.8, ClearedBy: Driver | Person,
		Doc: Doc{
			Means:   "The driver and the firmware do not fit each other.",
			Raised:  "XID 78 happens",
			Cleared: "the board has another version of the driver",
			Source:  "NVIDIA's XID catalogue, UPDATE_SWFW",
		},
		Sentence: happened,
	}
	xidSupport = Reason{
		Name: xid.ReasonSupport, State: health.Degraded, Action: health.ContactSupport, Weight: 0.6, ClearedBy: Reset | Boot | Person,
		Doc: Doc{
			Means:   "The driver reported an error for which NVIDIA's support should be asked.",
			Raised:  "an XID happens for which the catalogue names the support, or 159",
			Cleared: "the GPU was reset, or its node booted",
			Source:  "NVIDIA's XID catalogue, CONTACT_SUPPORT and CHECK_UVM",
		},
		Sentence: happened,
	}
	xidRepeated = Reason{
		Name: "xid_repeated", State: health.Degraded, Action: health.RunDiagnostics, Weight: 0.5, ClearedBy: Person, Quiet: day,
		Doc: Doc{
			Means:   "Different applications fail on this board with an error that is normally the fault of one application.",
			Raised:  "XID 13 or 31 happened at least twice within 24 hours under different owners. It is decided 3 minutes after the code: what at least half of the boards of a pod on the node had by then is the fault of the pod",
			Cleared: "it has not happened for 24 hours",
			Source:  "the analyzer of NVSentinel: 31 twice on one GPU asks for diagnostics, on several for nothing",
		},
		Sentence: func(a *Active) string {
			return fmt.Sprintf("XID %s happened under %.0f owners within 24 hours, the limit is %.0f", listed(a.Codes), a.Value, a.Threshold)
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
		Sentence: always("The board is above its critical temperature"),
	}
	lost = Reason{
		Name: Lost, State: health.Failed, Action: health.RebootNode,
		Doc: Doc{
			Means:   "The board is no longer on the pages of its exporter.",
			Raised:  "the event `gpu.device.lost` is raised for a board that is on no page. Again within 7 days, after a boot, it asks for a check of the mechanics",
			Cleared: "the board is there again, or another one in its place",
			Source:  "the configuration of `gpu.device.lost`; NVIDIA's XID catalogue asks for a reboot after 79",
		},
		Sentence: func(a *Active) string {
			if a.Action == health.CheckMechanics {
				return "The board is missing from the pages of its exporter again after a reboot"
			}
			return "The board is missing from the pages of its exporter"
		},
	}
	recurring = Reason{
		Name: "recurring", State: health.PredictedFailure, Action: health.ContactSupport, ClearedBy: Person, Quiet: week,
		Doc: Doc{
			Means:   "Resets do not last: the board fails again and again.",
			Raised:  "the board failed for the third time within 7 days, and a reset or a boot ended each of them",
			Cleared: "it has not failed for 7 days",
			Source:  "gpud asks for an inspection after two reboots, NVSentinel for a replacement after five faults in 7 days",
		},
		Sentence: func(a *Active) string {
			return fmt.Sprintf("The board failed %.0f times within 7 days, each time until a reset or a boot, the limit is %.0f", a.Value, a.Threshold)
		},
	}
)

// The reasons that other rules decide.
const (
	Temperature = "temperature"
	Lost        = "lost"
	LinkDown    = "link_down"
)

// burst is the longest silence between two XIDs of one incident.
const burst = 3 * time.Minute

// maxCodes are kept of an incident.
const maxCodes = 8

// incident are the XIDs of a board with no long silence between them. The first code
// names it: the others may be its consequences.
type incident struct {
	since, last pcommon.Timestamp
	codes       []int
	ecc, remap  bool // it has 48; it has 63 or 64
}

// add adds a code, to a new incident where the last one is over.
func (i *incident) add(code int, at pcommon.Timestamp) {
	if far := max(at, i.last) - min(at, i.last); i.last == 0 || far >= pcommon.Timestamp(burst) {
		*i = incident{since: at, last: at, codes: i.codes[:0]}
	}
	i.since, i.last = min(i.since, at), max(i.last, at) // a line and a page have times of their own
	i.ecc = i.ecc || code == xidUncorrectable
	i.remap = i.remap || code == xidRemapped || code == xidNotRemapped
	i.codes = addCode(i.codes, code)
}

func addCode(to []int, codes ...int) []int {
	for _, code := range codes {
		if len(to) < maxCodes && !slices.Contains(to, code) {
			to = append(to, code)
		}
	}
	return to
}

// XID takes an XID, with what its line in the kernel log means, or else its code. It is
// no reason where only the application is concerned; of an incident with a reason it is
// listed.
func (b *Board) XID(code int, h xid.Health, at pcommon.Timestamp) {
	in := &b.memory.rarely().incident
	in.add(code, at)
	b.memoryError(code, at)
	if in.ecc && in.remap && (code == xidUncorrectable || code == xidRemapped || code == xidNotRemapped) {
		// An uncorrectable error of which the row was remapped, or was not: the
		// catalogue has the board drained first.
		h = xid.Health{Reason: xid.ReasonReset, State: health.Failed, Action: health.DrainAndReset}
	}
	i := slices.IndexFunc(Reasons, func(r *Reason) bool { return r.Name == h.Reason })
	if i < 0 {
		for i := range b.active {
			if a := &b.active[i]; len(a.Codes) > 0 && a.Last >= in.since {
				a.Codes = addCode(a.Codes, code)
			}
		}
		return
	}
	fresh := b.active.find(i) == nil
	a := b.active.raise(i, at, Finding{State: h.State, Action: h.Action})
	a.Codes = addCode(addCode(a.Codes, code), in.codes...)
	if fresh && replaced(i) {
		// The driver names the action on its next page.
		a.held = b.fresh>>recoveryPlace&1 == 1
	}
}

// Line takes an XID of which a line of the kernel log was read. Again is whether a page has
// reported it, which knew the code alone. What the driver asks for stands in lines of code
// 154 too, of which the last counts where no page has it. What a reset or a boot has ended
// since then stays so.
func (b *Board) Line(l *xid.Line, again bool, at pcommon.Timestamp) {
	h, read := l.Health, b.fresh>>recoveryPlace&1 == 1
	switch {
	case at < b.evidence:
		return
	case l.Recovered && !read:
		b.active.clear(recoveryPlace)
	case h.Reason == xid.ReasonRecovery && read:
		h = xid.Health{} // the page decides
	case h.Reason == xid.ReasonRecovery:
	case again && XIDOf(l.Code).Reason == xid.ReasonLink:
		if a := b.active.find(linkPlace); a != nil && len(a.Codes) == 1 && a.Codes[0] == l.Code {
			b.active.clear(linkPlace) // the rule for the line decides
		}
	case again:
		return
	}
	b.XID(l.Code, h, at)
}

// replaced reports whether gpu.recovery.action takes the place of a reason.
func replaced(reason int) bool { return reason == resetPlace || reason == restartPlace }

// decide lets the driver decide what its codes ask for, where its recovery action is
// read: one that it asks for explains them, and none ends those from before the page.
func (b *Board) decide(f *Finding, at pcommon.Timestamp) {
	for _, place := range [...]int{resetPlace, restartPlace} {
		a := b.active.find(place)
		switch {
		case a == nil:
		case !f.Known:
			a.held = false
		case f.Raise:
			codes := a.Codes
			b.active.clear(place)
			by := b.active.find(recoveryPlace)
			by.Codes = addCode(by.Codes, codes...)
		case a.Last < at:
			b.active.clear(place)
		default:
			a.held = true // none may be older than the code
		}
	}
}

// Set raises and clears a reason that another rule decides: temperature, lost and link_down.
func (b *Board) Set(name string, active bool, at pcommon.Timestamp) {
	place := temperaturePlace
	switch name {
	case Lost:
		place = lostPlace
	case LinkDown:
		place = cutPlace
	case Temperature:
	default:
		return
	}
	e := b.active.failing()
	if !active {
		b.active.clear(place)
		b.settle(e, at)
		return
	}
	f := Finding{}
	if place == lostPlace {
		s := b.memory.rarely()
		if later(at, s.lostAt, week) {
			s.booted = false
		}
		if s.booted {
			f.Action = health.CheckMechanics
		}
		s.lostAt = at
	}
	b.active.raise(place, at, f)
}

// RAS takes a fatal error code of an AMD board, and the action that it asks for.
func (b *Board) RAS(code int, action health.Action, at pcommon.Timestamp) {
	a := b.active.raise(rasPlace, at, Finding{Action: action})
	a.Codes = addCode(a.Codes, code)
}

// endedBy is the evidence that ends a fatal error, by the action that it asks for.
func endedBy(a health.Action) Evidence {
	switch {
	case a <= health.DrainAndReset:
		return Reset | Boot | Person
	case a <= health.RebootNode:
		return Boot | Person
	}
	return Person
}

// Fault takes a code that Repeats, under the owner that the board has. An empty owner is
// not known, and no other one.
func (b *Board) Fault(code int, owner string, at pcommon.Timestamp) {
	if owner != "" {
		b.memory.rarely().faults.add(uint16(code), hash(owner), at)
	}
}

// HadFault reports whether the board had the code under the owner within the length of a
// burst of a time.
func (b *Board) HadFault(code int, owner string, at pcommon.Timestamp) bool {
	s := b.memory.seldom
	return s != nil && s.faults.find(uint16(code), hash(owner), at) != nil
}

// Spread takes that other boards of the owner had a code at the same time: see Common.
func (b *Board) Spread(code int, owner string, at pcommon.Timestamp) {
	if s := b.memory.seldom; s != nil {
		if f := s.faults.find(uint16(code), hash(owner), at); f != nil {
			f.common = true
		}
	}
}

// repeats raises xid_repeated.
func (b *Board) repeats(at pcommon.Timestamp) {
	for _, code := range [...]int{13, 31} {
		if owners, last := b.memory.seldom.faults.owners(uint16(code), at); owners >= manyOwners {
			a := b.active.raise(repeatedPlace, last, Finding{Value: float64(owners), Threshold: manyOwners})
			a.Codes = addCode(a.Codes, code)
		}
	}
}

// happened is the Sentence about XIDs.
func happened(a *Active) string {
	if len(a.Codes) == 0 {
		return "An XID happened"
	}
	s := fmt.Sprintf("XID %d happened", a.Codes[0])
	if more := a.Codes[1:]; len(more) > 0 {
		s += ", and with it " + listed(more)
	}
	return s
}

// explainedBy completes a Sentence with the XIDs that explain it.
func explainedBy(codes []int) string {
	if len(codes) == 0 {
		return ""
	}
	return " after XID " + listed(codes)
}

func listed(codes []int) string {
	out := make([]string, len(codes))
	for i, code := range codes {
		out[i] = fmt.Sprint(code)
	}
	return strings.Join(out, ", ")
}

// memoryError raises what the code is evidence of. Where the page has the flags of remapping, they
// decide about it.
func (b *Board) memoryError(code int, at pcommon.Timestamp) {
	place, f := eccPlace, Finding{}
	switch code {
	case xidContained, xidUncontained:
		if a := b.active.find(place); a != nil {
			f.Value, f.Variant, f.State = a.Value, a.Variant, a.State
		} else if code == xidContained {
			f.State, f.Variant = health.Degraded, eccContained
		}
		if code == xidUncontained {
			f.State, f.Variant = health.Failed, 0
		}
	case xidRemapped, xidNotRemapped:
		if place = pendingPlace; b.fresh>>place&1 == 1 {
			return
		}
	default:
		return
	}
	a := b.active.raise(place, at, f)
	a.Codes = addCode(a.Codes, code)
}
