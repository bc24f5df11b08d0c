// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package health has the states that the boards of a simulated node are expected to be
// reported in, second by second, of what is wrong with them and what their exporter
// shows. It is a second implementation of the rules, and shares no code with the first.
package health

import "slices"

// Times in seconds.
const (
	minute = 60
	day    = 24 * 60 * minute
	week   = 7 * day

	page    = 15         // between two pages
	silent  = 30         // of silence, after a page that may be 15 s old: nothing is known
	stands  = 60         // likewise, of pages on which everything stands still
	away    = 25         // that a board is on no page until it is lost
	hotFor  = 120        // until a temperature is critical
	linkFor = 270        // that a link is judged under load: 5 minutes of pages
	gap     = 6 * minute // of silence: what was in it is not known
	burst   = 3 * minute
	minutes = 10 // of a window
)

// Second is what is true of a board in a second, and what happens to it in it.
type Second struct {
	At            int64 // since the start of the fleet
	Shown, Frozen bool  // by the exporter: a page; one on which everything stands still
	Absent        bool  // the board is not on it
	Renamed       bool  // no field of the page is known, so that nothing is

	Recovery int // the driver's action; -1: the page does not have it
	XIDs     []XID
	ECC      int  // uncorrected errors
	Remaps   bool // the board remaps rows, and the page has its XIDs
	Rows     int  // that are remapped
	NoSpare  bool // a bank has no spare row

	RemapPending, RemapFailed, SRAM bool
	Pages, AllPages                 int // that are retired now, and at all
	PagesUncorrected                int // at all

	Recoveries, CRC int // errors of links: replays and recoveries, and CRC errors
	LinkDown        bool
	Fabric          int // 2: unhealthy, 3: limited
	Replays         int
	Lanes           float64
	Generation      int
	Narrow, Loaded  bool
	Throttled       bool
	Hot, Cool       bool // above what is critical; below what is high, with the hysteresis
	Fails, Warns    bool // a watch of DCGM

	Reset, Boot, Driver, Acknowledged bool // has happened
}

// XID is one that happens, with the pod that owns the board. Crowd: several of its boards
// on the node have the code within three minutes, and at least half of them.
type XID struct {
	Code  int
	Owner string
	Crowd bool
}

// Verdict is the expected health of a board or a node.
type Verdict struct {
	State   string   `json:"state"` // unknown: the exporter does not show it
	Reasons []string `json:"reasons"`
	Action  string   `json:"action"`
	// Unseen boards were on no page yet: nothing is known of them.
	Unseen bool `json:"unseen,omitempty"`
}

type active struct {
	on     bool
	state  state
	action action
	last   int64
}

// fault is a code under one owner.
type fault struct {
	XID
	since, last int64
}

// Board is what is known of a board. The zero Board is well. A copy is independent of
// it.
type Board struct {
	reasons [count]active
	unseen  Second // what happened since the last page

	since     int64 // of the exporter's silence; 0: it is not silent
	stands    bool  // and why
	renamed   bool
	gapAt     int64 // the end of the last gap
	seen      bool  // the board was on a page
	absent    int64 // since when the board is not on the page, plus 1; 0: it is
	incident  []int // its codes
	xidAt     int64
	spread    bool     // an error of memory was not contained
	faults    []fault  // codes 13 and 31
	pages     [2]int64 // of the last pages that were retired
	linkAt    int64
	linkTimes [3]int64
	replays   window
	replayAt  int64
	throttle  window
	narrow    bool  // the link was, when the board was under load last
	loaded    int64 // for so many seconds under load
	hot       int64
	fails     int64
	warns     int64
	lostOnce  bool
	lostBoot  bool
	episodes  [3]int64
}

// Step is the next second of the board.
func (b *Board) Step(s *Second) {
	b.renamed = s.Shown && s.Renamed
	b.seen = b.seen || b.renamed && !s.Absent
	if !s.Shown || s.Frozen || s.Renamed {
		if b.since == 0 {
			b.since, b.stands = s.At+1, s.Frozen
		}
		now := *s
		now.after(&b.unseen)
		b.unseen = now
		return
	}
	if b.since != 0 && s.At+1-b.since >= gap {
		b.gapAt = s.At
	}
	b.since = 0
	now := *s
	now.after(&b.unseen)
	b.unseen = Second{}
	b.see(&now)
}

// after adds what happened before, and was not seen. A boot takes what was counted.
func (s *Second) after(before *Second) {
	if !s.Boot {
		s.XIDs = append(slices.Clip(before.XIDs), s.XIDs...)
		s.ECC += before.ECC
		s.Recoveries += before.Recoveries
		s.Replays += before.Replays
	}
	s.Pages += before.Pages
	s.Reset, s.Boot = s.Reset || before.Reset, s.Boot || before.Boot
	s.Driver, s.Acknowledged = s.Driver || before.Driver, s.Acknowledged || before.Acknowledged
}

func (b *Board) see(s *Second) {
	b.evidence(s)
	b.absence(s)
	if s.Absent {
		return
	}
	b.spread = b.spread && b.reasons[eccUncorrected].on
	for _, x := range s.XIDs {
		b.xid(x, s.At)
	}
	b.repeated(s.At)
	if s.Recovery >= 0 {
		b.recovery(s)
	}
	b.flag(remapPending, s.RemapPending, degraded, resetGPU, s.At)
	b.flag(remapFailed, s.RemapFailed, failed, rma, s.At)
	b.flag(sramWorn, s.SRAM, failed, rma, s.At)
	b.flag(fabric, s.Fabric > 1, [...]state{ok, ok, failed, degraded}[s.Fabric], restartFabricManager, s.At)
	b.flag(nvlinkDown, s.LinkDown, failed, restartFabricManager, s.At)
	if s.Rows >= 512 || s.NoSpare {
		b.raise(remapWorn, predicted, runDiagnostics, s.At)
	}
	b.retired(s)
	if s.ECC > 0 {
		worst := failed
		if s.Remaps && !b.spread {
			worst = degraded
		}
		b.raise(eccUncorrected, worst, resetGPU, s.At)
	}
	b.rates(s)
	b.load(s)
	for i := range b.reasons {
		if quiet := ends[i].quiet; quiet > 0 && s.At-b.reasons[i].last >= quiet {
			b.reasons[i] = active{}
		}
	}
}

func (b *Board) raise(reason int, s state, a action, at int64) {
	b.reasons[reason] = active{true, s, a, at}
}

func (b *Board) flag(reason int, is bool, s state, a action, at int64) {
	if is {
		b.raise(reason, s, a, at)
	} else {
		b.reasons[reason] = active{}
	}
}

func (b *Board) worst() (worst state) {
	for i := range b.reasons {
		worst = max(worst, b.reasons[i].state)
	}
	return worst
}

// evidence ends what it ends.
func (b *Board) evidence(s *Second) {
	var seen evidence
	for e, is := range map[evidence]bool{reset: s.Reset || s.Boot || s.Driver, boot: s.Boot, driver: s.Driver, person: s.Acknowledged} {
		if is {
			seen |= e
		}
	}
	if seen == 0 {
		return
	}
	if s.Boot && b.lostOnce {
		b.lostBoot = true
	}
	was := b.worst()
	for i := range b.reasons {
		if ends[i].by&seen != 0 && b.reasons[i].last < s.At {
			b.reasons[i] = active{}
		}
	}
	if seen&(reset|boot) != 0 && was == failed && b.worst() != failed {
		b.episodes = [3]int64{s.At, b.episodes[0], b.episodes[1]}
		if third := b.episodes[2]; third != 0 && s.At-third <= week {
			b.raise(recurring, predicted, contactSupport, s.At)
		}
	}
}

// absence judges whether the board is on the page.
func (b *Board) absence(s *Second) {
	switch {
	case !s.Absent:
		b.seen = true
		if b.absent != 0 && b.reasons[lost].on {
			b.reasons[lost] = active{}
			b.evidence(&Second{At: s.At, Reset: true})
		}
		b.absent = 0
	case !b.seen:
	case b.absent == 0:
		b.absent = s.At + 1
	case s.At+1-b.absent >= away && !b.reasons[lost].on:
		a := rebootNode
		if b.lostBoot {
			a = checkMechanics
		}
		b.lostOnce = true
		b.raise(lost, failed, a, s.At)
	}
}

// xid takes a code. Codes with no longer silence between them than a burst are one
// incident.
func (b *Board) xid(x XID, at int64) {
	if at-b.xidAt >= burst {
		b.incident = nil
	}
	b.xidAt = at
	b.incident = append(slices.Clip(b.incident), x.Code)
	reason, s, a := ofCode(x.Code)
	if has := func(code int) bool { return slices.Contains(b.incident, code) }; (x.Code == 48 || x.Code == 63 || x.Code == 64) && has(48) && (has(63) || has(64)) {
		reason, s, a = xidReset, failed, drainAndReset
	}
	if reason < count {
		was := b.reasons[reason]
		b.raise(reason, max(s, was.state), max(a, was.action), at)
	}
	switch was := b.reasons[eccUncorrected]; x.Code {
	case 94:
		b.raise(eccUncorrected, max(degraded, was.state), resetGPU, at)
	case 95:
		b.spread = true
		b.raise(eccUncorrected, failed, resetGPU, at)
	}
	if (x.Code == 13 || x.Code == 31) && !x.Crowd && x.Owner != "" {
		b.faults = append(slices.DeleteFunc(slices.Clone(b.faults), func(f fault) bool { return f.XID == x }), fault{x, at, at})
	}
}

// repeated judges the codes that had the time to be common to the boards of a pod.
func (b *Board) repeated(at int64) {
	for _, code := range []int{13, 31} {
		owners, last := 0, int64(0)
		for _, f := range b.faults {
			if f.Code == code && at-f.since >= burst && at-f.last < day {
				owners, last = owners+1, max(last, f.last)
			}
		}
		if owners > 1 {
			b.raise(xidRepeated, degraded, runDiagnostics, last)
		}
	}
}

// recovery takes the driver's action. It stands for the codes before it.
func (b *Board) recovery(s *Second) {
	is := recoveries[s.Recovery]
	b.flag(recoveryAction, s.Recovery != 0, is.state, is.action, s.At)
	for _, of := range []int{xidReset, xidRestart} {
		if b.reasons[of].last < s.At {
			b.reasons[of] = active{}
		}
	}
}

// Verdict is the health of the board at a second, after its Step.
func (b *Board) Verdict(at int64) Verdict {
	v := Verdict{State: states[b.worst()], Reasons: []string{}}
	heaviest := none
	for i := range b.reasons {
		if b.reasons[i].on {
			v.Reasons = append(v.Reasons, names[i])
			heaviest = max(heaviest, b.reasons[i].action)
		}
	}
	v.Action, v.Unseen = actions[heaviest], !b.seen
	if v.Unseen {
		v.State = "unknown"
	}
	limit := int64(silent)
	switch {
	case b.renamed:
		limit = 0
	case b.stands:
		limit = stands
	}
	if b.since != 0 && at+1-b.since >= limit {
		v.State = "unknown"
	}
	return v
}

// Node is the health of a node with these boards: that of the worst one, failed where they
// are fewer than it should have, and unknown where it is unknown of one and none is failed.
func Node(boards []Verdict, few bool) Verdict {
	worst, heaviest, unknown := 0, 0, false
	for _, v := range boards {
		if v.Unseen {
			continue
		}
		unknown = unknown || v.State == "unknown"
		worst = max(worst, slices.Index(states[:], v.State)) // -1: unknown
		heaviest = max(heaviest, slices.Index(actions[:], v.Action))
	}
	reasons := []string{}
	if few && !unknown {
		worst, heaviest, reasons = int(failed), max(heaviest, int(checkMechanics)), append(reasons, "count")
	}
	out := Verdict{State: states[worst], Reasons: reasons, Action: actions[heaviest]}
	if unknown && worst != int(failed) {
		out.State = "unknown"
	}
	return out
}
